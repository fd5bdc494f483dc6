package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// handlers runs jobs of the kind k by a function that can be changed.
func handlers(rules map[string]stint.LimitRule, do func(a numbered) error) *stint.Mux {
	mux := stint.NewMux()
	stint.Handle(mux, stint.NewKind[numbered]("k"), func(_ context.Context, _ *stint.Job, a numbered) error { return do(a) })
	for name, rule := range rules {
		mux.Limit(name, rule)
	}
	return mux
}

func TestAHandlerPausesItsLimitOnAllEngines(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const pause = 5 * time.Second
		var others, began, during, after atomic.Int64
		var ask atomic.Bool
		var asked atomic.Int64 // when, in nanoseconds
		mux := handlers(map[string]stint.LimitRule{"api": {}}, func(a numbered) error {
			if a.Key == "other" {
				others.Add(1)
				return nil
			}
			now := time.Now().UnixNano()
			switch since := time.Duration(now - asked.Load()); {
			case began.Add(1) >= 50 && ask.Load() && asked.CompareAndSwap(0, now):
				return stint.Defer("api", pause)
			case asked.Load() == 0:
			case since > pause-50*time.Millisecond:
				after.Add(1)
			case since > pause/2: // all engines have heard of it
				during.Add(1)
			}
			time.Sleep(5 * time.Millisecond)
			return nil
		})
		for range 3 {
			start(t, s, mux, engine.Config{Slots: 2})
		}
		enqueueNumbered(t, s, 12000, []string{"a"}, stint.LimitedBy("api", "/key")) // enough for ten seconds
		await(t, "50 jobs", 20*time.Second, func() bool { return began.Load() > 50 })
		others10 := func(within time.Duration) time.Duration {
			since, want := time.Now(), others.Load()+10
			enqueueNumbered(t, s, 10, []string{"other"}, stint.LimitedBy("api", "/key"))
			await(t, "jobs of another key", within, func() bool { return others.Load() == want })
			return time.Since(since)
		}
		usual := others10(20 * time.Second)
		ask.Store(true)
		await(t, "the pause", 20*time.Second, func() bool { return asked.Load() > 0 })
		others10(usual + time.Second)
		await(t, "the end of the pause", pause+2*time.Second, func() bool { return after.Load() > 100 })
		if n := during.Load(); n > 0 {
			t.Errorf("%d jobs began while the limit was paused", n)
		}
	})
}

func TestAHandlerPausesItsQueueAndNoOther(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := handlers(nil, func(numbered) error { return stint.Defer(stint.QueueLimit, time.Minute) })
		start(t, s, mux, engine.Config{Slots: 2})
		enqueueNumbered(t, s, 1, []string{"a"}, stint.Queue("mail"))
		var paused []string
		await(t, "the pause", 20*time.Second, func() bool {
			limits, err := s.(store.Limiter).Limits(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range limits {
				if l.Paused != nil {
					paused = append(paused, l.Name)
				}
			}
			return len(paused) > 0
		})
		if len(paused) != 1 || paused[0] != "queue=mail" {
			t.Errorf("%v are paused, want queue=mail", paused)
		}
	})
}

func TestALimitTripsAfterFailuresAndTriesOneJob(t *testing.T) {
	for rule, failures := range map[string]int64{"any,trip=5/1s": 5, "any,trip=80%/1s": 20} {
		t.Run(rule, func(t *testing.T) {
			onEach(t, func(t *testing.T, s anyStore) {
				limiter := s.(store.Limiter)
				r, err := stint.ParseLimitRule(rule)
				if err != nil {
					t.Fatal(err)
				}
				var up atomic.Bool
				var failed, done atomic.Int64
				mux := handlers(map[string]stint.LimitRule{"api": r}, func(numbered) error {
					time.Sleep(2 * time.Millisecond)
					if up.Load() {
						done.Add(1)
						return nil
					}
					failed.Add(1)
					return errors.New("503 from upstream")
				})
				start(t, s, mux, engine.Config{Slots: 2})
				enqueueNumbered(t, s, 100, []string{"a"}, stint.Limited("api"))
				paused := func() *store.Paused {
					limits, err := limiter.Limits(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if len(limits) == 0 {
						return nil // not declared yet
					}
					return limits[0].Paused
				}
				await(t, "the first pause", 20*time.Second, func() bool { return paused() != nil })
				if n := failed.Load(); n < failures || n > failures+2 {
					t.Errorf("%d failed before the pause, want %d", n, failures)
				}
				if p := paused(); !p.Trial || !strings.Contains(p.Why, "503 from upstream") || p.By == "" {
					t.Errorf("the pause is %+v", p)
				}
				// One job is tried, fails, and the pause begins again.
				was := failed.Load()
				await(t, "the trial", 20*time.Second, func() bool { return failed.Load() > was })
				time.Sleep(300 * time.Millisecond)
				if n := failed.Load() - was; n != 1 {
					t.Errorf("%d jobs were tried, want 1", n)
				}
				up.Store(true)
				await(t, "the rest", 30*time.Second, func() bool { return done.Load() == 100-failed.Load() })
				await(t, "the end of the pause", 20*time.Second, func() bool { return paused() == nil })
			})
		})
	}
}

func TestKeysHaveSharesByTheirWeights(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		counts := map[string]*atomic.Int64{}
		var keys []string
		for i := range 4 {
			key := fmt.Sprint(i)
			keys, counts[key] = append(keys, key), new(atomic.Int64)
		}
		mux := handlers(map[string]stint.LimitRule{"tenant=0": {Weight: 6}}, func(a numbered) error {
			counts[a.Key].Add(1)
			time.Sleep(5 * time.Millisecond)
			return nil
		})
		enqueueNumbered(t, s, 1500, keys, stint.LimitedBy("tenant", "/key"))
		start(t, s, mux, engine.Config{Slots: 4})
		await(t, "a share", time.Minute, func() bool { return counts["0"].Load() > 600 })
		sum := int64(0)
		for _, key := range keys[1:] {
			n := counts[key].Load()
			if sum += n; n < 50 || n > 200 {
				t.Errorf("%d of key %s began beside 600 of one with six times its weight", n, key)
			}
		}
		t.Logf("600 of the one beside %d of three others", sum)
		if sum < 200 || sum > 450 {
			t.Errorf("%d of the three others began beside 600 of the one, want 300", sum)
		}
	})
}

func TestWhatIsKnownOfUnusedGatesIsForgotten(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		g := newGauge()
		stop := start(t, s, limitedMux(g, time.Millisecond, map[string]stint.LimitRule{"key": {AtOnce: 1}}), engine.Config{})
		enqueueNumbered(t, s, 2, []string{"a", "b", "c"}, stint.LimitedBy("key", "/key"))
		time.Sleep(5 * time.Second)
		if gates, err := s.Gates(t.Context(), "key", 10); len(gates) != 3 || err != nil {
			t.Errorf("%d gates are in use, %v", len(gates), err)
		}
		time.Sleep(5 * time.Minute)
		if n, err := s.TidyPermits(t.Context()); n != 0 || err != nil || g.ended.Load() != 6 {
			t.Errorf("%d jobs ended, and after minutes %d gates were left to forget, %v", g.ended.Load(), n, err)
		}
		stop()
	})
}
