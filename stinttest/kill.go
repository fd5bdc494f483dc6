package stinttest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/killpoint"
	"github.com/stint-go/stint/store"
)

// KillBefore has the process die once, after the function of a step has returned and before that is
// recorded: the job is lost with its engine and runs again, as after a crash, and does the step again.
//
//	report := w.Drain(stinttest.KillBefore("charge")) // is the customer charged twice?
//
// The handler ends where it stands (runtime.Goexit): its deferred functions are called, which a crash
// would not do, and what it began in other goroutines goes on until it comes to a step. The report has the
// run as lost. A step that none of the runs comes to fails the test. Before a question, a wait for a
// signal, a sleep or a call is recorded the process dies likewise.
func KillBefore(step string) Option {
	return func(d *drain) { d.kill = &kill{step: step} }
}

// KillAfter is [KillBefore], but the step is recorded: the job runs again and does not repeat it.
func KillAfter(step string) Option {
	return func(d *drain) { d.kill = &kill{step: step, done: true} }
}

// EachKill calls a test again and again, each time with an option for its drains with which the process
// dies at another point: before and after each step of each run is recorded, and when a handler has
// returned and that is not recorded. What holds after each of these runs holds wherever a process is
// killed.
//
//	stinttest.EachKill(t, func(t *testing.T, kill stinttest.Option) {
//		w := stinttest.New(t, mux)
//		order(t, w.Client(), 42)
//		w.Drain(kill)
//		if n := charges(42); n != 1 {
//			t.Errorf("charged %d times", n)
//		}
//	})
//
// It ends with a call in which the process does not die, because there are no more points. A test with a
// bubble begins it in the function. See [KillBefore] for how a handler dies.
func EachKill(t *testing.T, test func(t *testing.T, kill Option)) {
	t.Helper()
	for n := 1; ; n++ {
		k := &kill{nth: n}
		ran := t.Run(fmt.Sprintf("kill %d", n), func(t *testing.T) { test(t, func(d *drain) { d.kill = k }) })
		switch {
		case !ran && k.at == "":
			return // it fails by itself
		case k.seen == 0:
			t.Error("stinttest: EachKill: no handler ran in a drain with the option")
			return
		case k.at == "":
			return
		}
	}
}

// kill is one death of the process. Its methods work on nil as well: nothing dies.
type kill struct {
	step string // where it dies, and when
	done bool
	nth  int // or at which of all points; zero for the step

	mu   sync.Mutex // points may come at the same time
	seen int        // points
	at   string     // where it died; empty while it lives
	dead killpoint.Point
	gone bool  // its engine is buried
	err  error // why it could not be
}

// context returns the context of runs that may die.
func (k *kill) context(ctx context.Context, w *Worker) context.Context {
	if k == nil {
		return ctx
	}
	return killpoint.Context(ctx, func(p killpoint.Point) {
		if k.dies(ctx, w, p) && p.Step != "" {
			runtime.Goexit()
		}
	})
}

// dies reports whether the process dies at a point, or has died before. Then its engine is buried, as others
// do when it no longer beats, but not while the handler has a transaction, which the burial may wait for.
func (k *kill) dies(ctx context.Context, w *Worker, p killpoint.Point) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.at == "" {
		if k.seen++; k.nth > 0 && k.seen != k.nth || k.nth == 0 && (p.Step != k.step || p.Done != k.done) {
			return false
		}
		k.dead, k.at = p, "after the end of the handler"
		if p.Step != "" {
			k.at = fmt.Sprintf("before step %q was recorded", p.Step)
		}
		if p.Step != "" && p.Done {
			k.at = fmt.Sprintf("after step %q was recorded", p.Step)
		}
		w.t.Logf("stinttest: job %d was killed %s", p.Job, k.at)
	}
	if k.dead.Engine != p.Engine {
		return false
	}
	if !k.gone && !p.InTx {
		k.gone = true
		_, k.err = engine.Bury(ctx, w.store, store.EngineID(p.Engine), "killed by the test")
	}
	return true
}

// killed returns the runs that have ended by the death of the process, which is the error of those runs,
// or that error.
func (k *kill) killed(ctx context.Context, w *Worker, err error) (runs []Run, _ error) {
	switch {
	case k == nil || !k.gone:
		return nil, err
	case k.err != nil: // it goes on, and proves nothing
		return nil, fmt.Errorf("bury the engine that was killed %s: %w", k.at, k.err)
	case !errors.Is(err, store.ErrBuried):
		return nil, err
	}
	k.gone = false
	for _, job := range w.takeBegun() {
		now, err := w.store.Job(ctx, job.ID)
		if err != nil {
			return nil, fmt.Errorf("look for job %d, which was killed: %w", job.ID, err)
		}
		last := now.Attempts[len(now.Attempts)-1]
		runs = append(runs, Run{
			Job: job, At: last.Started, Took: last.Finished.Sub(last.Started), Outcome: last.Outcome, Final: last.Final,
			Reason: last.Reason, Result: last.Result, Failure: last.Error,
		})
	}
	return runs, nil
}

// unseen reports whether the process did not die since no run came to the step.
func (k *kill) unseen() bool { return k != nil && k.nth == 0 && k.at == "" }
