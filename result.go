package stint

import (
	"context"
	"encoding/json"
	"fmt"
)

// SetResult says that the running handler has succeeded, with a result or
// nil, whatever it returns: for code far from the handler's return, and for
// handlers whose signature has no room for a result.
//
// What SetResult and [SetError] set takes the place of both that the handler
// returns, its result and its error, and is judged in the same way:
//
//	                              SetResult            SetError
//	handler returns               completed            failed; the policy decides
//	  after its timeout           completed            failed, as timed out
//	  after its job was cancelled completed            cancelled
//	  after the stop's grace      completed            returned to its queue, uncharged
//	  after it lost its place     nothing is recorded
//	handler panics, or ends its
//	  goroutine                   failed by that: it returned nothing, and nothing of what it set counts
//	engine.CompleteTx succeeded   completed by that: what is set changes nothing
//
// The last call decides. A result stays when an error is set after it, and is
// kept with the failed execution; setting a result takes an error back.
//
// The error says that the result cannot be encoded, or that the context is not
// a running handler's ([ErrNoAttempt]); then nothing was set. A result that no
// store could keep is left out of the execution, with a note.
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

// SetError says that the running handler has failed, whatever it returns. When
// retriable, the job's retry policy decides, as it does about an error that is
// returned; otherwise this attempt is the last, as after [NoRetry]. [Snooze] and
// [Cancel] mean what they mean when they are returned. A nil error takes an
// earlier one back: the handler has succeeded.
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

// Settle ends the attempt with what its handler returned, and returns what
// counts: that, or what was set instead. After it nothing can be set any more.
func (a *Run) Settle(result json.RawMessage, err error) (json.RawMessage, error) {
	return a.settle(result, err, true)
}

func (a *Run) settle(result json.RawMessage, err error, over bool) (json.RawMessage, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = a.over || over
	if a.set {
		result, err = a.result, a.err
		a.set, a.result, a.err = false, nil, nil
	}
	return result, err
}
