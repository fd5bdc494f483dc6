package storetest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var concurrentTests = []test{
	{"Whatever happens at once, every committed job ends in one final state", func(t *T) {
		s := newStorm(t)
		calm := s.disturb()
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() { s.write(i) })
		}
		for i := range 4 {
			wg.Go(func() { s.work(i) })
		}
		for i := range 2 {
			wg.Go(func() { s.promote(i) })
		}
		wg.Go(s.bury)
		wg.Go(s.cancels)
		wg.Wait()
		calm()
		s.drain()
		s.settle()
	}},
}

// storm is one run of the randomised test. Writers, engines, promoters and a
// burier go on beside each other until its end; then it is drained, and what
// the writers know is held against what the store says.
//
//	16 writers ──▶ ┌───────┐ ◀── 4 engines: claim, finish, repeat, hold back, rejoin
//	               │ store │ ◀── 2 promoters
//	  a snapshot ──│       │ ◀── 1 burier of engines
//	  and a write ─└───────┘ ◀── 1 who cancels
//	  held open
type storm struct {
	*T
	seed   Seed
	stores [2]Store // two handles, as of two processes
	begun  time.Time
	end    time.Time
	limit  int // how many jobs the writers make at most

	mu        sync.Mutex // guards what follows
	keys      int
	committed map[int]stint.ID // by the key in the job's arguments
	undone    map[int]bool     // keys of jobs that were rolled back
	seen      map[int]bool     // keys of jobs that an engine claimed
	taken     map[store.Position]store.EngineID
	standing  map[store.EngineID]bool
	latest    [16]stint.ID // claimed last
	answers   map[stint.ID]stint.CancelStatus
	did       map[string]int
}

// LoadVariable names the environment variable that scales the randomised
// test: 1 is two seconds and at most 4,000 jobs. With less than 1 tests also give
// up sooner, which is for runs that are to fail.
const LoadVariable = "STINT_STORETEST_LOAD"

func load() float64 {
	load, err := strconv.ParseFloat(os.Getenv(LoadVariable), 64)
	if err != nil || load <= 0 {
		return 1
	}
	return load
}

// patience is how long a test waits for what comes at once, but on a busy
// machine. Only a test that fails waits that long.
func patience() time.Duration {
	if load() < 1 {
		return 2 * time.Second
	}
	return 30 * time.Second
}

func newStorm(t *T) *storm {
	load := load()
	t.ctx = t.Context() // it may last longer than other tests
	now := time.Now()
	return &storm{
		T: t, seed: NewSeed(t), stores: [2]Store{t.Store, t.again()},
		begun: now, end: now.Add(time.Duration(load * float64(2*time.Second))), limit: int(4000 * load),
		committed: map[int]stint.ID{}, undone: map[int]bool{}, seen: map[int]bool{},
		taken: map[store.Position]store.EngineID{}, standing: map[store.EngineID]bool{},
		answers: map[stint.ID]stint.CancelStatus{}, did: map[string]int{},
	}
}

