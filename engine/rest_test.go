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

// slowly takes a while to record outcomes, and notes when.
type slowly struct {
	*sqlite.Store
	takes time.Duration

	mu      sync.Mutex
	flushes []flushed
}

type flushed struct {
	from, to time.Time
	outcomes int
}

func (s *slowly) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	f := flushed{from: time.Now(), outcomes: len(done)}
	time.Sleep(s.takes)
	n, err := s.Store.Finish(ctx, engine, claims, done)
	f.to = time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flushes = append(s.flushes, f)
	return n, err
}

func TestAFlushOfFewOutcomesIsFollowedByARestAndOthersAreNot(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		slots, n     int
		jobs, takes  time.Duration
		rests        bool          // behind each flush but the last ones
		least, most  time.Duration // how long the next one waits for outcomes, beside the rest
		few, several int           // outcomes of such a flush
		others       int           // engines of its fleet
		longest      time.Duration // rest
	}{
		"one job at a time":            {1, 20, 4 * ms, 4 * ms, false, 0, 0, 1, 1, 0, 0},
		"some":                         {8, 2000, 1 * ms, 1 * ms, true, 0, 1 * ms, 2, 511, 0, 25 * ms},
		"some, and a slow database":    {8, 400, 10 * ms, 4 * ms, true, 0, 10 * ms, 2, 511, 0, 25 * ms},
		"some, in a fleet of ten":      {8, 4000, 1 * ms, 4 * ms, true, 0, 1 * ms, 2, 511, 9, 25 * ms},
		"some, in a fleet of fifteen":  {8, 4000, 1 * ms, 4 * ms, true, 0, 1 * ms, 2, 511, 14, 37500 * time.Microsecond},
		"some, in a fleet of forty":    {8, 4000, 1 * ms, 4 * ms, true, 0, 1 * ms, 2, 511, 39, 50 * ms},
		"many, as in a long backlog":   {500, 50_000, 1 * ms, 2 * ms, false, 0, 1 * ms, 512, 5000, 0, 0},
		"none that waits for the rest": {1, 20, 50 * ms, 1 * ms, false, 45 * ms, 50 * ms, 1, 1, 0, 0},
	} {
		bubble(t, time.Hour, func(t *testing.T, store *sqlite.Store) {
			for range c.others {
				w := storetest.NewWorker(t, store, "work")
				w.Info.Queues, w.Info.TimeToLive = nil, time.Hour
				if err := w.TryJoin(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			fill(t, store, "work", c.n, stint.DefaultQueue)
			s := &slowly{Store: store, takes: c.takes}
			mux := stint.NewMux()
			handle(mux, "work", func(context.Context, *stint.Job) error { time.Sleep(c.jobs); return nil })
			stop := start(t, s, mux, engine.Config{Slots: c.slots})
			time.Sleep(10 * time.Second)
			if err := stop(); err != nil {
				t.Error(err)
			}
			seen := 0
			for i, f := range s.flushes[:max(0, len(s.flushes)-1)] {
				rest := s.flushes[i+1].from.Sub(f.to)
				if f.outcomes < c.few || f.outcomes > c.several || rest > time.Second {
					continue
				}
				took, least := f.to.Sub(f.from), c.least
				if c.rests {
					least += min(c.longest, time.Duration(f.outcomes)*took)
				}
				if seen++; rest < least || rest > least+c.most-c.least {
					t.Errorf("%s: behind a flush of %d outcomes that took %v came %v, want %v to %v", name, f.outcomes, took, rest, least, least+c.most-c.least)
					break
				}
			}
			if seen < 3 {
				t.Errorf("%s: of %d flushes %d had %d to %d outcomes", name, len(s.flushes), seen, c.few, c.several)
			}
		})
	}
}
