package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pace"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// gauge counts what runs at once, by key.
type gauge struct {
	mu    sync.Mutex
	now   map[string]int
	most  map[string]int
	order map[string][]int
	ended atomic.Int64
}

func newGauge() *gauge {
	return &gauge{now: map[string]int{}, most: map[string]int{}, order: map[string][]int{}}
}

func (g *gauge) run(key string, n int, d time.Duration) {
	g.mu.Lock()
	g.now[key]++
	g.most[key] = max(g.most[key], g.now[key])
	g.order[key] = append(g.order[key], n)
	g.mu.Unlock()
	time.Sleep(d)
	g.mu.Lock()
	g.now[key]--
	g.mu.Unlock()
	g.ended.Add(1)
}

func (g *gauge) greatest(key string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.most[key]
}

// numbered are the arguments of the jobs of these tests.
type numbered struct {
	Key string `json:"key"`
	N   int    `json:"n"`
}

// limitedMux runs jobs of the kind k for a while each.
func limitedMux(g *gauge, d time.Duration, rules map[string]stint.LimitRule) *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[numbered]("k"), func(_ context.Context, _ *stint.Job, a numbered) error {
		g.run(a.Key, a.N, d)
		return nil
	})
	for name, rule := range rules {
		mux.Limit(name, rule)
	}
	return mux
}

// enqueueNumbered enqueues n jobs of each key, in turns.
func enqueueNumbered(t *testing.T, s stint.Enqueuer, n int, keys []string, opts ...stint.Option) {
	t.Helper()
	var jobs []stint.NewJob
	for i := range n {
		for _, key := range keys {
			args, _ := json.Marshal(numbered{key, i})
			jobs = append(jobs, stint.KindInfo{Name: "k"}.Job(args, opts...))
		}
	}
	for some := range slices.Chunk(jobs, 1000) {
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), some); err != nil {
			t.Fatal(err)
		}
	}
}

func await(t *testing.T, what string, d time.Duration, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(d); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, d)
		}
	}
}

func TestALimitBoundsWhatRunsOverAllEngines(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g := newGauge()
		mux := limitedMux(g, 5*time.Millisecond, map[string]stint.LimitRule{"three": {AtOnce: 3}})
		for range 4 {
			start(t, s, mux, engine.Config{Slots: 5})
		}
		enqueueNumbered(t, s, 300, []string{"a"}, stint.Limited("three"))
		await(t, "300 jobs", time.Minute, func() bool { return g.ended.Load() == 300 })
		if most := g.greatest("a"); most != 3 {
			t.Errorf("%d ran at once, want 3", most)
		}
	})
}

func TestALimitOfAQueueBoundsAllOfItsJobs(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g := newGauge()
		mux := limitedMux(g, 5*time.Millisecond, map[string]stint.LimitRule{"queue=a": {AtOnce: 3}, "two": {AtOnce: 2}})
		for range 4 {
			start(t, s, mux, engine.Config{Slots: 5})
		}
		enqueueNumbered(t, s, 200, []string{"plain"}, stint.Queue("a"))
		enqueueNumbered(t, s, 50, []string{"limited"}, stint.Queue("a"), stint.Limited("two"))
		enqueueNumbered(t, s, 200, []string{"other"}, stint.Queue("b"))
		await(t, "450 jobs", time.Minute, func() bool { return g.ended.Load() == 450 })
		if plain, limited, other := g.greatest("plain"), g.greatest("limited"), g.greatest("other"); plain != 3 || limited > 2 || other <= 3 {
			t.Errorf("of the queue %d ran at once, want 3, of those with a limit of their own %d, want 2, and of another queue %d", plain, limited, other)
		}
		// The engines are idle, and claim without a look what comes into a queue that they know.
		if err := s.(store.Limiter).SetLimit(t.Context(), stint.QueueLimit, stint.LimitRule{AtOnce: 1}, "", ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond) // they have heard of it, and looked in vain
		enqueueNumbered(t, s, 40, []string{"one"}, stint.Queue("b"))
		await(t, "40 jobs", time.Minute, func() bool { return g.ended.Load() == 490 })
		if most := g.greatest("one"); most != 1 {
			t.Errorf("%d ran at once of a queue when each queue may run one", most)
		}
		if _, err := s.(store.Limiter).ResetLimit(t.Context(), stint.QueueLimit); err != nil {
			t.Fatal(err)
		}
		time.Sleep(100 * time.Millisecond)
		enqueueNumbered(t, s, 100, []string{"again"}, stint.Queue("b"))
		await(t, "100 jobs", time.Minute, func() bool { return g.ended.Load() == 590 })
		if most := g.greatest("again"); most < 2 {
			t.Errorf("%d ran at once after the limit was taken back", most)
		}
	})
}

