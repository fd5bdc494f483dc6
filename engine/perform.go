package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// Bounds, in bytes, of what an execution keeps.
const (
	maxResult = 1 << 20
	maxError  = 16 << 10
	maxStack  = 4 << 10
)

// perform calls the handler and returns how it ended. The result of the handler's own completion is
// in the task afterwards, even when the handler ended its goroutine and perform does not return.
func (s *session) perform(t *task, one *slot) store.Result {
	e := t.entry
	began := time.Now()
	t.done.Slot, t.done.Started = min(one.number, maxSlotNumber), began
	e.Started = s.clock.at(began)
	if s.config.OnEvent != nil {
		s.emit(event.Event{Type: event.EventStarted, Engine: s.token, Job: &e.Job, Slot: t.done.Slot, Ready: e.Ready})
	}
	a := &attempt{s: s, task: t, job: e.Job, began: began}
	a.job.Tags, a.job.MayHaveRun = slices.Clone(e.Tags), e.Suspect > 0
	a.Job, a.Client, a.Reader, a.Steps = &a.job, s.client, s.reader, (*steps)(a)
	if t.batch != nil {
		a.Batch = t.batch.call
	}
	a.open()
	one.attempt.Store(a)
	s.meters.running.Add(1)
	err := errGoexit
	defer func() {
		a.close(err)
		a.passes("", true, false)
		one.attempt.Store(nil)
		s.meters.running.Add(-1)
	}()
	var result json.RawMessage
	result, err = a.call(t.runner.handler)
	end := classify(a, result, err)
	if called, missed := a.StepNames(); called != nil {
		if end.Outcome != stint.OutcomeCompleted {
			missed = nil
		}
		if missed = s.meters.steps(e.Kind, called, missed); missed != nil {
			end.Note = "it did not come to recorded steps: " + words.Several(missed)
		}
	}
	if t.inline != nil && end.Outcome == stint.OutcomeReturned {
		if err := context.Cause(t.inline.caller); err != nil {
			end.Note = "the caller gave up: " + err.Error()
		}
	}
	return end
}

// close ends the attempt after the handler; the task belongs to the stage again.
func (a *attempt) close(err error) {
	a.mu.Lock()
	a.runContext.close()
	a.mu.Unlock()
	a.recording.Wait()
	a.task.log = a.unsaid()
	if a.task.tx == txCompleted && err != nil {
		a.s.emit(event.Event{
			Type: event.EventTrouble, Engine: a.s.token, Job: &a.task.entry.Job,
			Doing: "return from a handler that had completed its job", Err: err,
		})
	}
}

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// call runs the handler and turns a panic into an error. What the handler set with SetResult and
// the like replaces what it returns, but not its panic.
func (a *attempt) call(h stint.Handler) (result json.RawMessage, err error) {
	returned := false
	defer recovered(&err)
	defer func() {
		if !returned {
			_, _ = a.Settle(nil, nil)
		}
	}()
	// Not the named results: what panics when it seals them must not leave them in clear.
	r, e := h(a, &a.job)
	returned = true
	return a.Settle(r, e)
}

// classify says how an attempt ended. An error counts as the stop's only if the engine did cancel
// the handler for a stop: a handler's own timeout is a failure like any other.
func classify(ctx context.Context, result json.RawMessage, err error) store.Result {
	end := store.Result{Outcome: stint.OutcomeCompleted, Result: result}
	if err == nil {
		return end
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, stint.ErrStopping):
		return store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront, Note: "the engine stopped"}
	case store.AsResult(err, &end):
		return end
	case errors.Is(cause, stint.ErrCancelled):
		return store.Result{Outcome: stint.OutcomeCancelled, Err: err, Result: result}
	case errors.Is(cause, stint.ErrTimeout) && !slices.Contains(retry.ErrorClasses(err), "timeout"):
		err = fmt.Errorf("%w: %w", stint.ErrTimeout, err)
	}
	end.Outcome, end.Err = stint.OutcomeFailed, err
	return end
}

// conclude decides what follows a task that ran or did not start, and makes the outcome storable.
func (s *session) conclude(t *task, end store.Result) *task {
	switch drop := s.fenced(); {
	case t.tx == txCompleted:
		t.drop = drop
		return t
	case drop:
		t.drop, t.done = true, store.Completion{Slot: t.done.Slot, Started: t.done.Started}
		return t
	}
	began, slot := t.done.Started, t.done.Slot
	dropBadResult(&end)
	now := time.Now()
	if !began.IsZero() {
		end.Took = now.Sub(began)
	}
	t.done = store.ConcludeWith(s.mux.RetryFuncs(), t.entry, end, s.clock.at(now), random01())
	t.done.Nonce, t.done.Slot = t.claim.ref.Nonce, slot
	t.done.Started, t.done.Ended, t.done.Log = began, now, t.log
	cleanTexts(&t.done)
	if end.Limit != "" {
		s.permits.deferLimit(t, end.Limit, end.Snooze)
	}
	return t
}

// cleanTexts shortens and cleans the texts of an outcome.
func cleanTexts(x *store.Completion) {
	if x.Error != nil {
		x.Error.Message = valid.CleanText(x.Error.Message, maxError)
		x.Error.Stack = valid.CleanHead(x.Error.Stack, maxStack)
		x.Error.Note = valid.CleanText(x.Error.Note, maxError)
	}
	x.Reason = valid.CleanText(x.Reason, maxError)
}

// dropBadResult removes a result that no store can keep. The job is completed all the same, and a
// note says what is missing.
func dropBadResult(end *store.Result) {
	if end.Result == nil {
		return
	}
	if err := valid.JSON("result", end.Result, maxResult); err != nil {
		end.Note = "the result was not kept: " + err.Error()
		end.Result = nil
	}
}
