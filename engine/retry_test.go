package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

var (
	errPaper = errors.New("no paper")
	errFire  = errors.New("the printer burns")

	noPaper = retry.ErrorClass("no_paper", errPaper)
	fire    = retry.ErrorClass("fire", errFire)
	printer = retry.ErrorClass("printer", errPaper, errFire)
)

// failing returns a mux that knows the kind "print", whose jobs fail with what
// their arguments say until there was that many attempts.
func failing(kind string) *stint.Mux {
	mux := stint.NewMux()
	handle(mux, kind, func(_ context.Context, job *stint.Job) error {
		var args struct {
			Error string
			Until int
		}
		if err := json.Unmarshal(job.Args, &args); err != nil {
			return err
		}
		if args.Until > 0 && job.Attempt >= args.Until {
			return nil
		}
		switch args.Error {
		case "paper":
			return fmt.Errorf("page %d: %w", job.Attempt, errPaper)
		case "fire":
			return fmt.Errorf("page %d: %w", job.Attempt, errFire)
		case "no retry":
			return stint.NoRetry(errPaper)
		case "panic":
			panic(errPaper)
		}
		return errors.New(args.Error)
	})
	return mux
}

func TestTheErrorsClassIsStoredAndChoosesThePolicy(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		start(t, s, failing("print"), engine.Config{})
		byError := retry.ByError(retry.On(fire, retry.None()), retry.On(printer, retry.Fixed(1, 0)), retry.Otherwise(retry.Fixed(2, 0)))
		for _, c := range []struct {
			args        string
			policy      retry.Policy
			class       string
			classes     []string
			runs        int
			reason      string
			recoverable bool
		}{
			{`{"error":"paper"}`, retry.Fixed(1, 0), noPaper, []string{noPaper, printer}, 2, "retries exhausted", true},
			{`{"error":"paper"}`, retry.Fixed(1, 0).Only(fire), noPaper, []string{noPaper, printer}, 1, "error not retriable", false},
			{`{"error":"paper"}`, retry.Fixed(1, 0).Only(printer), noPaper, []string{noPaper, printer}, 2, "retries exhausted", true},
			{`{"error":"paper"}`, retry.Fixed(1, 0).Except(printer), noPaper, []string{noPaper, printer}, 1, "error not retriable", false},
			{`{"error":"paper"}`, byError, noPaper, []string{noPaper, printer}, 2, "retries exhausted", true},
			{`{"error":"fire"}`, byError, fire, []string{fire, printer}, 1, "no retries", true},
			{`{"error":"other"}`, byError, "errors.errorString", nil, 3, "retries exhausted", true},
			{`{"error":"no retry"}`, byError, noPaper, []string{noPaper, printer}, 1, "error not retriable", false},
			{`{"error":"panic"}`, retry.Fixed(1, 0).Only("panic"), "panic", []string{"panic", noPaper, printer}, 2, "retries exhausted", true},
		} {
			job := until(t, s, enqueue(t, s, "print", c.args, stint.Retry(c.policy)), stint.Failed)
			if len(job.Attempts) != c.runs || job.Reason != c.reason {
				t.Errorf("%s under %v: %d runs, %q; want %d, %q", c.args, c.policy, len(job.Attempts), job.Reason, c.runs, c.reason)
			}
			x := job.Attempts[len(job.Attempts)-1]
			if x.Error.Class != c.class || !slices.Equal(x.Error.Classes, c.classes) || *x.Recoverable != c.recoverable || x.Error.Message == "" {
				t.Errorf("%s under %v: stored is %+v, recoverable %v", c.args, c.policy, *x.Error, *x.Recoverable)
			}
		}
	})
}

func TestALongStackIsCutAndNoFailure(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		var fall func(depth int)
		fall = func(depth int) {
			if depth == 0 {
				panic(strings.Repeat("x", 100_000) + "end")
			}
			fall(depth - 1)
		}
		handle(mux, "fall", func(context.Context, *stint.Job) error { fall(1000); return nil })
		start(t, s, mux, engine.Config{})
		job := until(t, s, enqueue(t, s, "fall", `{}`, stint.Retry(retry.None())), stint.Failed)
		f := job.Attempts[0].Error
		if len(f.Stack) > 4<<10 || len(f.Stack) < 4000 || !strings.HasPrefix(f.Stack, "goroutine ") || !strings.HasSuffix(f.Stack, "[cut]") {
			t.Errorf("the stack has %d bytes, from %.20q to %.20q", len(f.Stack), f.Stack, f.Stack[max(0, len(f.Stack)-20):])
		}
		if len(f.Message) > 16<<10 || !strings.HasPrefix(f.Message, "[cut]") || !strings.HasSuffix(f.Message, "xend") {
			t.Errorf("the message has %d bytes", len(f.Message))
		}
	})
}