// disturb holds open what the store can bear: a snapshot, and transactions
// that wrote. The function that it returns ends them.
func (s *storm) disturb() (calm func()) {
	var ends []func()
	if s.Pin != nil {
		release := must(s.Pin(s.T.T, s.Store))(s)
		ends = append(ends, release)
	}
	if !s.SingleWriter {
		for _, commit := range []bool{true, false} {
			tx := s.begin()
			b := s.batch(5)
			s.must(b.enqueue(stint.NewClient(s.Store).With(tx.Tx())))
			ends = append(ends, func() { s.must(b.finish(tx, commit)) })
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// count notes that something was done, for the summary.
func (s *storm) count(what string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.did[what] += n
}

// blows tells whether the storm goes on.
func (s *storm) blows() bool { return time.Now().Before(s.end) && s.ctx.Err() == nil }

// drain buries every engine and works until nothing is left to do.
func (s *storm) drain() {
	for token := range s.standing {
		_, err := Bury(s.ctx, s.Store, store.Burial{Engine: token}, Judge)
		expect(s, err == nil || errors.Is(err, store.ErrBuried), "bury an engine at the end: %v", err)
	}
	w := s.join("k")
	for {
		p := must(s.Store.Promote(s.ctx, time.Time{}, 1000))(s)
		entries := must(w.TryClaimAll(s.ctx, 500))(s)
		var done, unwanted []store.Entry
		for _, e := range entries {
			s.take(w, e)
			if e.Cancelled {
				unwanted = append(unwanted, e)
			} else {
				done = append(done, e)
			}
		}
		w.Complete(done...)
		w.Finish(cancelled, unwanted...)
		if p.Moved == 0 && p.Next < 0 && len(entries) == 0 {
			break
		}
		time.Sleep(min(max(0, p.Next), 5*time.Millisecond))
	}
	w.Leave()
}

// settle compares what the writers know with what the store says; the
// invariants are checked in the cleanup, as in every test.
func (s *storm) settle() {
	l := s.ledger()
	var have []stint.ID
	for _, j := range l.Jobs {
		have = append(have, j.ID)
		s.settleCancelled(j)
		expect(s, j.State.Final(), "job %d is %s after everything was drained", j.ID, j.State)
	}
	slices.Sort(have)
	want := slices.Sorted(maps.Values(s.committed))
	expect(s, slices.Equal(have, want), "%d jobs are there and %d were committed", len(have), len(want))
	for key := range s.seen {
		expect(s, !s.undone[key], "a job that was rolled back was claimed: key %d", key)
	}
	for key, id := range s.committed {
		expect(s, s.seen[key] || s.answers[id] == stint.CancelledNow, "job %d was committed and never claimed: key %d", id, key)
	}
	counts := must(s.Store.Counts(s.ctx))(s)
	sum := int64(0)
	for state, n := range counts {
		sum += n
		expect(s, state.Final() || n <= 0, "%d jobs are counted as %s", n, state)
	}
	expect(s, sum == int64(len(want)), "%d jobs are counted and %d were committed", sum, len(want))
	if c, ok := s.Store.(store.Canceller); ok {
		left, err := c.Cancelling(s.ctx, have)
		expect(s, err == nil && len(left) <= 0, "%d jobs are still to be cancelled, error %v", len(left), err)
	}
	s.Log(s.summary(len(l.Claims), len(l.Executions)))
}

func (s *storm) summary(claims, executions int) string {
	parts := []string{fmt.Sprintf("%d jobs, %d claims, %d executions in %v", len(s.committed), claims, executions,
		time.Since(s.begun).Round(time.Millisecond))}
	for _, what := range slices.Sorted(maps.Keys(s.did)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, s.did[what]))
	}
	return strings.Join(parts, "; ")
}

// cancels cancels jobs at random, one or a few at a time.
func (s *storm) cancels() {
	rng := s.seed.Rand("canceller")
	for s.blows() {
		time.Sleep(time.Duration(rng.IntN(10)) * time.Millisecond)
		c, ok := s.stores[rng.IntN(2)].(store.Canceller)
		if !ok {
			return
		}
		answers, err := c.Cancel(s.ctx, s.unwanted(1+rng.IntN(4)), "storm")
		if err != nil {
			s.Errorf("cancel: %v", err)
			return
		}
		s.mu.Lock()
		for id, answer := range answers {
			s.did["cancellations: "+string(answer)]++
			if s.answers[id] != stint.CancelledNow {
				s.answers[id] = answer
			}
		}
		s.mu.Unlock()
	}
}

// unwanted is a few jobs of any age, and one that may be running.
func (s *storm) unwanted(n int) []stint.ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := []stint.ID{s.latest[len(s.committed)%len(s.latest)]}
	if ids[0] == 0 {
		ids = nil
	}
	for _, id := range s.committed {
		if len(ids) == n {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// settleCancelled holds the end of a job against what was said when it was
// cancelled. (An engine may be handed the job like any other, if it was buried
// since it claimed it: the marker went with that. Nothing it does counts.)
func (s *storm) settleCancelled(j store.LedgerJob) {
	switch answer := s.answers[j.ID]; {
	case answer == stint.CancelNotFound,
		answer == stint.CancelledNow && j.State != stint.Cancelled,
		answer == stint.CancelTooLate && j.State == stint.Cancelled:
		s.Errorf("job %d is %s in the end, and cancelling it was answered with %q", j.ID, j.State, answer)
	}
}
