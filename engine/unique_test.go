package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/store"
)

// One more after the current: however many enqueues there are while one runs, one more is stored, and it
// starts when that has ended.
func TestOneMoreAfterTheOneThatRuns(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		gate, starts := make(chan struct{}), make(chan numbered, 10)
		mux := stint.NewMux()
		mux.Limit("key", stint.LimitRule{AtOnce: 1})
		latest := stint.NewKind[numbered]("k", stint.UniqueUntilStarted(stint.By("/key"), stint.OrReplace()), stint.LimitedBy("key", "/key"))
		stint.Handle(mux, latest, func(_ context.Context, _ *stint.Job, a numbered) error {
			starts <- a
			<-gate
			return nil
		})
		stop := start(t, s, mux, engine.Config{Slots: 4})
		client := stint.NewClient(s)
		for n := range 20 {
			if _, err := latest.Enqueue(t.Context(), client, numbered{"a", n}); err != nil {
				t.Fatal(err)
			}
			if n == 0 {
				if a := <-starts; a.N != 0 {
					t.Fatalf("%+v starts first", a)
				}
			}
			time.Sleep(3 * time.Millisecond) // an engine that would claim what may not start has the time to
		}
		page, err := s.Jobs(t.Context(), store.Filter{Limit: 100, States: []stint.State{stint.Running, stint.Available, stint.Scheduled}})
		if err != nil || len(page) != 2 {
			t.Errorf("%d jobs are unfinished, want the one that runs and one more: %v", len(page), err)
		}
		gate <- struct{}{}
		if a := <-starts; a.N != 19 {
			t.Errorf("%+v is the one more, want the newest", a)
		}
		gate <- struct{}{}
		select {
		case a := <-starts:
			t.Errorf("%+v starts, too", a)
		case <-time.After(100 * time.Millisecond):
		}
		close(gate)
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// After every enqueue a job of its key starts, which began when the enqueue was there, and never two run at once.
func TestEveryEnqueueUntilStartedIsFollowedByAStart(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		g := newGauge()
		var mu sync.Mutex
		written, seen := map[string]int{}, map[string]int{} // what producers wrote before the enqueue, and what jobs saw
		mux := stint.NewMux()
		mux.Limit("key", stint.LimitRule{AtOnce: 1})
		k := stint.NewKind[numbered]("k", stint.UniqueUntilStarted(stint.By("/key")), stint.LimitedBy("key", "/key"))
		stint.Handle(mux, k, func(_ context.Context, _ *stint.Job, a numbered) error {
			mu.Lock()
			seen[a.Key] = written[a.Key]
			mu.Unlock()
			g.run(a.Key, a.N, 2*time.Millisecond)
			return nil
		})
		stop := start(t, s, mux, engine.Config{Slots: 8})
		client := stint.NewClient(s)
		var wg sync.WaitGroup
		stored := make([]int, 4)
		for p := range stored {
			wg.Go(func() {
				for n := range 60 {
					key := fmt.Sprint("key ", n%5)
					mu.Lock()
					written[key]++
					mu.Unlock()
					r, err := k.EnqueueReceipt(t.Context(), client, numbered{key, n}, stint.Delay(time.Duration(n%3)*time.Millisecond))
					if err != nil {
						t.Error(err)
						return
					}
					if !r.Duplicate {
						stored[p]++
					}
				}
			})
		}
		wg.Wait()
		all := 0
		for _, n := range stored {
			all += n
		}
		eventually(t, "all jobs ran", func() bool { return int(g.ended.Load()) >= all })
		if err := stop(); err != nil {
			t.Error(err)
		}
		for key, n := range written {
			if seen[key] != n {
				t.Errorf("of %s the last job saw %d of %d", key, seen[key], n)
			}
			if g.greatest(key) != 1 {
				t.Errorf("of %s %d ran at once", key, g.greatest(key))
			}
		}
		if all == slices.Max(stored) || all >= 4*60 {
			t.Errorf("%d jobs are stored of %d enqueues", all, 4*60)
		}
		t.Logf("%d jobs of %d enqueues", all, 4*60)
	})
}