// Keys share the room of a claim, but not with those whose jobs are less urgent.
func TestUrgentJobsGoBeforeThoseOfOtherKeys(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g := newGauge()
		enqueueNumbered(t, s, 200, []string{"later"}, stint.LimitedBy("wide", "/key"), stint.Priority(1))
		enqueueNumbered(t, s, 200, []string{"first"}, stint.LimitedBy("wide", "/key"), stint.Priority(0))
		late := 0 // how many of the others ended before all urgent ones had begun
		mux := stint.NewMux()
		stint.Handle(mux, stint.NewKind[numbered]("k"), func(_ context.Context, _ *stint.Job, a numbered) error {
			g.mu.Lock()
			if a.Key == "later" && len(g.order["first"]) < 200 {
				late++
			}
			g.mu.Unlock()
			g.run(a.Key, a.N, time.Millisecond)
			return nil
		})
		mux.Limit("wide", stint.LimitRule{AtOnce: 1000})
		start(t, s, mux, engine.Config{Slots: 4})
		await(t, "400 jobs", time.Minute, func() bool { return g.ended.Load() == 400 })
		g.mu.Lock()
		defer g.mu.Unlock()
		if late > 10 {
			t.Errorf("%d of the less urgent jobs ran before all urgent ones had begun", late)
		}
	})
}

func TestJobsOfOneKeyRunOneAfterTheOther(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g := newGauge()
		mux := limitedMux(g, time.Millisecond, map[string]stint.LimitRule{"key": {AtOnce: 1}})
		var keys []string
		for i := range 40 {
			keys = append(keys, fmt.Sprintf("key %d", i))
		}
		enqueueNumbered(t, s, 20, keys, stint.LimitedBy("key", "/key"))
		for range 2 {
			start(t, s, mux, engine.Config{Slots: 10})
		}
		await(t, "800 jobs", time.Minute, func() bool { return g.ended.Load() == 800 })
		for _, key := range keys {
			if most := g.greatest(key); most != 1 {
				t.Errorf("%d of %s ran at once", most, key)
			}
			if !slices.IsSorted(g.order[key]) {
				t.Errorf("%s ran in the order %v", key, g.order[key])
			}
		}
	})
}

func TestSeveralLimitsHoldAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		all, g := newGauge(), newGauge()
		mux := stint.NewMux()
		stint.Handle(mux, stint.NewKind[numbered]("k"), func(_ context.Context, _ *stint.Job, a numbered) error {
			all.run("all", a.N, 0)
			all.mu.Lock()
			all.now["all"]++
			all.most["all"] = max(all.most["all"], all.now["all"])
			all.mu.Unlock()
			g.run(a.Key, a.N, 3*time.Millisecond)
			all.mu.Lock()
			all.now["all"]--
			all.mu.Unlock()
			return nil
		})
		mux.Limit("all", stint.LimitRule{AtOnce: 4})
		mux.Limit("key", stint.LimitRule{AtOnce: 2})
		keys := []string{"a", "b", "c", "d", "e"}
		enqueueNumbered(t, s, 40, keys, stint.Limited("all"), stint.LimitedBy("key", "/key"))
		for range 3 {
			start(t, s, mux, engine.Config{Slots: 6})
		}
		await(t, "200 jobs", time.Minute, func() bool { return g.ended.Load() == 200 })
		if most := all.greatest("all"); most > 4 {
			t.Errorf("%d ran at once, want 4", most)
		}
		for _, key := range keys {
			if most := g.greatest(key); most > 2 {
				t.Errorf("%d of %s ran at once, want 2", most, key)
			}
		}
	})
}

func TestARateSpacesStarts(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var mu sync.Mutex
		var starts []time.Time
		mux := stint.NewMux()
		stint.Handle(mux, stint.NewKind[numbered]("k"), func(context.Context, *stint.Job, numbered) error {
			mu.Lock()
			defer mu.Unlock()
			starts = append(starts, time.Now())
			return nil
		})
		mux.Limit("rate", stint.LimitRule{Starts: 50, Per: time.Second, Burst: 5})
		enqueueNumbered(t, s, 120, []string{"a"}, stint.Limited("rate"))
		for range 3 {
			start(t, s, mux, engine.Config{Slots: 10})
		}
		count := func() int { mu.Lock(); defer mu.Unlock(); return len(starts) }
		await(t, "120 starts", time.Minute, func() bool { return count() == 120 })
		slices.SortFunc(starts, time.Time.Compare)
		most := 0
		for i, first := range starts {
			n := 0
			for _, other := range starts[i:] {
				if other.Sub(first) < time.Second {
					n++
				}
			}
			most = max(most, n)
		}
		if took := starts[119].Sub(starts[0]); most > 55 || took > pace.Of(4*time.Second) {
			t.Errorf("up to %d in a second, want 55 at most; all in %v", most, took)
		}
	})
}

