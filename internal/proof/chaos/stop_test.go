//go:build unix

package chaos_test

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// cancelGrace is how long a stopping engine waits for the handlers that it
// cancelled when the grace was over.
const cancelGrace = 5 * time.Second

// promptly is how soon after a signal nothing begins any more.
const promptly = time.Second

func TestAWorkerToldToStopFinishesWhatRunsAndLeavesNothingBehind(t *testing.T) {
	const long = 10
	for _, tt := range few(1, slices.All([]struct {
		name   string
		signal syscall.Signal
		grace  time.Duration
		ends   check.How // of what would run for longer than the grace
	}{
		{"TERM", syscall.SIGTERM, 0, check.OK},
		{"INT", syscall.SIGINT, 0, check.OK},
		{"TERM, and the grace is over", syscall.SIGTERM, 2 * promptly, check.Cancelled},
	})) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			ids := w.enqueue("long", 0, long, func(int) chaos.Args { return chaos.Args{Hang: "worker"} })
			w.enqueue("quick", 0, 30_000, quick)
			worker := w.Start(chaos.Worker{Name: "worker", DB: w.url, Slots: 2 * long, Grace: tt.grace})
			held := w.catch(worker, 200, 5000)
			told, at := check.Now(), time.Now()
			worker.Signal(tt.signal)
			worker.Thaw()
			time.Sleep(promptly + promptly/2)
			if tt.ends == check.OK {
				w.LetGo()
			}
			code, gone := worker.Exit(time.Minute)
			if code != 0 {
				t.Errorf("exit code %d", code)
			}
			token := w.Await("worker", event.EventLeft, 1, 0).Engine

			roster := w.number(`select count(*) from stint.engines`)
			late := w.number(`select count(*) from stint.claims where engine = $1 and made > $2`, token, at.Add(promptly))
			open := w.number(`
				select count(*) from stint.claims c, unnest(c.positions) as p(pos)
				where c.engine = $1 and not exists (select from stint.executions x where x.pos = p.pos)`, token)
			charged := w.number(`select count(*) from stint.jobs where attempt > 1 or losses > 0`)
			waits := w.number(`select count(*) from stint.jobs where state = 'available'`)
			if roster+late+open+charged > 0 || waits == 0 {
				t.Errorf("%d engines are in the roster, %d claims came after the signal, %d entries are still claimed, %d jobs were charged; %d wait",
					roster, late, open, charged, waits)
			}

			// Each run has the outcome that its handler saw, and nothing else
			// has one but what was handed back.
			outcome, runs, running := w.outcomes(), w.history().runsOn("worker"), 0
			for id, r := range runs {
				want := map[check.How]string{check.OK: check.OutcomeCompleted, check.Cancelled: check.OutcomeReturned}[r.How]
				if want == "" || outcome[id] != want {
					t.Errorf("the run of job %d ended %q, and was recorded as %q", id, r.How, outcome[id])
				}
				if r.Start > told.Add(promptly) {
					t.Errorf("job %d began %v after the signal", id, r.Start.Sub(told))
				}
				if r.End > told {
					running++
				}
				delete(outcome, id)
			}
			for _, id := range ids {
				if r := runs[int64(id)]; r.How != tt.ends || r.End < told {
					t.Errorf("the long job %d ended %q, %v before the signal", id, r.How, told.Sub(r.End))
				}
			}
			for id, how := range outcome {
				if how != check.OutcomeReturned {
					t.Errorf("job %d never began and was %s", id, how)
				}
			}
			t.Logf("at the signal it held %d jobs not begun, and was gone %v later; %d jobs ran, %d of them ended after the signal, %d were handed back unstarted, %d were never claimed",
				held, gone.Sub(told), len(runs), running, len(outcome), waits-len(outcome))

			w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: 2 * long})
			w.Drain(t.Context(), w.store, 2*time.Minute)
			w.apart()
		})
	}
}

