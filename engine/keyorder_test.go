package engine_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// course is what handlers saw of the jobs of each key, in the order in which it was.
type course struct {
	mu    sync.Mutex
	steps map[string][]string
	open  map[string]int // the job of a key that began and has not ended, and one more
	last  map[string]int // the job of a key that began last for the first time, and one more
	tries map[string]int
	ended map[string]bool
	wrong []string
}

func newCourse() *course {
	return &course{steps: map[string][]string{}, open: map[string]int{}, last: map[string]int{}, tries: map[string]int{}, ended: map[string]bool{}}
}

// begin notes a start, and returns how many there were before of this job, and in which of
// its lives the process is; -1 if it is dead.
func (c *course) begin(m *mortal, key string, n int) (before, life int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.dead {
		return 0, -1
	}
	c.steps[key] = append(c.steps[key], fmt.Sprintf("%d begins", n))
	if open := c.open[key]; open != 0 && open != n+1 {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: job %d begins while %d has not ended", key, n, open-1))
	}
	job := fmt.Sprint(key, "/", n)
	if before = c.tries[job]; before == 0 && c.last[key] != n {
		c.wrong = append(c.wrong, fmt.Sprintf("%s: job %d begins after job %d", key, n, c.last[key]-1))
	}
	c.tries[job]++
	c.open[key] = n + 1
	c.last[key] = max(c.last[key], n+1)
	return before, m.lives
}

// end notes how an attempt ended, and reports whether the process lives.
func (c *course) end(m *mortal, life int, key string, n int, final bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.dead || m.lives != life {
		return false
	}
	c.steps[key] = append(c.steps[key], fmt.Sprintf("%d ends %v", n, final))
	if final {
		c.open[key] = 0
		c.ended[fmt.Sprint(key, "/", n)] = true
	}
	return true
}

func (c *course) all() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.ended)
}

func (c *course) check(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, w := range c.wrong {
		if i < 5 {
			t.Error(w)
		}
	}
}

// mortal is a process: when it is dead its handlers do nothing more, also when it lives again.
type mortal struct {
	dead  bool // guarded by course.mu
	lives int
}

// mux runs jobs that fail, snooze and fail for good now and then.
func (c *course) mux(m *mortal, rule stint.LimitRule, rnd func(n int) int) *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[numbered]("k"), func(ctx context.Context, _ *stint.Job, a numbered) error {
		tries, life := c.begin(m, a.Key, a.N)
		if life >= 0 {
			time.Sleep(time.Duration(rnd(3)) * time.Millisecond)
		}
		err := error(nil)
		luck := rnd(20)
		if luck == 2 {
			err = stint.NoRetry(errors.New("never"))
		} else if luck < 2 && tries < 5 {
			err = []error{errors.New("not yet"), stint.Snooze(5 * time.Millisecond)}[luck]
		} else {
			luck = 2
		}
		if !c.end(m, life, a.Key, a.N, luck == 2) {
			<-ctx.Done()
			return ctx.Err()
		}
		return err
	})
	mux.Limit("key", rule)
	return mux
}

func TestAnOrderIsKeptWhateverHappens(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		seed := storetest.NewSeed(t).Rand("jobs")
		var mu sync.Mutex
		rnd := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return seed.IntN(n)
		}
		c, rule := newCourse(), stint.LimitRule{AtOnce: 1, InOrder: true}
		config := func(i int) engine.Config {
			return engine.Config{Instance: fmt.Sprint("e", i), Slots: 8, TimeToLive: 3 * time.Second, PollFrom: 5 * time.Millisecond, PollTo: 50 * time.Millisecond}
		}
		var keys []string
		for i := range 50 {
			keys = append(keys, fmt.Sprintf("key %d", i))
		}
		opts := []stint.Option{stint.LimitedBy("key", "/key"), stint.Retry(retry.Fixed(20, 10*time.Millisecond)), stint.MaxLosses(20)}
		enqueueNumbered(t, s, 40, keys, opts...)
		const jobs = 50 * 40
		victim, stops := &mortal{}, []func() error{}
		for i := range 5 {
			m := &mortal{}
			if i == 0 {
				m = victim
			}
			stops = append(stops, start(t, s, c.mux(m, rule, rnd), config(i)))
		}
		await(t, "a quarter", time.Minute, func() bool { return c.all() > jobs/4 })
		if err := stops[1](); err != nil {
			t.Error(err)
		}
		start(t, s, c.mux(&mortal{}, rule, rnd), config(6))
		await(t, "half", time.Minute, func() bool { return c.all() > jobs/2 })
		c.mu.Lock()
		victim.dead = true
		c.mu.Unlock()
		token := func() (token store.EngineID) {
			roster, err := s.Engines(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range roster {
				if e.Instance == "e0" {
					token = e.Token
				}
			}
			return token
		}
		before := token()
		kill(t, s, before)
		await(t, "it joins again", time.Minute, func() bool { now := token(); return now != 0 && now != before })
		c.mu.Lock()
		victim.dead, victim.lives = false, 1
		c.mu.Unlock()
		await(t, "all", 2*time.Minute, func() bool { return c.all() >= jobs })
		c.check(t)
		if c.all() != jobs {
			t.Errorf("%d jobs ended, want %d", c.all(), jobs)
		}
	})
}

