package storetest

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
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
			_, err := Bury(t.ctx, t.Store, stint.Burial{Engine: w.Info.Token}, func(e *stint.Entry, begun bool) stint.Execution {
				judged.Add(1)
				return Judge(e, begun)
			})
			return err
		})
		for _, err := range errs {
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, stint.ErrBuried):
				t.Errorf("a burier got %v, want ErrBuried", err)
			}
		}
		if won.Load() != 1 || judged.Load() != 20 {
			t.Errorf("%d buriers won and %d entries were judged, want 1 and 20", won.Load(), judged.Load())
		}
		for _, unless := range []time.Duration{0, time.Hour} {
			if _, err := Bury(t.ctx, t.Store, stint.Burial{Engine: w.Info.Token, Unless: unless}, Judge); !errors.Is(err, stint.ErrBuried) {
				t.Errorf("much later a burier got %v, want ErrBuried", err)
			}
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
		if _, err := w.TryClaimAll(t.ctx, 2); err != nil {
			t.Fatal(err)
		}
		if n := w.Leave(); n != len(want) {
			t.Errorf("%d entries were concluded, want %d", n, len(want))
		}
		got := t.join("k").ClaimAll()
		if ids := slices.Sorted(slices.Values(jobIDs(got))); !slices.Equal(ids, want) {
			t.Errorf("claimed again: %v, want %v", ids, want)
		}
		for _, e := range got {
			if want := stint.LaneOf(e.Queue, e.Priority, stint.PartFront, "").ID; !slices.ContainsFunc(t.ledger().Entries,
				func(l stint.LedgerEntry) bool { return l.Pos == e.Pos && l.Lane == want }) {
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
				c, err := w.TryClaim(t.ctx, stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 3, Wait: true})
				if err == nil && len(c.Entries) == 0 {
					return
				}
				if err == nil {
					var done []stint.Execution
					for _, e := range c.Entries[1:] {
						done = append(done, w.Conclude(e, completed))
					}
					_, err = w.TryFinish(t.ctx, done...)
				}
				if err != nil {
					if !errors.Is(err, stint.ErrBuried) {
						t.Errorf("round %d: the dying engine got %v", round, err)
					}
					return
				}
			}
		})
		wg.Go(func() {
			<-start
			time.Sleep(time.Duration(round) * time.Millisecond)
			if _, err := Bury(t.ctx, other, stint.Burial{Engine: w.Info.Token}, Judge); err != nil {
				t.Errorf("round %d: the burier got %v", round, err)
			}
		})
		close(start)
		wg.Wait()
		heir := t.join("k")
		heir.Complete(heir.ClaimAll()...)
		heir.Leave()
	}
	counts, err := t.Store.Counts(t.ctx)
	t.must(err)
	if counts[stint.Completed] != rounds*n {
		t.Errorf("%d jobs completed, want %d: %v", counts[stint.Completed], rounds*n, counts)
	}
}