// Handlers that do not heed their cancellation cannot be ended, only their
// process can. Until it is gone their jobs are its own: it goes on beating, or
// they would run elsewhere beside it.
func TestHandlersThatIgnoreTheStopRunAgainElsewhereOnlyWhenTheirProcessIsGone(t *testing.T) {
	const (
		grace = time.Second
		deaf  = 3
		heed  = 3
	)
	for name, signal := range few(1, maps.All(map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			ttl := min(pace.Of(2*time.Second), grace+cancelGrace-time.Second) // less than the stop takes
			worker := w.Start(chaos.Worker{Name: "worker", DB: w.url, Slots: deaf + heed, TimeToLive: ttl, Grace: grace})
			token := w.Await("worker", event.EventJoined, 1, time.Minute).Engine
			ignoring := w.enqueue("deaf", 0, deaf, func(int) chaos.Args { return chaos.Args{Deaf: "worker", Lock: true, Work: 100} })
			heeding := w.enqueue("heed", 0, heed, func(int) chaos.Args { return chaos.Args{Hang: "worker", Lock: true, Work: 100} })
			w.until("they run and were announced", `select count(*) = $1 from stint.jobs where begun`, deaf+heed)
			other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: deaf + heed, TimeToLive: ttl})
			w.Await("other", event.EventJoined, 1, time.Minute)
			w.enqueue("quick", 0, 1000, quick)

			told := check.Now()
			worker.Signal(signal)
			code, gone := worker.Exit(time.Minute)
			w.Disturb(check.Disturbance{Does: check.Deafens, Process: "worker", From: told, To: gone})
			if took := gone.Sub(told); code != 3 || took < grace+cancelGrace || took > grace+cancelGrace+pace.Of(3*time.Second) {
				t.Errorf("exit code %d after %v", code, took)
			}
			if n := chaos.Count(w.Events("worker"), event.EventLeft); n > 0 {
				t.Error("it left the roster, though handlers still ran")
			}
			burial := w.Await("other", event.EventBurial, 1, 10*time.Second)
			if burial.Other != token || burial.Count != deaf || burial.Begun != deaf {
				t.Errorf("the burial was %+v", burial)
			}
			w.Drain(t.Context(), w.store, time.Minute)

			closed, again := w.history().took(t, "worker", "other", ignoring)
			if again < closed {
				t.Errorf("they ran again %v before their process closed its books", closed.Sub(again))
			}
			t.Logf("exit code %d, %v after the signal; its jobs ran again %v after the process said its last word and %v after it was seen to be gone",
				code, gone.Sub(told), again.Sub(closed), again.Sub(gone))
			w.ended(ignoring, "worker lost at attempt 1, other completed at attempt 2")
			w.ended(heeding, "worker returned at attempt 1, other completed at attempt 1")
			if err := other.Stop(); err != nil {
				t.Error(err)
			}
			if n := w.Burials(t.Context(), w.ground); n != 1 {
				t.Errorf("%d engines were buried", n)
			}
			w.apart()
		})
	}
}

func TestASecondSignalEndsAWorkerAtOnce(t *testing.T) {
	const n = 4
	for name, signals := range few(1, maps.All(map[string][2]syscall.Signal{
		"TERM and TERM": {syscall.SIGTERM, syscall.SIGTERM},
		"INT and INT":   {syscall.SIGINT, syscall.SIGINT},
		"INT and TERM":  {syscall.SIGINT, syscall.SIGTERM},
	})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			worker := w.Start(chaos.Worker{Name: "worker", DB: w.url, Slots: n})
			w.Await("worker", event.EventJoined, 1, time.Minute)
			ids := w.enqueue("deaf", 0, n, func(int) chaos.Args { return chaos.Args{Deaf: "worker", Lock: true, Work: 100} })
			w.until("they run and were announced", `select count(*) = $1 from stint.jobs where begun`, n)
			other := w.Start(chaos.Worker{Name: "other", DB: w.url, Slots: n})
			w.Await("other", event.EventJoined, 1, time.Minute)

			worker.Signal(signals[0])
			time.Sleep(time.Second)
			if worker.Gone() {
				t.Fatal("it was gone after the first signal")
			}
			told := check.Now()
			w.Disturb(check.Disturbance{Does: check.Kills, Process: "worker", From: told})
			worker.Signal(signals[1])
			code, gone := worker.Exit(10 * time.Second)
			if took := gone.Sub(told); code != 3 || took > pace.Of(time.Second) {
				t.Errorf("exit code %d after %v", code, took)
			}
			w.Drain(t.Context(), w.store, time.Minute)
			_, again := w.history().took(t, "worker", "other", ids)
			t.Logf("exit code %d, %v after the second signal; its jobs ran again %v later", code, gone.Sub(told), again.Sub(gone))
			w.ended(ids, "worker lost at attempt 1, other completed at attempt 2")
			if err := other.Stop(); err != nil {
				t.Error(err)
			}
			w.apart()
		})
	}
}
