package storetest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// buryRaceTests are about burials beside other burials and beside the work of
// the engine that is buried.
var buryRaceTests = []test{
	{"Whoever comes second is told", func(t *T) {
		t.enqueue(jobs(20, "k")...)
		w := t.join("k")
		w.ClaimAll()
		var judged, won atomic.Int64
		errs := atOnce(6, func(int) error {
			_, err := Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token}, func(e *store.Entry, begun bool) store.Completion {
				judged.Add(1)
				return Judge(e, begun)
			})
			return err
		})
		for _, err := range errs {
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, store.ErrBuried):
				t.Errorf("a burier got %v, want ErrBuried", err)
			}
		}
		expect(t, won.Load() == 1 && judged.Load() == 20,
			"%d buriers won and %d entries were judged, want 1 and 20", won.Load(), judged.Load())
		for _, unless := range []time.Duration{0, time.Hour} {
			fails(t, errOf(Bury(t.ctx, t.Store, store.Burial{Engine: w.Info.Token, Unless: unless}, Judge)), store.ErrBuried,
				"much later a burier got %v, want ErrBuried")
		}
	}},
	{"Claims in many lanes are all concluded", func(t *T) {
		var want []stint.ID
		for _, q := range []string{"a", "b", "c", "d"} {
			for p := -1; p <= 1; p++ {
				want = append(want, t.enqueue(jobs(3, "k", stint.Queue(q), stint.Priority(p))...)...)
			}
		}
		w := t.join("k")
		t.must(errOf(w.TryClaimAll(t.ctx, 2)))
		equal(t, w.Leave(), len(want), "%d entries were concluded, want %d")
		got := t.join("k").ClaimAll()
		equalAll(t, slices.Sorted(slices.Values(jobIDs(got))), want, "claimed again: %v, want %v")
		for _, e := range got {
			if want := store.LaneOf(e.Queue, e.Priority, store.PartFront, "").ID; !slices.ContainsFunc(t.ledger().Entries,
				func(l store.LedgerEntry) bool { return l.Pos == e.Pos && l.Lane == want }) {
				t.Errorf("job %d did not come back through the front lane", e.ID)
				break
			}
		}
	}},
	{"Burial beside claims and finishes of the engine loses and doubles nothing", buryBesideWork},
}

// buryBesideWork kills engines in the middle of their work, from another
// process, round after round.
func buryBesideWork(t *T) {
	const rounds, n = 12, 60
	other := t.again()
	for round := range rounds {
		t.enqueue(jobs(n, "k")...)
		w := t.join("k")
		var wg sync.WaitGroup
		start := make(chan struct{})
		wg.Go(func() {
			<-start
			for {
				c, err := w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 3, Wait: true})
				if err == nil && len(c.Entries) == 0 {
					return
				}
				if err == nil {
					done := w.concludeAll(completed, c.Entries[1:]...)
					_, err = w.TryFinish(t.ctx, done...)
				}
				if err != nil {
					fails(t, err, store.ErrBuried, "round %d: the dying engine got %v", round)
					return
				}
			}
		})
		wg.Go(func() {
			<-start
			time.Sleep(time.Duration(round) * time.Millisecond)
			_, err := Bury(t.ctx, other, store.Burial{Engine: w.Info.Token}, Judge)
			expect(t, err == nil, "round %d: the burier got %v", round, err)
		})
		close(start)
		wg.Wait()
		heir := t.join("k")
		heir.Complete(heir.ClaimAll()...)
		heir.Leave()
	}
	counts := must(t.Store.Counts(t.ctx))(t)
	expect(t, counts[stint.Completed] == rounds*n, "%d jobs completed, want %d: %v", counts[stint.Completed], rounds*n, counts)
}
