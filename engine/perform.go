package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// Bounds, in bytes, of what an execution keeps.
const (
	maxResult = 1 << 20
	maxError  = 16 << 10
	maxStack  = 4 << 10
)

// perform calls the handler and says how that ended. What the handler's own
// completion came to stands in o when it is over, also when the handler ended
// its goroutine, so that perform does not return.
func (s *session) perform(o *outcome, slot int) stint.Ending {
	e := o.entry
	s.meters.running.Add(1)
	defer s.meters.running.Add(-1)
	began := time.Now()
	e.Started = s.clock.at(began)
	if s.config.OnEvent != nil {
		s.emit(stint.Event{Type: stint.EventStarted, Engine: s.token, Job: &e.Job, Slot: slot + 1, Ready: e.Ready})
	}
	a := &attempt{s: s, job: e.Job, outcome: *o, slot: slot + 1, began: began, keep: s.mux.Declaration(e.Kind).Keep}
	a.job.Tags = slices.Clone(e.Tags)
	a.Job, a.Client, a.Inspector = &a.job, s.client, s.inspector
	closed := a.open()
	defer closed()
	s.attempts.add(a)
	defer s.attempts.remove(a)
	err := errGoexit
	defer func() { *o = a.end(err) }()
	var result json.RawMessage
	result, err = a.call(s.mux.Handler(e.Kind))
	return ending(a, result, err)
}

// end is called when the handler is over, and says what it completed itself.
func (a *attempt) end(err error) outcome {
	a.mu.Lock()
	a.over = true
	o := a.outcome
	a.mu.Unlock()
	if o.fate == completed && err != nil {
		a.s.emit(stint.Event{
			Type: stint.EventTrouble, Engine: a.s.token, Job: &o.entry.Job,
			Doing: "return from a handler that had completed its job", Err: err,
		})
	}
	return o
}

// errGoexit is how an attempt ends whose handler ended its goroutine.
var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// call runs the handler and turns a panic into an error. What the handler set
// takes the place of what it returns, but not of its panic.
func (a *attempt) call(h stint.Handler) (result json.RawMessage, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		_, _ = a.Settle(nil, nil)
		if v := recover(); v != nil {
			result, err = nil, &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	result, err = h(a, &a.job)
	returned = true
	return a.Settle(result, err)
}

// ending classifies what a handler returned. An error counts as the stop's
// only when the engine did cancel the handler for a stop: a handler's own
// time-out is a failure like any other.
func ending(ctx context.Context, result json.RawMessage, err error) stint.Ending {
	end := stint.Ending{Outcome: stint.OutcomeCompleted, Result: result}
	if err == nil {
		return end
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, stint.ErrStopping):
		return stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront, Note: "the engine stopped"}
	case stint.AsEnding(err, &end):
		return end
	case errors.Is(cause, stint.ErrCancelled):
		return stint.Ending{Outcome: stint.OutcomeCancelled, Err: err, Result: result}
	case errors.Is(cause, stint.ErrTimeout) && !errors.Is(err, stint.ErrTimeout):
		err = fmt.Errorf("%w: %w", stint.ErrTimeout, err)
	}
	end.Outcome, end.Err = stint.OutcomeFailed, err
	if p, ok := errors.AsType[*stint.PanicError](err); ok {
		end.Stack = p.Stack
	}
	return end
}

// conclude decides what follows, and makes it storable.
func (s *session) conclude(o outcome, end stint.Ending, began time.Time, slot int) outcome {
	if s.fenced() {
		o.drop = true
		return o
	}
	if o.fate == completed {
		return o
	}
	clean(&end)
	now := time.Now()
	if !began.IsZero() {
		end.Took = now.Sub(began)
	}
	o.done = stint.ConcludeWith(s.mux.RetryFuncs(), o.entry, end, s.clock.at(now), random01())
	o.done.Nonce, o.done.Slot = o.claim.ref.Nonce, slot
	o.done.Started, o.done.Ended = began, now
	storable(&o.done)
	return o
}

// storable cuts and cleans the texts of an execution.
func storable(x *stint.Execution) {
	if x.Error != nil {
		x.Error.Message = stint.CleanText(x.Error.Message, maxError)
		x.Error.Stack = stint.CleanHead(x.Error.Stack, maxStack)
		x.Error.Note = stint.CleanText(x.Error.Note, maxError)
	}
	x.Reason = stint.CleanText(x.Reason, maxError)
}

// clean takes out a result that no store could keep: the work is done all the
// same, and a note says what is missing.
func clean(end *stint.Ending) {
	if end.Result == nil {
		return
	}
	if err := stint.CheckJSON("result", end.Result, maxResult); err != nil {
		end.Note = "the result was not kept: " + err.Error()
		end.Result = nil
	}
}
