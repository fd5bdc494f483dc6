package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
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
// A run that [stint.Sleep] has ended cannot complete its job: that error is returned.
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
		if raw, err = a.SealResult(ctx, raw); err != nil {
			return err
		}
		if err := valid.JSON("result", raw, maxResult); err != nil {
			return err
		}
	}
	if err := a.Sleeping(); err != nil {
		return err
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
	x.Log = a.unsaid()
	t.tx = txUnknown
	t.txRecord = &x
	moves := a.s.moves.Load()
	err := st.FinishTx(ctx, tx, a.s.token, t.claim.ref, x)
	switch {
	case err == nil && a.s.movedSince(moves):
		err = stint.ErrCommitUnknown
	case err == nil:
		t.tx = txCompleted
		t.done = x
	case errors.Is(err, stint.ErrCommitUnknown):
	default:
		t.tx = txNone
	}
	return err
}

// txOutcome is the result of a handler's own completion.
type txOutcome int8

const (
	txNone      txOutcome = iota // it did not complete itself: what it returns decides
	txCompleted                  // it did, and that is recorded
	txUnknown                    // it tried, and whether the commit arrived is unknown
)

// resolveTx finds out what is stored of an attempt whose handler may have completed it, and of
// which nothing new was recorded: either the handler's completion had arrived, or this record had
// in an earlier try. The store knows. Where it cannot be asked, an inline caller gets
// ErrCommitUnknown rather than a guess.
func (s *session) resolveTx(t *task, repeats bool) {
	completes, known := s.storedAsCompleted(t)
	switch {
	case known && !completes:
	case known, !repeats && t.inline == nil:
		t.done, t.tx = *t.txRecord, txCompleted
	default:
		t.uncertain = true
	}
}

// storedAsCompleted asks the store whether an attempt is recorded as completed.
func (s *session) storedAsCompleted(t *task) (yes, known bool) {
	if s.reader == nil {
		return false, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.work), s.config.TimeToLive)
	defer cancel()
	job, err := s.reader.Job(ctx, t.entry.ID)
	if err != nil {
		return false, false
	}
	return slices.ContainsFunc(job.Attempts, func(x stint.Attempt) bool {
		return x.Attempt == t.entry.Attempt && x.Engine == int64(s.token) && x.Outcome == stint.OutcomeCompleted
	}), true
}
