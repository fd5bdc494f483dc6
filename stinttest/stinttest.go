package stinttest

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// Store is what is needed of a database. Those of packages sqlite and postgres
// are such stores.
type Store interface {
	store.Store
	store.ClaimedEnqueuer
	store.Inspector
	store.Operator
}

// Worker performs the jobs of a store for one test. It belongs to the test's
// goroutine.
type Worker struct {
	t      testing.TB
	store  Store
	client *stint.Client
	mux    *stint.Mux
	engine *engine.Engine
	config engine.Config
	time   timeline

	mu    sync.Mutex  // guards begun: events come from the engine's goroutines
	begun []stint.Job // those that are not in a report yet
}

// New makes a worker with an SQLite database in memory, which is gone when the
// test ends. A transaction of the caller's cannot reach it: a program that
// enqueues in its own transactions is tested with [On].
//
// In a bubble call it inside, where its goroutines belong.
func New(t testing.TB, mux *stint.Mux, config ...engine.Config) *Worker {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Memory)
	if err != nil {
		t.Fatalf("stinttest: %v", err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return On(t, store, mux, config...)
}

// On makes a worker for the caller's store, which the caller closes. No engine may
// work on it meanwhile, or the jobs are divided between the two.
//
// A configuration is the one of the program's engine: its Queues, Client, Version
// and OnEvent count here too. Slots do not, since one job runs at a time.
func On(t testing.TB, store Store, mux *stint.Mux, config ...engine.Config) *Worker {
	t.Helper()
	w := &Worker{t: t, store: store, mux: mux}
	if len(config) > 0 {
		w.config = config[0]
	}
	w.client = w.config.Client
	if w.client == nil {
		w.client = stint.NewClient(store)
	}
	c := w.config
	c.OnEvent = w.hear
	if bubble() {
		w.time = &jumping{store: store, planner: w.planner()}
		c.TimeToLive = time.Minute // handlers may let hours pass; each beat is a write
	} else {
		w.time = &reckoned{store: store}
	}
	var err error
	if w.engine, err = engine.New(store, mux, c); err != nil {
		t.Fatalf("stinttest: %v", err)
	}
	return w
}

// Client is a client of the worker's store: the one of its configuration, or a
// plain one.
func (w *Worker) Client() *stint.Client { return w.client }

// Store is the worker's store, to look at.
func (w *Worker) Store() Store { return w.store }

func (w *Worker) planner() *store.Planner { return store.NewPlanner(w.mux.Recurrences()) }

// hear logs what went wrong beside the jobs, such as in a hook, and remembers
// what began.
func (w *Worker) hear(e event.Event) {
	switch e.Type {
	case event.EventTrouble:
		w.t.Logf("stinttest: %s: %v", e.Doing, e.Err)
	case event.EventStarted:
		w.mu.Lock()
		w.begun = append(w.begun, *e.Job)
		w.mu.Unlock()
	}
	if w.config.OnEvent != nil {
		w.config.OnEvent(e)
	}
}

// takeBegun returns the jobs that have begun since it was called last.
func (w *Worker) takeBegun() []stint.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	begun := w.begun
	w.begun = nil
	return begun
}

// bubble reports whether the caller is in a bubble of synctest.
func bubble() (in bool) {
	defer func() { _ = recover() }() // outside, Wait panics
	synctest.Wait()
	return true
}

// Perform enqueues one job and runs its handler at once, and says how that
// ended: the way to test a handler by itself, with its middleware, timeout and
// hooks around it. The run is recorded as any other is, so a job that is to be
// retried waits for [Worker.Drain]; a job that cannot be run fails the test. It waits for none of the limits of its
// kind: Drain keeps to them.
//
//	run := stinttest.Perform(w, SendInvoice, Invoice{42})
//	if run.Err() != nil { … }
func Perform[A any](w *Worker, kind stint.Kind[A], args A, options ...stint.Option) Run {
	w.t.Helper()
	job, err := kind.New(args, append(slices.Clip(options), stint.Unlimited())...)
	if err != nil {
		w.t.Fatalf("stinttest: %v", err)
	}
	x, err := w.engine.RunNow(w.t.Context(), job)
	if err != nil {
		w.t.Fatalf("stinttest: %v", err)
	}
	begun := w.takeBegun()
	if len(begun) == 0 { // it expired before it could begin
		return runOf(&stint.Job{ID: x.Job, Kind: job.Kind, Args: job.Args, Queue: job.Queue, Attempt: x.Attempt}, x)
	}
	return runOf(&begun[0], x)
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