// absentMinded is a store that loses the answers to claims and outcomes, before or after it did what was asked.
type absentMinded struct {
	*sqlite.Store
	rnd func(n int) int
}

var errLostAnswer = errors.New("the answer was lost")

func (a *absentMinded) Claim(ctx context.Context, req store.ClaimRequest) (store.Claim, error) {
	luck := a.rnd(8)
	if luck == 0 {
		return store.Claim{}, errLostAnswer
	}
	c, err := a.Store.Claim(ctx, req)
	if luck == 1 && err == nil {
		return store.Claim{}, errLostAnswer
	}
	return c, err
}

func (a *absentMinded) ClaimLanes(ctx context.Context, req store.ClaimRequest, lanes []store.LaneHead) ([]store.Claim, error) {
	luck := a.rnd(8)
	if luck == 0 {
		return nil, errLostAnswer
	}
	all, err := a.Store.ClaimLanes(ctx, req, lanes)
	if luck == 1 && err == nil {
		return nil, errLostAnswer
	}
	return all, err
}

func (a *absentMinded) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	luck := a.rnd(8)
	if luck == 0 {
		return 0, errLostAnswer
	}
	n, err := a.Store.Finish(ctx, engine, claims, done)
	if luck == 1 && err == nil {
		return 0, errLostAnswer
	}
	return n, err
}

func (a *absentMinded) Permits(ctx context.Context, engine store.EngineID, req store.PermitRequest) ([]store.Hold, error) {
	luck := a.rnd(8)
	if luck == 0 {
		return nil, errLostAnswer
	}
	holds, err := a.Store.Permits(ctx, engine, req)
	if luck == 1 && err == nil {
		return nil, errLostAnswer
	}
	return holds, err
}

func TestAnOrderIsKeptWhenAnswersAreLost(t *testing.T) {
	// A claim whose answer was lost may hold up its keys for a minute.
	inBubble(t, 24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		seed := storetest.NewSeed(t).Rand("answers")
		var mu sync.Mutex
		rnd := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return seed.IntN(n)
		}
		c, stops := newCourse(), []func() error{}
		var keys []string
		for i := range 10 {
			keys = append(keys, fmt.Sprintf("key %d", i))
		}
		enqueueNumbered(t, s, 15, keys, stint.LimitedBy("key", "/key"), stint.Retry(retry.Fixed(20, 10*time.Millisecond)), stint.MaxLosses(20))
		for i := range 3 {
			stops = append(stops, start(t, &absentMinded{s, rnd}, c.mux(&mortal{}, stint.LimitRule{AtOnce: 1, InOrder: true}, rnd),
				engine.Config{Instance: fmt.Sprint("e", i), Slots: 4, TimeToLive: 20 * time.Second}))
		}
		await(t, "all", 20*time.Hour, func() bool { return c.all() == 150 })
		c.check(t)
		for _, stop := range stops {
			_ = stop()
		}
	})
}

func TestOrdersOfSeveralLimitsAreKeptTogether(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		seed := storetest.NewSeed(t).Rand("jobs")
		var mu sync.Mutex
		rnd := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return seed.IntN(n)
		}
		c, rule := newCourse(), stint.LimitRule{AtOnce: 1, InOrder: true}
		keys := []string{"a", "b", "c", "d"}
		opts := []stint.Option{stint.LimitedBy("key", "/key"), stint.Retry(retry.Fixed(20, 10*time.Millisecond))}
		enqueueNumbered(t, s, 15, keys[:2], append(opts, stint.Limited("one"))...)
		enqueueNumbered(t, s, 15, keys[2:3], append(opts, stint.Limited("one", "two"))...)
		enqueueNumbered(t, s, 15, keys[3:], append(opts, stint.Limited("two"))...)
		for i := range 3 {
			mux := c.mux(&mortal{}, rule, rnd)
			mux.Limit("one", rule)
			mux.Limit("two", rule)
			start(t, s, mux, engine.Config{Instance: fmt.Sprint("e", i), Slots: 4, PollFrom: 5 * time.Millisecond, PollTo: 50 * time.Millisecond})
		}
		await(t, "all", 2*time.Minute, func() bool { return c.all() == 60 })
		c.check(t)
	})
}

