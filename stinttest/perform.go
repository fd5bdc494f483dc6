package stinttest

import (
	"encoding/json"

	"github.com/stint-go/stint"
)

// Perform enqueues one job and runs its handler at once, and says how that
// ended: the way to test a handler by itself, with its middleware, timeout and
// hooks around it. The run is recorded as any other is, so a job that is to be
// retried waits for [Worker.Drain]; a job that cannot be run fails the test.
//
//	run := stinttest.Perform(w, SendInvoice, Invoice{42})
//	if run.Err() != nil { … }
func Perform[A any](w *Worker, kind stint.Kind[A], args A, options ...stint.Option) Run {
	w.t.Helper()
	job, err := kind.New(args, options...)
	if err != nil {
		w.t.Fatalf("stinttest: %v", err)
	}
	x, err := w.engine.RunNow(w.t.Context(), job)
	if err != nil {
		w.t.Fatalf("stinttest: %v", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.begun.ID != x.Job { // it expired before it could begin
		return runOf(&stint.Job{ID: x.Job, Kind: job.Kind, Args: job.Args, Queue: job.Queue, Attempt: x.Attempt}, x)
	}
	return runOf(&w.begun, x)
}

// PerformResult is [Perform] for a kind with a result, which it decodes. The
// result is the zero value when there is none.
func PerformResult[A, R any](w *Worker, kind stint.ResultKind[A, R], args A, options ...stint.Option) (R, Run) {
	w.t.Helper()
	run := Perform(w, kind.Kind, args, options...)
	var result R
	if run.Result != nil && run.Outcome == stint.OutcomeCompleted {
		if err := json.Unmarshal(run.Result, &result); err != nil {
			w.t.Fatalf("stinttest: decode the result of %s: %v", kind.Declaration().Name, err)
		}
	}
	return result, run
}
