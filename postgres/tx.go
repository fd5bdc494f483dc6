package postgres

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
)

// Tx lets a client enqueue in a pgx transaction of the caller's:
//
//	client.With(postgres.Tx(tx)).Enqueue(ctx, job)
//
// The transaction may have any isolation. One that is to be prepared
// (PREPARE TRANSACTION) must be made [Quiet]: PostgreSQL refuses to prepare
// what notifies.
func Tx(tx pgx.Tx) stint.Tx { return stint.Tx{Handle: tx} }

// SQLTx is [Tx] for a transaction of database/sql, of any PostgreSQL driver.
func SQLTx(tx *sql.Tx) stint.Tx { return stint.Tx{Handle: tx} }

// Quiet leaves engines unwoken when the transaction commits: they find the
// jobs at their next poll.
func Quiet(tx stint.Tx) stint.Tx {
	tx.Quiet = true
	return tx
}

// statement is one text with its arguments, ready for either kind of
// transaction.
type statement struct {
	text string
	args []any
}

// runIn sends statements in the caller's transaction, and hands the rows of
// the first to scan.
func runIn(ctx context.Context, tx stint.Tx, stmts []statement, scan func(row func(...any) error) error) error {
	switch h := tx.Handle.(type) {
	case pgx.Tx:
		if conn := h.Conn(); conn != nil {
			if err := checkSpoken(conn); err != nil {
				return err
			}
		}
		return runBatch(ctx, h, stmts, scan)
	case *sql.Tx:
		return runSQL(ctx, h, stmts, scan)
	default:
		return &stint.InvalidError{Field: "transaction", Problem: fmt.Sprintf("%T is not one of PostgreSQL's; wrap it with postgres.Tx or postgres.SQLTx", h)}
	}
}

type batcher interface {
	queryer
	SendBatch(context.Context, *pgx.Batch) pgx.BatchResults
}

// runBatch is one round trip. A batch of one statement is a query, which is less
// work for both sides.
func runBatch(ctx context.Context, b batcher, stmts []statement, scan func(row func(...any) error) error) error {
	if len(stmts) == 1 {
		rows, err := b.Query(ctx, stmts[0].text, stmts[0].args...)
		if err == nil {
			err = scanAll(rows, scan)
		}
		return translate(err)
	}
	batch := &pgx.Batch{}
	queue(batch, stmts, scan)
	return translate(b.SendBatch(ctx, batch).Close())
}

// runCommitted is the same in a transaction of its own that is read committed,
// whatever the session's default is.
func runCommitted(ctx context.Context, pool *pgxpool.Pool, stmts []statement, scan func(row func(...any) error) error) error {
	batch := &pgx.Batch{}
	batch.Queue(beginSQL)
	queue(batch, stmts, scan)
	batch.Queue(commitSQL)
	return translate(spoken(ctx, pool, func(c *pgxpool.Conn) error { return c.SendBatch(ctx, batch).Close() }))
}

func queue(batch *pgx.Batch, stmts []statement, scan func(row func(...any) error) error) {
	for i, s := range stmts {
		q := batch.Queue(s.text, s.args...)
		if i == 0 {
			q.Query(func(rows pgx.Rows) error { return scanAll(rows, scan) })
		}
	}
}

func scanAll(rows pgx.Rows, scan func(row func(...any) error) error) error {
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// runSQL passes arrays as text, which every driver can send.
func runSQL(ctx context.Context, tx *sql.Tx, stmts []statement, scan func(row func(...any) error) error) error {
	types := pgtype.NewMap()
	for i, s := range stmts {
		args := make([]any, len(s.args))
		for k, arg := range s.args {
			text, err := textArg(types, arg)
			if err != nil {
				return err
			}
			args[k] = text
		}
		if err := checkSpokenSQL(ctx, tx, args); err != nil {
			return err
		}
		rows, err := tx.QueryContext(ctx, s.text, args...)
		if err != nil {
			return translate(err)
		}
		for err == nil && i == 0 && rows.Next() {
			err = scan(rows.Scan)
		}
		if err = cmp.Or(err, rows.Close(), rows.Err()); err != nil {
			return translate(err)
		}
	}
	return nil
}

func textArg(types *pgtype.Map, arg any) (any, error) {
	t, ok := types.TypeForValue(arg)
	if !ok {
		return arg, nil
	}
	text, err := types.Encode(t.OID, pgtype.TextFormatCode, arg, nil)
	if err != nil || text == nil {
		return nil, err
	}
	return string(text), nil
}
