package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

// Errors of [CompleteTx].
var (
	// ErrNoAttempt says that a context does not come from an engine's handler.
	ErrNoAttempt = stint.ErrNoAttempt

	// ErrNoTx says that the store cannot record an outcome in a transaction
	// of the handler's.
	ErrNoTx = errors.New("engine: the store does not complete jobs in a caller's transaction")
)

// CompleteTx records that the job of the running handler completed, with a
// result or nil, and commits the transaction: what the handler wrote in it and
// the outcome become true together, or neither does. It is the last act of
// that transaction, and best of the handler:
//
//	return engine.CompleteTx(ctx, postgres.Tx(tx), nil)
//
// Begin the transaction with the handler's context: one of database/sql heeds no
// other, and a handler whose connection goes silent must end with its engine.
//
// With an error the transaction did not commit, and the handler's error
// decides as usual: [stint.ErrBuried] says that the engine lost the job
// meanwhile. Only when the connection broke in the middle does nobody know;
// then what the handler returns is recorded unless the commit had arrived.
//
// After a success the job is completed whatever the handler returns; an error
// is only told as an event.
func CompleteTx(ctx context.Context, tx stint.Tx, result any) error {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return ErrNoAttempt
	}
	store, ok := a.s.store.(stint.TxFinisher)
	if !ok {
		return ErrNoTx
	}
	var raw json.RawMessage
	if result != nil {
		var err error
		if raw, err = json.Marshal(result); err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		if err := stint.CheckJSON("result", raw, maxResult); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.life.closed.Load() {
		return ErrNoAttempt
	}
	if a.task.fate != open {
		return errors.New("engine: the job was completed before")
	}
	if a.s.fenced() {
		return stint.ErrBuried
	}
	t := a.task
	x := stint.Conclude(t.entry, stint.Ending{Outcome: stint.OutcomeCompleted, Result: raw}, a.s.clock.at(time.Now()), 0)
	x.Nonce, x.Slot, x.Started, x.Ended = t.claim.ref.Nonce, t.done.Slot, t.done.Started, time.Now()
	t.fate = unknown
	t.commit = &x
	err := store.FinishTx(ctx, tx, a.s.token, t.claim.ref, x)
	switch {
	case err == nil:
		t.fate = completed
		t.done = x
	case errors.Is(err, stint.ErrCommitUnknown):
	default:
		t.fate = open
	}
	return err
}