// A function of the program decides, and the engine that runs the job has it.
func TestAFunctionDecides(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := failing("print")
		mux.RetryFunc("printing", func(cause error, f retry.Failure) retry.Decision {
			switch {
			case errors.Is(cause, errFire):
				return retry.Final("call the fire brigade")
			case f.Took <= 0 || f.Created.IsZero() || f.Due.IsZero() || f.Now.Before(f.Created.Add(-time.Minute)):
				panic(fmt.Sprintf("the failure is %+v", f))
			case !errors.Is(cause, errPaper):
				panic("what is this?")
			case f.Charged == 1:
				return retry.Again(0).To("bulk")
			}
			return retry.At(f.Now.Add(time.Hour))
		})
		start(t, s, mux, engine.Config{})
		policy := stint.Retry(retry.Function("printing").Faulty(1))

		paper := enqueue(t, s, "print", `{"error":"paper"}`, policy)
		var job *stint.JobInfo
		eventually(t, "it failed twice", func() bool {
			job = until(t, s, paper, stint.Retrying)
			return job.Attempt == 3
		})
		wait := job.Due.Sub(job.Finished)
		if job.Queue != "bulk" || !job.Faulty || wait < time.Hour-time.Minute || wait > time.Hour+time.Minute {
			t.Errorf("it is in queue %s, faulty %v, due %v after it failed", job.Queue, job.Faulty, wait)
		}

		if job := until(t, s, enqueue(t, s, "print", `{"error":"fire"}`, policy), stint.Failed); job.Reason != "call the fire brigade" {
			t.Errorf("the reason is %q", job.Reason)
		}

		job = until(t, s, enqueue(t, s, "print", `{"error":"odd"}`, policy), stint.Retrying)
		x := job.Attempts[0]
		if wait := job.Due.Sub(job.Finished); wait < 59*time.Second || wait > 61*time.Second ||
			x.Error.Note != "decided by the default policy: retry function printing panicked: what is this?" {
			t.Errorf("after a panic it waits %v; noted is %q", wait, x.Error.Note)
		}
	})
}

