package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// claimLanesTests are about claims of several lanes in one call.
var claimLanesTests = []test{
	{"Several lanes are claimed in their order, up to Max together", func(t *T) {
		want := map[store.LaneID][]stint.ID{}
		for _, queue := range []string{"a", "b", "c"} {
			want[lane(queue)] = t.enqueue(jobs(3, "k", stint.Queue(queue))...)
		}
		w := t.join("k")
		for _, step := range []struct {
			limit int
			lanes []store.LaneID
			took  []int
		}{
			{5, []store.LaneID{lane("b"), lane("a"), lane("c")}, []int{3, 2}},
			{1, []store.LaneID{lane("b"), lane("a"), lane("c")}, []int{0, 1}},
			{9, []store.LaneID{lane("a"), lane("none"), lane("c"), lane("b")}, []int{0, 0, 3, 0}},
		} {
			before := w.serial
			all := must(w.TryClaimLanes(t.ctx, step.limit, step.lanes...))(t)
			need(t, len(all) == len(step.took), "a call came to %d lanes, want %d", len(all), len(step.took))
			for i, c := range all {
				n := step.took[i]
				expect(t, c.Lane == step.lanes[i] && c.Serial == before+1+int64(i) && !c.Busy && (c.N > 0 || n == 0),
					"lane %d of %v is answered with %+v, serial %d, busy %v", i, step.lanes, c.ClaimRef, c.Serial, c.Busy)
				need(t, len(c.Entries) == n, "of lane %d of %v it took %v, want %d", i, step.lanes, jobIDs(c.Entries), n)
				equalAll(t, jobIDs(c.Entries), want[c.Lane][:n], "a lane gave %v, want %v")
				want[c.Lane] = want[c.Lane][n:]
			}
		}
		equal(t, len(w.ClaimAll()), 0, "%d jobs are left, want %d")
	}},
	{"What is claimed of several lanes is held and finished as any claim", func(t *T) {
		t.enqueue(job("k", stint.Queue("a")), job("k", stint.Queue("b")))
		w := t.join("k")
		all := must(w.TryClaimLanes(t.ctx, 10, lane("a"), lane("empty"), lane("b")))(t)
		var entries []store.Entry
		for _, c := range all {
			entries = append(entries, c.Entries...)
		}
		var got []store.Claim
		for _, c := range t.held(w, 0) {
			got = append(got, store.Claim{ClaimRef: c.ClaimRef, Serial: c.Serial})
		}
		expect(t, len(got) == 2 && got[0].ClaimRef == all[0].ClaimRef && got[0].Serial == 1 && got[1].ClaimRef == all[2].ClaimRef && got[1].Serial == 3,
			"held are %+v, claimed were %+v", got, all)
		equal(t, len(t.ledger().Claims), 2, "%d claims were recorded, want %d")
		w.Complete(entries...)
		w.Leave()
		equal(t, len(t.join("k").ClaimAll()), 0, "%d jobs came back, want %d")
	}},
	{"Who is not in the roster claims of no lane", func(t *T) {
		t.enqueue(job("k", stint.Queue("a")), job("k", stint.Queue("b")))
		never, dead := NewWorker(t, t.Store, "k"), t.join("k")
		dead.Leave()
		for name, w := range map[string]*Worker{"that never joined": never, "that was buried": dead} {
			all, err := w.TryClaimLanes(t.ctx, 3, lane("a"), lane("b"))
			expect(t, errors.Is(err, store.ErrBuried) && len(all) == 0, "an engine %s got %+v, error %v, want ErrBuried", name, all, err)
		}
		equal(t, len(t.join("k").ClaimAll()), 2, "%d jobs are left to claim, want %d")
	}},
	{"Who dies with claims of several lanes is replaced in all of them", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("a")), job("k", stint.Queue("b")), job("k", stint.Queue("c")))
		w := t.join("k")
		must(w.TryClaimLanes(t.ctx, 3, lane("a"), lane("b"), lane("c")))(t)
		w.Leave()
		got := jobIDs(t.join("k").ClaimAll())
		slices.Sort(got)
		equalAll(t, got, ids, "the next engine claimed %v, want %v")
	}},
	{"What is late in several lanes is claimed of each once", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		both := func() []stint.NewJob {
			return []stint.NewJob{job("k", stint.Queue("a")), job("k", stint.Queue("b"))}
		}
		w := t.join("k")
		var got, want []stint.ID
		claim := func() {
			for _, c := range must(w.TryClaimLanes(t.ctx, 10, lane("a"), lane("b")))(t) {
				got = append(got, jobIDs(c.Entries)...)
			}
		}
		var open []Tx
		for range 3 {
			tx := t.begin()
			open = append(open, tx)
			want = append(want, t.enqueueIn(tx, both()...)...)
			want = append(want, t.enqueue(both()...)...)
			claim()
		}
		for _, tx := range open {
			want = append(want, t.enqueue(both()...)...)
			t.must(tx.Commit())
			claim()
		}
		claim()
		slices.Sort(got)
		slices.Sort(want)
		equalAll(t, got, want, "claimed %v, want each of %v once")
	}},
	{"Many claimers of the same lanes take every entry once, whatever commits meanwhile", manyLanes},
}

func manyLanes(t *T) {
	const claimers, producers, rounds, width = 4, 3, 40, 6
	lanes := make([]store.LaneID, width)
	for i := range lanes {
		lanes[i] = lane(fmt.Sprint(i))
	}
	var (
		wg, making sync.WaitGroup
		mu         sync.Mutex // guards want and got
		want, got  []stint.ID
		over       atomic.Bool
	)
	for i := range producers {
		rng := rand.New(rand.NewPCG(2, uint64(i)))
		making.Go(func() {
			for range rounds {
				var list []stint.NewJob
				for range 1 + rng.IntN(5) {
					list = append(list, job("k", stint.Queue(fmt.Sprint(rng.IntN(width)))))
				}
				ids, err := stint.NewClient(t.Store).EnqueueMany(t.ctx, list)
				if err != nil {
					t.Errorf("enqueue: %v", err)
					return
				}
				mu.Lock()
				want = append(want, ids...)
				mu.Unlock()
			}
		})
	}
	second := t.again()
	for i := range claimers {
		w := Join(t, []Store{t.Store, second}[i%2], "k")
		rng := rand.New(rand.NewPCG(3, uint64(i)))
		wg.Go(func() {
			since := time.Now()
			for {
				order := slices.Clone(lanes) // in any order: none waits for another
				rng.Shuffle(width, func(i, j int) { order[i], order[j] = order[j], order[i] })
				ended := over.Load()
				all, err := w.TryClaimLanes(t.ctx, 1+rng.IntN(8), order...)
				if err != nil {
					t.Errorf("claimer %d: %v", i, err)
					return
				}
				var took []stint.ID
				idle := len(all) == width
				for _, c := range all {
					took = append(took, jobIDs(c.Entries)...)
					idle = idle && !c.Busy && len(c.Positions) == 0
				}
				mu.Lock()
				got = append(got, took...)
				mu.Unlock()
				if ended && idle || time.Since(since) > patience() {
					return
				}
			}
		})
	}
	making.Wait()
	over.Store(true)
	wg.Wait()
	slices.Sort(want)
	slices.Sort(got)
	expect(t, slices.Equal(got, want), "%d jobs were taken, want each of %d once", len(got), len(want))
}