// An engine that is alone buys many starts at once, and is never without them.
func TestAnEngineAloneUsesAllOfARate(t *testing.T) {
	const rate, n = 200, 600
	for name, c := range map[string]struct {
		atOnce int
		answer time.Duration // how long a question about permits takes
		asked  int64         // at most
	}{
		"a rate":              {0, 2 * time.Millisecond, n / 5},
		"a rate, ten at once": {10, 2 * time.Millisecond, n * 3 / 5}, // it buys no more starts than it has permits
		"a database far away": {0, 120 * time.Millisecond, n / 5},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
				starts := make(chan time.Time, n)
				mux := stint.NewMux()
				handle(mux, "k", func(context.Context, *stint.Job) error {
					starts <- time.Now()
					time.Sleep(5 * time.Millisecond)
					return nil
				})
				mux.Limit("rate", stint.LimitRule{AtOnce: c.atOnce, Starts: rate, Per: time.Second})
				jobs := slices.Repeat([]stint.NewJob{{Kind: "k", Limits: []string{"rate"}}}, n)
				if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
					t.Fatal(err)
				}
				far := &farPermits{Store: s, answer: c.answer}
				stop := start(t, far, mux, engine.Config{Slots: 50})
				first, last := <-starts, time.Time{}
				for range n - 1 {
					last = <-starts
				}
				asked := far.asked.Load()
				if err := stop(); err != nil {
					t.Error(err)
				}
				took, most := last.Sub(first), n*time.Second/rate*104/100
				t.Logf("%d starts took %v and %d questions", n, took, asked)
				if took > most || asked > c.asked {
					t.Errorf("want at most %v and %d questions", most, c.asked)
				}
			})
		})
	}
}

// farPermits takes its time for each question about permits.
type farPermits struct {
	*sqlite.Store
	answer time.Duration
	asked  atomic.Int64
}

func (f *farPermits) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) ([]store.Hold, error) {
	f.asked.Add(1)
	holds, err := f.Store.Permits(ctx, engine, req)
	time.Sleep(f.answer)
	return holds, err
}

// A dear job and cheap ones share a rate: none of them waits for ever, and what starts costs no more than it has.
func TestAJobCountsAsManyStartsAsItCosts(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const each = 20
		var mu sync.Mutex
		starts := map[string][]time.Time{}
		mux := stint.NewMux()
		stint.Handle(mux, stint.NewKind[numbered]("k"), func(_ context.Context, _ *stint.Job, a numbered) error {
			mu.Lock()
			defer mu.Unlock()
			starts[a.Key] = append(starts[a.Key], time.Now())
			return nil
		})
		mux.Limit("rate", stint.LimitRule{Starts: 100, Per: time.Second})
		enqueueNumbered(t, s, each, []string{"cheap"}, stint.Limited("rate"))
		enqueueNumbered(t, s, each, []string{"dear"}, stint.Limited("rate"), stint.Limited("10*rate"))
		for range 2 {
			start(t, s, mux, engine.Config{Slots: 10})
		}
		count := func(key string) int { mu.Lock(); defer mu.Unlock(); return len(starts[key]) }
		await(t, "40 starts", time.Minute, func() bool { return count("cheap")+count("dear") == 2*each })
		dear := starts["dear"]
		slices.SortFunc(dear, time.Time.Compare)
		all := slices.Concat(dear, starts["cheap"])
		slices.SortFunc(all, time.Time.Compare)
		if took := all[2*each-1].Sub(all[0]); took < 2000*time.Millisecond || took > pace.Of(5*time.Second) {
			t.Errorf("starts of 220 of 100 a second took %v", took)
		}
		for i := range dear[10:] {
			if took := dear[i+10].Sub(dear[i]); took < 900*time.Millisecond {
				t.Errorf("after dear job %d ten more start within %v, want a second", i+1, took)
			}
		}
	})
}

