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
// completion came to stands in the task when it is over, also when the handler
// ended its goroutine, so that perform does not return.
func (s *session) perform(t *task, slot int) stint.Ending {
	e := t.entry
	began := time.Now()
	t.done.Slot, t.done.Started = slot+1, began
	e.Started = s.clock.at(began)
	if s.config.OnEvent != nil {
		s.emit(stint.Event{Type: stint.EventStarted, Engine: s.token, Job: &e.Job, Slot: slot + 1, Ready: e.Ready})
	}
	a := &attempt{s: s, task: t, job: e.Job}
	a.job.Tags = slices.Clone(e.Tags)
	a.Job, a.Client, a.Inspector = &a.job, s.client, s.inspector
	a.open()
	s.attempts.add(a)
	s.meters.running.Add(1)
	err := errGoexit
	defer func() {
		a.close(err)
		s.attempts.remove(a)
		s.meters.running.Add(-1)
	}()
	var result json.RawMessage
	result, err = a.call(t.trade.handler)
	return ending(a, result, err)
}

// close is called when the handler is over: the task is the stage's again.
func (a *attempt) close(err error) {
	a.mu.Lock()
	a.life.close()
	a.mu.Unlock()
	if a.task.fate == completed && err != nil {
		a.s.emit(stint.Event{
			Type: stint.EventTrouble, Engine: a.s.token, Job: &a.task.entry.Job,
			Doing: "return from a handler that had completed its job", Err: err,
		})
	}
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
	case errors.Is(cause, stint.ErrTimeout) && !slices.Contains(stint.Classes(err), "timeout"):
		err = fmt.Errorf("%w: %w", stint.ErrTimeout, err)
	}
	end.Outcome, end.Err = stint.OutcomeFailed, err
	return end
}

// conclude decides what follows a task that was run, or not begun, and makes it
// storable.
func (s *session) conclude(t *task, end stint.Ending) *task {
	switch drop := s.fenced(); {
	case t.fate == completed:
		t.drop = drop
		return t
	case drop:
		t.drop, t.done = true, stint.Execution{}
		return t
	}
	began, slot := t.done.Started, t.done.Slot
	clean(&end)
	now := time.Now()
	if !began.IsZero() {
		end.Took = now.Sub(began)
	}
	t.done = stint.ConcludeWith(s.mux.RetryFuncs(), t.entry, end, s.clock.at(now), random01())
	t.done.Nonce, t.done.Slot = t.claim.ref.Nonce, slot
	t.done.Started, t.done.Ended = began, now
	storable(&t.done)
	return t
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
