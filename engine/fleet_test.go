package engine_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// Each claim costs the server about as much for a few jobs as for many, and engines that claim often
// wait for each other.
func TestTheClaimsOfABacklogAreFew(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, store *sqlite.Store) {
		const n = 5000
		fill(t, store, "work", n, stint.DefaultQueue)
		s := &counted{drowsy: newDrowsy(store)}
		mux := stint.NewMux()
		handle(mux, "work", func(context.Context, *stint.Job) error { time.Sleep(10 * time.Millisecond); return nil })
		stop := start(t, s, mux, engine.Config{Slots: 10})
		time.Sleep(10 * time.Second)
		if err := stop(); err != nil {
			t.Error(err)
		}
		if got, claims := s.positions.Load(), s.claims.Load(); got != n || got/claims < 40 {
			t.Errorf("%d of %d jobs were claimed by %d claims, want 40 or more by each", got, n, claims)
		}
	})
}

// What any of them would find need not be looked for by all of them all the time.
func TestInALargeFleetEachEngineLooksLessOften(t *testing.T) {
	const during = 60
	asked := func(others int) (looks, promotions int32) {
		bubble(t, time.Hour, func(t *testing.T, store *sqlite.Store) {
			var fleet []*storetest.Worker
			for range others {
				w := storetest.NewWorker(t, store, "work")
				w.Info.Queues = nil
				if err := w.TryJoin(t.Context()); err != nil {
					t.Fatal(err)
				}
				fleet = append(fleet, w)
			}
			s := &counted{drowsy: newDrowsy(store)}
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
			stop := start(t, s, mux, engine.Config{})
			for range during / 2 {
				time.Sleep(2 * time.Second)
				for _, w := range fleet {
					w.Heartbeat()
				}
			}
			looks, promotions = s.looks.Load(), s.promotions.Load()
			if err := stop(); err != nil {
				t.Error(err)
			}
		})
		return looks, promotions
	}
	looks, promotions := asked(2)
	if looks < during*9/10 || promotions < during*9/10 {
		t.Errorf("in a fleet of three each looks %d and promotes %d times in %d s, want once a second", looks, promotions, during)
	}
	looks, promotions = asked(49)
	if looks > during/6 || promotions > during/6 {
		t.Errorf("in a fleet of fifty each looks %d and promotes %d times in %d s, want once in 16 seconds", looks, promotions, during)
	}
}

// rosters notes when the roster was read, and when an engine was buried.
type rosters struct {
	anyStore

	mu     sync.Mutex // guards the following
	read   []time.Time
	buried time.Time
}

func (r *rosters) Engines(ctx context.Context) ([]store.EngineInfo, error) {
	r.mu.Lock()
	r.read = append(r.read, time.Now())
	r.mu.Unlock()
	return r.anyStore.Engines(ctx)
}

func (r *rosters) Bury(ctx context.Context, b store.Burial, judge func(*store.Entry, bool) store.Completion) (int, error) {
	n, err := r.anyStore.Bury(ctx, b, judge)
	if err == nil && b.Why == store.WhySilent {
		r.mu.Lock()
		r.buried = time.Now()
		r.mu.Unlock()
	}
	return n, err
}

// In a large fleet each looks at the others seldom. Who misses a beat looks again in time, also if it is the
// only one that is left.
func TestInALargeFleetADeadEngineIsBuriedOnceItsTimeToLiveHasPassed(t *testing.T) {
	t.Parallel()
	for size, seldom := range map[int]int{70: 3500, 90: 4500, 100: 5000, 300: 5000} { // ms between two looks
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			var fleet []*storetest.Worker
			for range size - 1 {
				w := storetest.NewWorker(t, s, "work")
				w.Info.TimeToLive = 6 * time.Second
				if err := w.TryJoin(t.Context()); err != nil {
					t.Fatal(err)
				}
				w.Release()
				fleet = append(fleet, w)
			}
			r := &rosters{anyStore: s}
			looks := func() int {
				r.mu.Lock()
				defer r.mu.Unlock()
				return len(r.read)
			}
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error { return nil })
			stop := start(t, r, mux, engine.Config{TimeToLive: 6 * time.Second})
			beat := func() {
				for _, w := range fleet {
					w.Heartbeat()
				}
			}
			for range 30 {
				passes(2 * time.Second)
				beat()
			}
			if n := looks(); n < 60_000/seldom || n > 75_000/seldom {
				t.Errorf("an engine of %d looks %d times at the others in a minute, want once in %d ms", size, n, seldom)
			}
			fleet = fleet[1:]
			last, before := time.Now(), looks()
			for range 8 {
				passes(2 * time.Second)
				beat()
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if r.buried.IsZero() {
				t.Fatalf("of %d the dead engine is not buried", size)
			}
			if seen := r.read[before]; r.buried.Sub(seen) > 6100*time.Millisecond {
				t.Errorf("of %d, its last beat was %v before it was seen, and the burial %v after that, want its time to live", size, seen.Sub(last), r.buried.Sub(seen))
			}
		})
	}
}
