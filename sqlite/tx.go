package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

// Tx lets a client enqueue in the caller's own transaction:
//
//	client.With(sqlite.Tx(tx)).Enqueue(ctx, job)
//
// The transaction may be of any database/sql driver for SQLite (3.38 or newer),
// on the file that the store has open. Other processes see its commit at their next poll
// of the file, as does this one.
//
// It survives a power cut if its connection says so: drivers differ in whether
// "synchronous" is full in WAL mode unless one asks for it. Where it is normal a
// cut may take back a commit, and all that it had stored or completed with it,
// until the store's next commit.
//
// From its first write to its end the transaction keeps all others from
// writing, engines included: keep it short. One that reads before it writes
// should begin with "begin immediate" (most drivers have a setting), or SQLite
// refuses its first write if another connection wrote after that read.
func Tx(tx *sql.Tx) stint.Tx { return stint.Tx{Handle: tx} }

const identitySQL = `select identity from stint_meta`

// otherDatabaseSQL changes nothing where it should run. It is a write all the
// same, so a transaction that begins with it waits for its turn to write; had
// it read first, SQLite would refuse the turn as soon as another connection wrote.
const otherDatabaseSQL = `update stint_meta set one = 1 where identity <> ?`

// enqueueIn stores jobs in a caller's transaction.
func (s *Store) enqueueIn(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	h, err := handle(tx)
	if err != nil {
		return nil, err
	}
	if err := s.sameDatabase(ctx, h); err != nil {
		return nil, err
	}
	p := &inTx{ctx: ctx, tx: h, named: s.named, inserts: map[int]*sql.Stmt{}}
	defer p.close()
	receipts := make([]stint.Receipt, len(jobs))
	if err := storeJobs(ctx, p, jobs, receipts, nil); err != nil {
		return nil, fmt.Errorf("enqueue %d jobs in a transaction: %w", len(jobs), translate(err))
	}
	return receipts, nil
}

// sameDatabase refuses a transaction on another file that has stint's tables
// too: its jobs would wait there for engines that work here.
func (s *Store) sameDatabase(ctx context.Context, tx *sql.Tx) error {
	if s.readers == nil {
		return &stint.InvalidError{Field: "transaction", Problem: "no other connection reaches a database in memory"}
	}
	var ours int64
	err := s.read(ctx, func(c *conn) error {
		return c.query(identitySQL, nil, func(q *stmt) error {
			ours = q.ColumnInt64(0)
			return nil
		})
	})
	if err != nil {
		return err
	}
	r, err := tx.ExecContext(ctx, s.named(otherDatabaseSQL), ours)
	if err != nil {
		return fmt.Errorf("begin to write in the transaction (is it on %s?): %w", s.path, translate(err))
	}
	if n, err := r.RowsAffected(); err != nil || n > 0 {
		return errors.Join(err, &stint.InvalidError{Field: "transaction", Problem: "it is on another database than " + s.path})
	}
	return nil
}

// inTx is an appender in a caller's transaction. It uses nothing that a
// driver could lack.
type inTx struct {
	ctx     context.Context
	tx      *sql.Tx
	named   func(string) string
	inserts map[int]*sql.Stmt // appendSQL of so many rows, once it was needed
	values  []any
}

func (p *inTx) appendAll(all []newEntry) (last int64, err error) {
	var room [entryColumns]value
	for len(all) > 0 {
		n := bulk(len(all), func(i int) int { return all[i].size() })
		insert, err := p.insert(n)
		if err != nil {
			return 0, err
		}
		p.values = p.values[:0]
		for i := range n {
			for _, v := range all[i].values(room[:0]) {
				p.values = append(p.values, v.any())
			}
		}
		r, err := insert.ExecContext(p.ctx, p.values...)
		if err != nil {
			return 0, err
		}
		if last, err = r.LastInsertId(); err != nil {
			return 0, err
		}
		all = all[n:]
	}
	return last, nil
}

func (p *inTx) insert(rows int) (*sql.Stmt, error) {
	if s := p.inserts[rows]; s != nil {
		return s, nil
	}
	s, err := p.tx.PrepareContext(p.ctx, repeated(p.named(appendSQL), rows))
	if err == nil {
		p.inserts[rows] = s
	}
	return s, err
}

func (p *inTx) run(text string, args ...any) error {
	_, err := p.tx.ExecContext(p.ctx, p.named(text), args...)
	return err
}

func (p *inTx) holder(key string) (h keyHolder, err error) {
	err = p.tx.QueryRowContext(p.ctx, p.named(holderSQL), key).Scan(&h.job, &h.fingerprint)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return h, err
}

func (p *inTx) uniqueHolder(key string) (h uniqueHolder, err error) {
	err = p.tx.QueryRowContext(p.ctx, p.named(uniqueHolderSQL), key).Scan(&h.job, &h.until, &h.state, &h.begun, &h.due)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return h, err
}

func (p *inTx) number(text string, args ...any) (n int64, err error) {
	err = p.first(&n, text, args...)
	return n, err
}

func (p *inTx) word(text string, args ...any) (s string, err error) {
	err = p.first(&s, text, args...)
	return s, err
}

// first reads the first column of a row into what is pointed at, which stays as it is without one.
func (p *inTx) first(into any, text string, args ...any) error {
	err := p.tx.QueryRowContext(p.ctx, p.named(text), args...).Scan(into)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return err
}

// cancelHolder leaves what else is to be done to the next promotion.
func (p *inTx) cancelHolder(id stint.ID, why string) error {
	return p.run(markSQL, int64(id), micro(time.Now()), why)
}

func (p *inTx) close() {
	for _, s := range p.inserts {
		_ = s.Close()
	}
}

func nilInt(v int64) any {
	if v == 0 {
		return nil
	}
	return v
}

func nilText(v string) any {
	if v == "" {
		return nil
	}
	return v
}