// An engine without the function runs the job all the same: most jobs need no
// decision. One that fails waits until somebody has the function, and does not
// run before that, whoever comes and goes.
func TestAnEngineWithoutTheFunctionLeavesTheDecision(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		policy := stint.Retry(retry.ByError(retry.On(noPaper, retry.Function("printing")), retry.Otherwise(retry.Fixed(1, 0))))
		stop := start(t, s, failing("print"), engine.Config{Instance: "without"})
		fine := enqueue(t, s, "print", `{"error":"paper","until":1}`, policy)
		other := enqueue(t, s, "print", `{"error":"other"}`, policy)
		again := enqueue(t, s, "print", `{"error":"paper","until":2}`, policy)
		final := enqueue(t, s, "print", `{"error":"paper","until":3}`, policy)
		cancelled := enqueue(t, s, "print", `{"error":"paper","until":4}`, policy)
		until(t, s, fine, stint.Completed)
		if job := until(t, s, other, stint.Failed); job.Reason != "retries exhausted" {
			t.Errorf("what needs no function is %s: %s", job.State, job.Reason)
		}
		for _, id := range []stint.ID{again, final, cancelled} {
			if job := until(t, s, id, stint.Retrying); job.PendingRetry != "printing" || len(job.Attempts) != 1 ||
				job.Attempts[0].Error.Note != "left to an engine that has the retry function printing" {
				t.Errorf("job %d waits for %q after %+v", id, job.PendingRetry, job.Attempts)
			}
		}
		if _, err := s.(store.Canceller).Cancel(t.Context(), []stint.ID{cancelled}, "sold out"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond) // longer than any poll
		for _, id := range []stint.ID{again, final} {
			if job := until(t, s, id, stint.Retrying); len(job.Attempts) != 1 {
				t.Errorf("job %d ran again before the decision", id)
			}
		}

		// This one has the function, and knows neither the kind nor the queue.
		deciding := stint.NewMux()
		var asked atomic.Int32
		deciding.RetryFunc("printing", func(cause error, f retry.Failure) retry.Decision {
			asked.Add(1)
			if cause != retry.Told("page 1: no paper") || f.Message != "page 1: no paper" || !slices.Contains(f.Classes, printer) || f.Charged != 1 || f.Took <= 0 {
				panic(fmt.Sprintf("the cause is %#v, the failure %+v", cause, f))
			}
			if f.Created.IsZero() || len(f.Classes) == 0 {
				return retry.Final("nothing is known")
			}
			return retry.Again(0)
		})
		deciding.RetryFunc("another", func(error, retry.Failure) retry.Decision { panic("not asked") })
		start(t, s, deciding, engine.Config{Instance: "deciding", Queues: []string{"elsewhere"}})
		job := until(t, s, again, stint.Completed)
		if len(job.Attempts) != 3 || job.Attempts[1].Instance != "deciding" || job.Attempts[1].Reason != "decided by the retry function printing" ||
			job.Attempts[2].Attempt != 2 {
			t.Errorf("its executions are %+v", job.Attempts)
		}
		eventually(t, "the second failure waits, or its decision does", func() bool { return asked.Load() >= 2 })
		if job := until(t, s, cancelled, stint.Cancelled); job.Reason != "sold out" {
			t.Errorf("the cancelled is %s", job.Reason)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// The deciding engine ends jobs as well, tells so, and a panic in its function
// is noted.
func TestADecisionElsewhereMayBeTheEnd(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		stop := start(t, s, failing("print"), engine.Config{})
		final := enqueue(t, s, "print", `{"error":"paper"}`, stint.Retry(retry.Function("f")))
		panics := enqueue(t, s, "print", `{"error":"fire"}`, stint.Retry(retry.Function("f")))
		until(t, s, final, stint.Retrying)
		until(t, s, panics, stint.Retrying)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		mux := stint.NewMux()
		mux.RetryFunc("f", func(_ error, f retry.Failure) retry.Decision {
			if slices.Contains(f.Classes, fire) {
				panic("oh")
			}
			return retry.Final("customer left")
		})
		var hooks journal
		mux.Hook(hooks.hooks(""))
		handle(mux, "print", func(context.Context, *stint.Job) error { return nil })
		ends := make(chan event.Event, 10)
		stop = start(t, s, mux, engine.Config{OnEvent: func(e event.Event) {
			if e.Type == event.EventEnded {
				ends <- e
			}
		}})
		job := until(t, s, final, stint.Failed)
		if x := job.Attempts[1]; job.Reason != "customer left" || x.Slot != 0 || x.Error.Class != noPaper {
			t.Errorf("it ended with %q: %+v", job.Reason, x)
		}
		if e := <-ends; e.Job.ID != final || !e.Attempt.Final || e.Attempt.Reason != "customer left" {
			t.Errorf("the event is %+v", e)
		}
		eventually(t, "the default policy answers for the panic", func() bool { return until(t, s, panics, stint.Retrying).PendingRetry == "" })
		job = until(t, s, panics, stint.Retrying)
		if note := job.Attempts[1].Error.Note; note != "decided by the default policy: retry function f panicked: oh" ||
			job.Due.Sub(job.Finished).Round(time.Second) != time.Minute {
			t.Errorf("it is due %v after the decision; noted is %q", job.Due.Sub(job.Finished), note)
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if got := hooks.of(final); got != "last 2" || hooks.of(panics) != "" {
			t.Errorf("hooks called by who decided: %q, and %q of what goes on", got, hooks.of(panics))
		}
	})
}

// Losses only count, so a burier needs no function.
func TestALossUnderAFunctionNeedsNoDecision(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := failing("print")
		id := enqueue(t, s, "print", `{"error":"paper","until":1}`, stint.Retry(retry.Function("f")))
		w := storetest.NewWorker(t, s.(storetest.Store), "print")
		if err := s.Join(t.Context(), w.Info, nil); err != nil {
			t.Fatal(err)
		}
		w.Heartbeat(w.One().Pos)
		if _, err := engine.Bury(t.Context(), s, w.Info.Token, "it died"); err != nil {
			t.Fatal(err)
		}
		start(t, s, mux, engine.Config{})
		job := until(t, s, id, stint.Completed)
		if len(job.Attempts) != 2 || job.Attempts[0].Outcome != stint.OutcomeLost || job.Attempts[0].Error.Class != "lost" || !*job.Attempts[0].Recoverable {
			t.Errorf("its executions are %+v", job.Attempts)
		}
	})
}

func TestARedeployWithAnotherDefaultKeepsThePolicyOfJobs(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		old := stint.NewKind[struct{}]("print", stint.Retry(retry.Fixed(1, 0)))
		now := stint.NewKind[struct{}]("print", stint.Retry(retry.None()))
		client := stint.NewClient(s)
		before, err := old.Enqueue(t.Context(), client, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		after, err := now.Enqueue(t.Context(), client, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		mux := stint.NewMux()
		stint.Handle(mux, now, func(context.Context, *stint.Job, struct{}) error { return errPaper })
		start(t, s, mux, engine.Config{})
		for id, want := range map[stint.ID]struct {
			runs   int
			reason string
		}{before: {2, "retries exhausted"}, after: {1, "no retries"}} {
			if job := until(t, s, id, stint.Failed); len(job.Attempts) != want.runs || job.Reason != want.reason {
				t.Errorf("%s: %d runs, %s; want %d, %s", job.Retry, len(job.Attempts), job.Reason, want.runs, want.reason)
			}
		}
	})
}
