package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.TxFinisher = (*Store)(nil)

// completedSQL finds a success. What a burial recorded for the claim is none.
const completedSQL = `select 1 from stint_executions where pos = ? and outcome = 1`

// FinishTx implements [store.TxFinisher].
//
// From its first write on, the handler's transaction keeps all others from
// writing: while it is open no engine claims or records, in any process.
// Do the slow part of the work before it; see the package's documentation.
func (s *Store) FinishTx(ctx context.Context, tx stint.Tx, engine store.EngineID, claim store.ClaimRef, x store.Completion) error {
	h, err := handle(tx)
	if err == nil {
		if err = s.finishIn(ctx, h, engine, claim, &x); err != nil {
			_ = h.Rollback() // whatever the caller does, nothing of it stays
		} else {
			err = s.commit(ctx, h, completedSQL, int64(x.Pos))
		}
	}
	if err != nil {
		return fmt.Errorf("complete job %d: %w", x.Job, err)
	}
	s.waits.Finished([]store.Completion{x})
	return nil
}

// finishIn does in the caller's transaction what [Store.Finish] does in one of
// the store's. Its first statement waits for the turn to write, so what the
// others see stays so until the commit: the fence as well.
func (s *Store) finishIn(ctx context.Context, tx *sql.Tx, engine store.EngineID, claim store.ClaimRef, x *store.Completion) error {
	if x.Outcome != stint.OutcomeCompleted || !x.Final {
		return &stint.InvalidError{Field: "outcome", Problem: "only a completed attempt can be recorded in a transaction"}
	}
	if err := s.standsIn(ctx, tx, engine); err != nil {
		return err
	}
	exists, err := s.foundIn(ctx, tx, claimExistsSQL, int64(claim.Lane), claim.N, int64(claim.Nonce), int64(engine))
	if err != nil {
		return err
	} else if !exists || x.Nonce != claim.Nonce {
		return fmt.Errorf("%w: number %d of lane %d", store.ErrClaimGone, claim.N, claim.Lane)
	}
	now := time.Now()
	keep := logKeeper{
		found: func(text string, args ...any) (bool, error) { return s.foundIn(ctx, tx, text, args...) },
		exec: func(text string, args ...any) error {
			for i, arg := range args {
				if raw, ok := arg.(json.RawMessage); ok {
					args[i] = string(raw) // to the driver it is a blob
				}
			}
			_, err := tx.ExecContext(ctx, s.named(text), args...)
			return translate(err)
		},
	}
	if err := keep.logs(engine, x.Log, now); err != nil {
		return err
	}
	started, finished := span(x, now)
	job := int64(x.Job)
	if job == int64(x.Pos) {
		job = 0
	}
	r, err := tx.ExecContext(ctx, s.named(recordSQL), int64(x.Pos), nilInt(job), x.Attempt, int64(x.Nonce), int64(engine), x.Slot,
		started, finished, int64(x.Outcome), 1, nilText(x.Reason), nilText(string(x.Result)), nil)
	if err != nil {
		return translate(err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, errConcluded)
	}
	if exists, err := s.foundIn(ctx, tx, entryAtSQL, int64(x.Pos)); err != nil || !exists {
		return cmp.Or(err, errConcluded)
	}
	if x.Flow {
		if _, err := tx.ExecContext(ctx, s.named(noteEndSQL), int64(x.Job)); err != nil {
			return translate(err)
		}
	}
	_, err = tx.ExecContext(ctx, s.named(clearSQL), int64(x.Job))
	return translate(err)
}

// standsIn refuses a transaction on another database, and that of an engine that does not stand in the
// roster.
func (s *Store) standsIn(ctx context.Context, tx *sql.Tx, engine store.EngineID) error {
	if err := s.sameDatabase(ctx, tx); err != nil {
		return err
	}
	stands, err := s.foundIn(ctx, tx, fenceSQL, int64(engine))
	if err == nil && !stands {
		err = store.ErrBuried
	}
	return err
}

// foundIn reports whether a statement returns a row in a caller's transaction.
func (s *Store) foundIn(ctx context.Context, tx *sql.Tx, text string, args ...any) (bool, error) {
	err := tx.QueryRowContext(ctx, s.named(text), args...).Scan(new(int))
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, translate(err)
}

// errConcluded says that a completion comes too late, also if what ended the
// attempt was deleted since.
var errConcluded = errors.New("the attempt has an outcome already")

// commit commits the caller's transaction. When that gives an error, the file
// knows better than any driver whether it happened: then a statement finds a row.
func (s *Store) commit(ctx context.Context, tx *sql.Tx, text string, args ...any) error {
	err := tx.Commit()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("commit: %w", translate(err))
	there := false
	look := s.read(context.WithoutCancel(ctx), func(c *conn) (err error) {
		there, err = c.found(text, args...)
		return err
	})
	switch {
	case look != nil:
		return fmt.Errorf("%w: %w, and the look: %w", stint.ErrCommitUnknown, err, look)
	case there:
		return nil
	}
	return err
}

// handle is the caller's transaction as database/sql knows it.
func handle(tx stint.Tx) (*sql.Tx, error) {
	h, ok := tx.Handle.(*sql.Tx)
	if !ok || h == nil {
		return nil, &stint.InvalidError{Field: "transaction", Problem: fmt.Sprintf("%T is not one of database/sql; wrap it with sqlite.Tx", tx.Handle)}
	}
	return h, nil
}
