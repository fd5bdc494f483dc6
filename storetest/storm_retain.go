package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// retainStorm deletes what ended a moment ago, all the time, while engines
// work, die and repeat themselves. Whoever records a final outcome notes it: at
// the end each job has had one.
func retainStorm(t *T) {
	const workers, producers, each = 3, 2, 150
	var (
		mu     sync.Mutex
		finals = map[stint.ID]int{}
		all    []stint.ID
		seed   = NewSeed(t)
		other  = t.again()
		ends   = make(chan struct{})
		wg     sync.WaitGroup
		stores = []Store{t.Store, other}
		errs   = make(chan error, 20)
	)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	t.ctx = ctx
	stalls := time.AfterFunc(patience(), func() { // a job that is gone never ends
		errs <- errors.New("no job ended for a long time")
		cancel()
	})
	defer stalls.Stop()
	try := func(f func() error) {
		wg.Go(func() {
			if err := f(); err != nil && ctx.Err() == nil {
				errs <- err
				cancel()
			}
		})
	}
	done := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(all) == producers*each && len(finals) == len(all) || ctx.Err() != nil
	}
	note := func(xs []store.Completion) {
		mu.Lock()
		defer mu.Unlock()
		for _, x := range xs {
			if x.Final {
				finals[x.Job]++
				stalls.Reset(patience())
			}
		}
	}
	for p := range producers {
		try(func() error {
			for range each / 10 {
				ids, err := stint.NewClient(stores[p%2]).EnqueueMany(t.ctx, jobs(10, "k", stint.Retry(retry.Fixed(3, time.Millisecond))))
				if err != nil {
					return err
				}
				mu.Lock()
				all = append(all, ids...)
				mu.Unlock()
			}
			return nil
		})
	}
	for i := range workers {
		rng := seed.Rand(fmt.Sprint("worker ", i))
		try(func() error { return retainWork(t, stores[i%2], rng, done, note) })
	}
	try(func() error {
		for !done() {
			if _, err := t.Store.Promote(t.ctx, time.Time{}, 50); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		close(ends)
		return nil
	})
	try(func() error {
		for {
			for _, part := range store.RetainParts {
				r := store.RetainStep{Part: part, Limit: 20, Keep: atOnceKept}
				for more := true; more; {
					got, err := other.(store.Retainer).Retain(t.ctx, r)
					if err != nil {
						return fmt.Errorf("retain: %w", err)
					}
					r.From, more = got.Next, got.More
				}
			}
			select {
			case <-ends:
				return nil
			case <-time.After(time.Millisecond):
			}
		}
	})
	wg.Wait()
	stalls.Stop()
	t.ctx = t.Context()
	select {
	case err := <-errs:
		t.Fatal(err)
	default:
	}
	for id, n := range finals {
		equal(t, n, 1, "job %d ended %d times, want %d", id)
	}
	t.retain(atOnceKept)
	l := t.ledger()
	expect(t, len(l.Entries)+len(l.Executions)+len(l.Jobs) == 0,
		"%d entries, %d executions and %d jobs are left", len(l.Entries), len(l.Executions), len(l.Jobs))
}

// retainWork is one engine after the other, some of which die.
func retainWork(t *T, s Store, rng *rand.Rand, done func() bool, note func([]store.Completion)) error {
	for !done() {
		w := NewWorker(t, s, "k")
		if err := w.TryJoin(t.ctx); err != nil {
			return err
		}
		for turn := 0; turn < 10+rng.IntN(20) && !done(); turn++ {
			entries, err := w.TryClaimAll(t.ctx, 1+rng.IntN(10))
			if err != nil {
				return err
			}
			var batch []store.Completion
			for i, e := range entries {
				if i%5 == 4 {
					continue // it dies with the engine
				}
				end := []store.Result{
					completed, completed, failure, {Outcome: stint.OutcomeSnoozed, Snooze: time.Millisecond},
					returned, cancelled,
				}[rng.IntN(6)]
				batch = append(batch, w.Conclude(e, end))
			}
			if _, err := w.TryFinish(t.ctx, batch...); err != nil {
				return err
			}
			note(batch)
			time.Sleep(time.Duration(rng.IntN(2)) * time.Millisecond)
			// The answer was lost: it says it all again.
			if n, err := w.TryFinish(t.ctx, batch...); err != nil || n != 0 {
				return fmt.Errorf("a repetition recorded %d of %d, error %w", n, len(batch), err)
			}
		}
		if _, err := Bury(t.ctx, s, store.Burial{Engine: w.Info.Token}, Judge); err != nil {
			return err
		}
	}
	return nil
}