func TestARuleThatPeopleChangeCountsAtOnce(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		limiter := s.(store.Limiter)
		g := newGauge()
		mux := limitedMux(g, 10*time.Millisecond, map[string]stint.LimitRule{"n": {AtOnce: 1}})
		for range 2 {
			start(t, s, mux, engine.Config{Slots: 8})
		}
		set := func(n int) {
			t.Helper()
			if err := limiter.SetLimit(t.Context(), "n", stint.LimitRule{AtOnce: n}, "", ""); err != nil {
				t.Fatal(err)
			}
		}
		enqueueNumbered(t, s, 100000/100, []string{"a"}, stint.Limited("n"))
		await(t, "the first ten", 20*time.Second, func() bool { return g.ended.Load() >= 10 })
		if most := g.greatest("a"); most != 1 {
			t.Errorf("%d at once, want 1", most)
		}
		set(6)
		await(t, "six at once", 20*time.Second, func() bool { return g.greatest("a") == 6 })
		set(-1)
		time.Sleep(1500 * time.Millisecond)
		was := g.ended.Load()
		time.Sleep(300 * time.Millisecond)
		if now := g.ended.Load(); now != was {
			t.Errorf("%d ran under a limit of none", now-was)
		}
		if yes, err := limiter.ResetLimit(t.Context(), "n"); !yes || err != nil {
			t.Error(yes, err)
		}
		g.mu.Lock()
		g.most["a"] = 0
		g.mu.Unlock()
		await(t, "more", 20*time.Second, func() bool { return g.ended.Load() > was+10 })
		if most := g.greatest("a"); most != 1 {
			t.Errorf("%d at once after the reset, want 1", most)
		}
	})
}

func TestPermitsGoToAnEngineThatAloneCanRunTheJob(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g := newGauge()
		mux := limitedMux(g, 5*time.Millisecond, map[string]stint.LimitRule{"one": {AtOnce: 1}})
		start(t, s, mux, engine.Config{Slots: 4, Queues: []string{"a"}})
		start(t, s, mux, engine.Config{Slots: 4, Queues: []string{"b"}})
		enqueueNumbered(t, s, 1000, []string{"a"}, stint.Limited("one"), stint.Queue("a"))
		await(t, "the first", 20*time.Second, func() bool { return g.ended.Load() > 0 })
		began := time.Now()
		enqueueNumbered(t, s, 1, []string{"b"}, stint.Limited("one"), stint.Queue("b"))
		await(t, "the other queue's job", pace.Of(10*time.Second), func() bool { return g.greatest("b") == 1 })
		t.Logf("it started after %v", time.Since(began))
		if since := time.Since(began); since > pace.Of(3*time.Second) {
			t.Errorf("it started after %v", since)
		}
	})
}

func TestAKeyWithFewJobsDoesNotWaitForOneWithMany(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g := newGauge()
		start(t, s, limitedMux(g, 10*time.Millisecond, nil), engine.Config{Slots: 20})
		enqueueNumbered(t, s, 5000, []string{"a"}, stint.LimitedBy("tenant", "/key"))
		await(t, "some", 20*time.Second, func() bool { return g.ended.Load() > 200 })
		var waits []time.Duration
		for i := range 20 {
			key := fmt.Sprintf("b%d", i)
			began := time.Now()
			enqueueNumbered(t, s, 1, []string{key}, stint.LimitedBy("tenant", "/key"))
			await(t, key, 10*time.Second, func() bool { return g.greatest(key) == 1 })
			waits = append(waits, time.Since(began))
		}
		slices.Sort(waits)
		t.Logf("p50 %v, worst %v", waits[10], waits[19])
		if waits[10] > time.Second {
			t.Errorf("half of them waited for %v and longer", waits[10])
		}
	})
}

// lateAnswers is a store of whose answers about permits the nth comes late: something happens after it was read.
type lateAnswers struct {
	*sqlite.Store
	nth       atomic.Int64
	meanwhile func()
}

func (s *lateAnswers) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) ([]store.Hold, error) {
	holds, err := s.Store.Permits(ctx, engine, req)
	if s.nth.Add(-1) == 0 {
		s.meanwhile()
		time.Sleep(100 * time.Millisecond) // the news has arrived
	}
	return holds, err
}

func TestNewsThatComesWhileTheStoreAnswersIsNotLost(t *testing.T) {
	for name, paused := range map[string]bool{"a pause": false, "the end of a pause": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
				pause := func() {
					if err := s.PauseLimit(t.Context(), "api", store.Pause{For: 50 * time.Minute}); err != nil {
						t.Error(err)
					}
				}
				var began, before atomic.Int64
				late := &lateAnswers{Store: s, meanwhile: func() { pause(); before.Store(began.Load()) }}
				late.nth.Store(4) // after which it asks for no more
				if paused {
					pause()
					late.nth.Store(1)
					late.meanwhile = func() {
						if was, err := s.ResumeLimit(t.Context(), "api"); err != nil || !was {
							t.Error(was, err)
						}
					}
				}
				mux := handlers(map[string]stint.LimitRule{"api": {}}, func(numbered) error {
					began.Add(1)
					time.Sleep(10 * time.Millisecond)
					return nil
				})
				enqueueNumbered(t, s, 1000, []string{"a"}, stint.Limited("api"))
				stop := start(t, late, mux, engine.Config{Slots: 2})
				time.Sleep(2 * time.Second) // enough for 400
				if n := began.Load(); paused && n < 300 || !paused && n > before.Load()+50 {
					t.Errorf("%d jobs began, %d of them before the news", n, before.Load())
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