func TestAJobThatFailedHaltsItsKeyUntilAPersonDecides(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g, fails := newGauge(), atomic.Bool{}
		fails.Store(true)
		mux := stint.NewMux()
		stint.Handle(mux, stint.NewKind[numbered]("k"), func(_ context.Context, _ *stint.Job, a numbered) error {
			g.run(a.Key, a.N, 0)
			if a.N == 0 && fails.Load() {
				return stint.NoRetry(errors.New("never"))
			}
			return nil
		})
		mux.Limit("key", stint.LimitRule{AtOnce: 1, InOrder: true, Halt: true})
		enqueueNumbered(t, s, 3, []string{"a", "b"}, stint.LimitedBy("key", "/key"))
		start(t, s, mux, engine.Config{Slots: 4, PollFrom: 5 * time.Millisecond, PollTo: 50 * time.Millisecond})
		limiter := s.(store.Limiter)
		failed := map[string]stint.ID{}
		await(t, "both keys are halted", 20*time.Second, func() bool {
			gates, err := limiter.Gates(t.Context(), "key", 9)
			for _, g := range gates {
				if g.Halted() && g.Held == 0 {
					failed[g.Key] = g.Failed
				}
			}
			return err == nil && len(failed) == 2
		})
		time.Sleep(300 * time.Millisecond)
		if n := g.ended.Load(); n != 2 {
			t.Fatalf("%d jobs ran, want the first of each key", n)
		}
		fails.Store(false)
		if skipped, err := limiter.Unblock(t.Context(), "key=a"); err != nil || len(skipped) != 1 || skipped[0] != failed["a"] {
			t.Errorf("unblocked, it skips %v, error %v", skipped, err)
		}
		await(t, "the others of a", 20*time.Second, func() bool { return g.ended.Load() == 4 })
		if _, err := s.(store.Operator).Retry(t.Context(), []stint.ID{failed["b"]}, stint.RerunOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, "those of b", 20*time.Second, func() bool { return g.ended.Load() == 7 })
		g.mu.Lock()
		defer g.mu.Unlock()
		if got := fmt.Sprint(g.order); got != "map[a:[0 1 2] b:[0 0 1 2]]" {
			t.Errorf("they ran in the order %s", got)
		}
	})
}

func TestARuleMayKeepAnOrderFromNowOn(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		seed := storetest.NewSeed(t).Rand("jobs")
		var mu sync.Mutex
		rnd := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return seed.IntN(n)
		}
		before, after := newCourse(), newCourse()
		now := before
		var rules sync.RWMutex
		mux := stint.NewMux()
		handlers := map[*course]stint.Handler{}
		for _, c := range []*course{before, after} {
			handlers[c] = c.mux(&mortal{}, stint.LimitRule{}, rnd).Handler("k")
		}
		stint.Handle(mux, stint.NewKind[numbered]("k"), func(ctx context.Context, job *stint.Job, a numbered) error {
			rules.RLock()
			h := handlers[now]
			rules.RUnlock()
			_, err := h(ctx, job)
			return err
		})
		mux.Limit("key", stint.LimitRule{AtOnce: 3})
		for i := range 3 {
			start(t, s, mux, engine.Config{Instance: fmt.Sprint("e", i), Slots: 4, PollFrom: 5 * time.Millisecond, PollTo: 50 * time.Millisecond})
		}
		keys := []string{"a", "b", "c"}
		opts := []stint.Option{stint.LimitedBy("key", "/key"), stint.Retry(retry.Fixed(20, 10*time.Millisecond))}
		enqueueNumbered(t, s, 30, keys, opts...)
		await(t, "some", time.Minute, func() bool { return before.all() > 20 })
		if err := s.(store.Limiter).SetLimit(t.Context(), "key", stint.LimitRule{AtOnce: 1, InOrder: true}, "", ""); err != nil {
			t.Fatal(err)
		}
		await(t, "those of the time before", time.Minute, func() bool { return before.all() == 90 })
		time.Sleep(time.Second) // all is recorded
		rules.Lock()
		now = after
		rules.Unlock()
		enqueueNumbered(t, s, 30, keys, opts...)
		await(t, "those of the time after", time.Minute, func() bool { return after.all() == 90 })
		after.check(t)
	})
}
