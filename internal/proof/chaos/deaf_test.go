//go:build unix

package chaos_test

import (
	"maps"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/chaos"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// Whoever believes to be rung, and is not, finds out by asking: for work each
// second, for what people want at the time of each beat.
func TestWhereNotificationsAreLostEverythingIsFoundByAsking(t *testing.T) {
	for name, share := range few(1, maps.All(map[string]float64{"all": 1, "half": 0.5})) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, pgtest.New(t))
			proxy := w.behind()
			proxy.Deafen(share)
			w.asking(proxy.URL(w.url))
		})
	}
}

// stalls measures for how long, until the function that it returns is called, the machine had no
// time for a process that asked for it.
func stalls() func() time.Duration {
	stop, lost := make(chan struct{}), make(chan time.Duration)
	go func() {
		const nap = 10 * time.Millisecond
		var sum time.Duration
		for began := time.Now(); ; began = time.Now() {
			select {
			case <-time.After(nap):
				sum += time.Since(began) - nap
			case <-stop:
				lost <- sum
				return
			}
		}
	}()
	return func() time.Duration { close(stop); return <-lost }
}

// asking has a fleet of two workers by this address do all that people ring
// for, and holds it to the times within which it is found without a ring.
func (w *world) asking(url string) {
	w.t.Helper()
	const (
		poll = time.Second // engine.DefaultPoll
	)
	ttl, slow := pace.Of(4*time.Second), pace.Of(time.Second) // slow is this machine, and the job
	var keepers []*chaos.Keeper
	for _, name := range []string{"one", "another"} {
		keepers = append(keepers, w.Keep(chaos.Worker{Name: name, DB: url, Slots: 4, TimeToLive: ttl}))
	}
	w.until("both joined", `select count(*) = 2 from stint.engines`)
	takes := func(what string, most time.Duration, do func()) {
		w.t.Helper()
		began, stalled := time.Now(), stalls()
		do()
		took, lost := time.Since(began), stalled()
		w.t.Logf("%s: after %v, of which the machine was away for %v", what, took, lost)
		if took > most+slow+lost {
			w.t.Errorf("%s took %v, more than %v", what, took, most+slow+lost)
		}
	}
	drain := func() { w.Drain(w.t.Context(), w.store, time.Minute) }
	for i := range 3 {
		takes("work is found", poll, func() { w.enqueue("now", 10*i, 10, quick); drain() })
		time.Sleep(700 * time.Millisecond) // they sleep
	}
	takes("work that is due later is found", poll+300*time.Millisecond, func() {
		w.enqueue("later", 0, 10, quick, stint.Delay(300*time.Millisecond))
		drain()
	})

	w.enqueue("hangs", 0, 16, func(int) chaos.Args { return chaos.Args{Hang: chaos.Anywhere} })
	w.until("some of them run", `select exists (select from stint.jobs where state = 'running' and args->>'key' like 'hangs%')`)
	time.Sleep(500 * time.Millisecond)
	running := w.jobsOf(`select id from stint.jobs where state = 'running'`)
	ids := make([]stint.ID, len(running))
	for i, id := range running {
		ids[i] = stint.ID(id)
	}
	w.Cancels(ids...)
	// A job that an engine holds and begins in place of one that was just cancelled is found by the next look.
	takes("a cancellation reaches what runs", 2*(ttl/4), func() {
		if _, err := w.store.Cancel(w.t.Context(), ids, "a test's whim"); err != nil {
			w.t.Fatal(err)
		}
		w.until("those that hang were cancelled", `select bool_and(state = 'cancelled') from stint.jobs where id = any ($1)`, running)
	})
	w.LetGo()
	drain()

	if _, err := w.store.Pause(w.t.Context(), "other", "chaos", "a test's whim"); err != nil {
		w.t.Fatal(err)
	}
	w.enqueue("paused", 0, 10, quick, stint.Queue("other"))
	time.Sleep(2 * poll)
	if n := w.number(`select count(*) from stint.jobs where queue = 'other' and state <> 'available'`); n > 0 {
		w.t.Errorf("%d jobs of a paused queue are not available", n)
	}
	takes("a queue goes on", max(poll, ttl/4), func() {
		if _, err := w.store.Resume(w.t.Context(), "other"); err != nil {
			w.t.Fatal(err)
		}
		drain()
	})
	stopAll(keepers)
	w.Burials(w.t.Context(), w.ground)
	w.t.Log(w.Judge(w.t.Context(), w.ground))
}
