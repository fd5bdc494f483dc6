package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// interruptedTests cut calls off in the middle, as a lost connection does: the
// answer is gone, and what was done is not known.
var interruptedTests = []test{
	{"A call whose context has ended fails, and the store works on", func(t *T) {
		ended := t.over()
		w := t.join("k")
		id := t.enqueue(job("k"))[0]
		_, err := t.Store.Enqueue(ended, stint.Tx{}, jobs(1, "k", stint.Queue("never")))
		expect(t, err != nil, "an enqueue succeeded")
		c, err := w.TryClaim(ended, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1})
		expect(t, err != nil, "a claim succeeded: %v", c.Positions)
		_, err = t.Store.Promote(ended, time.Time{}, 1)
		expect(t, err != nil, "a promotion succeeded")
		_, err = t.Store.Bury(ended, store.Burial{Engine: w.Info.Token}, Judge)
		expect(t, err != nil, "a burial succeeded")
		w.Complete(w.One())
		t.state(id, stint.Completed)
	}},
	{"A batch whose enqueue was cut off is there whole or not at all", func(t *T) {
		const size = 10
		rng := NewSeed(t).Rand("cuts")
		sure := map[string]bool{}
		for i := range 60 {
			tag := fmt.Sprint("batch ", i)
			ctx, cancel := cut(t, rng)
			_, err := stint.NewClient(t.Store).EnqueueMany(ctx, jobs(size, "k", stint.Tag(tag), stint.Queue(tag)))
			cancel()
			sure[tag] = err == nil
		}
		for tag, stored := range sure {
			n := len(t.list(store.Filter{Tag: tag}))
			expect(t, n == size || !stored && n == 0, "%s has %d jobs of %d; the call succeeded: %v", tag, n, size, stored)
		}
	}},
	{"A claim that was cut off is told by Held, or took nothing", func(t *T) {
		rng := NewSeed(t).Rand("cuts")
		ids := t.enqueue(jobs(300, "k")...)
		w := t.join("k")
		answered := map[store.Position]bool{}
		for range 60 {
			ctx, cancel := cut(t, rng)
			c, _ := w.TryClaim(ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1 + rng.IntN(5), Wait: true})
			cancel()
			for _, pos := range c.Positions {
				answered[pos] = true
			}
		}
		w.ClaimAll()
		// A claim may commit after its client has gone, so an engine asks
		// again and again.
		var all []store.Position
		for since := time.Now(); len(all) < len(ids) && time.Since(since) < patience(); time.Sleep(time.Millisecond) {
			all = nil
			for _, c := range t.held(w, 1) {
				for _, pos := range c.Positions {
					delete(answered, pos)
					w.taken[pos] = c.ClaimRef
				}
				all = append(all, c.Positions...)
			}
		}
		expect(t, len(answered) <= 0, "Held does not tell of %d positions that were answered", len(answered))
		entries := must(t.Store.Fetch(t.ctx, all))(t)
		got := slices.Sorted(slices.Values(jobIDs(entries)))
		expect(t, slices.Equal(got, ids), "%d entries are held, want each of %d once", len(got), len(ids))
		w.Complete(entries...)
	}},
	{"A batch of outcomes that was cut off can be repeated until it is known", func(t *T) {
		rng := NewSeed(t).Rand("cuts")
		w := t.join("k")
		for range 40 {
			t.enqueue(jobs(5, "k")...)
			done := snoozes(w, w.ClaimAll())
			ctx, cancel := cut(t, rng)
			_, err := w.TryFinish(ctx, done...)
			cancel()
			n, again := w.TryFinish(t.ctx, done...)
			expect(t, again == nil && (err != nil || n == 0) && (n == 0 || n == len(done)),
				"first %v; then %d were new, error %v", err, n, again)
		}
		l := t.ledger()
		expect(t, len(l.Executions) == 200 && len(l.Waiting) == 200,
			"there are %d executions and %d successors, want 200", len(l.Executions), len(l.Waiting))
	}},
	{"A burial that was cut off is done whole by the next", func(t *T) {
		rng := NewSeed(t).Rand("cuts")
		const rounds, n = 20, 20
		for range rounds {
			t.enqueue(jobs(n, "k")...)
			w := t.join("k")
			w.ClaimAll()
			ctx, cancel := cut(t, rng)
			_, err := Bury(ctx, t.Store, store.Burial{Engine: w.Info.Token}, Judge)
			cancel()
			if err != nil {
				_, err := Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token}, Judge)
				expect(t, err == nil || errors.Is(err, store.ErrBuried), "the second burial: %v", err)
			}
			heir := t.join("k")
			if got := heir.ClaimAll(); len(got) != n {
				t.Errorf("%d entries came back, want %d", len(got), n)
			} else {
				heir.Complete(got...)
			}
			heir.Leave()
		}
	}},
}

// cut is a context that ends at any moment of a short call: before it, in the
// middle, or not in time.
func cut(t *T, rng *rand.Rand) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.ctx, time.Duration(rng.IntN(4000))*time.Microsecond)
}
