package stint

import (
	"context"
	"encoding/json"
	"fmt"
)

// SetResult makes the running handler succeed, with a result or nil, whatever it
// returns: for code far from the handler's return, and for handlers that return no
// result.
//
// What SetResult and [SetError] set replaces both the result and the error that the
// handler returns, and counts in the same way:
//
//	                              SetResult            SetError
//	handler returns               completed            failed; the policy decides
//	  after its timeout           completed            failed, as timed out
//	  after its job was cancelled completed            cancelled
//	  after the stop's grace      completed            returned to its queue, uncharged
//	  after its engine was buried nothing is recorded
//	handler panics, or ends its
//	  goroutine                   failed by that: it returned nothing, and nothing of what it set counts
//	stint.Sleep ended the run     run again when that is over, unless an error is set
//	engine.CompleteTx succeeded   completed by that: what is set changes nothing
//
// The last call decides. A result stays when an error is set after it, and is
// kept with the failed attempt; setting a result removes an error.
//
// The error says that the result cannot be encoded, or that the context is not
// a running handler's ([ErrNoAttempt]); then nothing was set. A result that stores
// cannot keep is left out, with a note in the attempt.
func SetResult(ctx context.Context, result any) error {
	var raw json.RawMessage
	if result != nil {
		var err error
		if raw, err = json.Marshal(result); err != nil {
			return fmt.Errorf("encode the result: %w", err)
		}
	}
	return runFrom(ctx).put(func(a *Run) { a.result, a.err = raw, nil })
}

// SetError makes the running handler fail, whatever it returns. If retriable, the
// job's retry policy decides, as it does about a returned error; otherwise this attempt
// is the last, as after [NoRetry]. [Snooze] and [Cancel] mean the same as when they are
// returned. A nil error removes an earlier one: the handler succeeds.
//
// [SetResult] says when this counts, and when not.
func SetError(ctx context.Context, err error, retriable bool) error {
	if !retriable {
		err = NoRetry(err)
	}
	return runFrom(ctx).put(func(a *Run) { a.err = err })
}

func (a *Run) put(set func(*Run)) error {
	if a == nil {
		return ErrNoAttempt
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over {
		return ErrNoAttempt
	}
	a.set = true
	set(a)
	return nil
}

// Settle ends the run with what its handler returned, and returns what counts: that,
// or what was set instead. Nothing can be set after it, and a batch waits no longer for
// the run.
//
// A result is sealed if the kind is.
func (a *Run) Settle(result json.RawMessage, err error) (json.RawMessage, error) {
	result, err = a.settle(result, err, true)
	if result != nil {
		sealed, unsealed := a.SealResult(&a.context, result)
		if result = sealed; err == nil {
			err = unsealed
		}
	}
	return result, err
}

func (a *Run) settle(result json.RawMessage, err error, over bool) (json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over = a.over || over; over && a.Batch != nil {
		a.Batch.leave()
		a.Batch = nil
	}
	returned := err
	if a.set {
		result, err = a.result, a.err
		a.set, a.result, a.err = false, nil, nil
	}
	if a.steps != nil {
		err = a.steps.end(returned, err, a.now())
	}
	return result, err
}
