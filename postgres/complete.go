package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.TxFinisher = (*Store)(nil)

// FinishTx implements [store.TxFinisher]. The transaction must be read
// committed, so that the fence holds.
func (s *Store) FinishTx(ctx context.Context, tx stint.Tx, engine store.EngineID, claim store.ClaimRef, x store.Completion) error {
	var result *string
	if x.Result != nil {
		result = new(string(x.Result))
	}
	complete := statement{
		s.sql.in(`select stint.complete($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) > 0`),
		[]any{int64(engine), int64(claim.Lane), claim.N, int64(claim.Nonce), int64(x.Pos), int64(x.Job), x.Attempt, x.Slot,
			age(time.Now(), x.Started), result, x.Flow},
	}
	if x.Log != nil {
		complete.text += s.sql.in(` from stint.keep_logs($1, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)`)
		complete.args = append(complete.args, newLogColumns([]store.LogRecord{*x.Log}).args()...)
	}
	if err := commitIn(ctx, tx, complete, errConcluded); err != nil {
		return fmt.Errorf("complete job %d: %w", x.Job, err)
	}
	s.waits.Finished([]store.Completion{x})
	return nil
}

var errConcluded = errors.New("the entry has an outcome already")

// commitIn runs a statement in a caller's transaction that answers whether it did something, and commits
// that, or else rolls it back and returns the reason given.
func commitIn(ctx context.Context, tx stint.Tx, do statement, otherwise error) error {
	did := false
	err := runIn(ctx, tx, []statement{do}, func(row func(...any) error) error { return row(&did) })
	if err == nil && !did {
		err = otherwise
	}
	if err != nil {
		rollback(ctx, tx) // whatever the caller does, nothing of it stays
		return err
	}
	switch h := tx.Handle.(type) {
	case pgx.Tx:
		err = h.Commit(ctx)
	case *sql.Tx:
		err = h.Commit()
	}
	var answer *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer), errors.Is(err, pgx.ErrTxCommitRollback), errors.Is(err, pgx.ErrTxClosed), errors.Is(err, sql.ErrTxDone):
		return fmt.Errorf("commit: %w", translate(err))
	default:
		return fmt.Errorf("%w: %w", stint.ErrCommitUnknown, err)
	}
}

// rollback ends a caller's transaction, or its connection where that cannot be told
// in time: an engine that is cut off waits for its handlers, and others do not wait for it.
func rollback(ctx context.Context, tx stint.Tx) {
	switch h := tx.Handle.(type) {
	case pgx.Tx:
		_ = h.Rollback(ctx)
	case *sql.Tx:
		_ = h.Rollback()
	}
}
