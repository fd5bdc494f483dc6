package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// Errors of [CompleteTx].
var (
	// ErrNoAttempt says that a context does not come from an engine's handler.
	ErrNoAttempt = stint.ErrNoAttempt

	// ErrNoTx says that the store cannot record an outcome in the handler's transaction.
	ErrNoTx = errors.New("engine: the store does not complete jobs in a caller's transaction")
)

// CompleteTx records that the job of the running handler completed, with a result or nil, and
// commits the transaction: what the handler wrote in it and the outcome are stored together or not
// at all. Call it last in the transaction, best as the last act of the handler:
//
//	return engine.CompleteTx(ctx, postgres.Tx(tx), nil)
//
// Begin the transaction with the handler's context: database/sql obeys no other one, and a handler
// whose connection stops answering must end with its engine.
//
// After an error the transaction did not commit, and the handler's error decides as usual:
// [store.ErrBuried] says that the engine lost the job. Only if the connection broke during the
// commit is that unknown; then the outcome that the handler returns is recorded, unless the commit
// had arrived.
//
// After a success the job is completed whatever the handler returns; its error is only reported as
// an event.
func CompleteTx(ctx context.Context, tx stint.Tx, result any) error {
	a, ok := ctx.Value(attemptKey{}).(*attempt)
	if !ok {
		return ErrNoAttempt
	}
	st, ok := a.s.store.(store.TxFinisher)
	if !ok {
		return ErrNoTx
	}
	var raw json.RawMessage
	if result != nil {
		var err error
		if raw, err = json.Marshal(result); err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
		if err := valid.JSON("result", raw, maxResult); err != nil {
			return err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.runContext.closed.Load() {
		return ErrNoAttempt
	}
	if a.task.tx != txNone {
		return errors.New("engine: the job was completed before")
	}
	if a.s.fenced() {
		return store.ErrBuried
	}
	t := a.task
	x := store.Conclude(t.entry, store.Result{Outcome: stint.OutcomeCompleted, Result: raw}, a.s.clock.at(time.Now()), 0)
	x.Nonce, x.Slot, x.Started, x.Ended = t.claim.ref.Nonce, t.done.Slot, t.done.Started, time.Now()
	t.tx = txUnknown
	t.txRecord = &x
	err := st.FinishTx(ctx, tx, a.s.token, t.claim.ref, x)
	switch {
	case err == nil:
		t.tx = txCompleted
		t.done = x
	case errors.Is(err, stint.ErrCommitUnknown):
	default:
		t.tx = txNone
	}
	return err
}
