package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var claimTests = []test{
	{"A lane is claimed in the order of becoming ready, up to Max at a time", func(t *T) {
		ids := t.enqueue(jobs(10, "k")...)
		w := t.join("k")
		for _, c := range []struct{ limit, from, to int }{{1, 0, 1}, {4, 1, 5}, {3, 5, 8}, {100, 8, 10}, {100, 10, 10}} {
			equalAll(t, jobIDs(w.Claim(lane(stint.DefaultQueue), c.limit)), ids[c.from:c.to],
				"a claim of %d took %v, want %v", c.limit)
		}
	}},
	{"What is claimed of one lane moves no other's frontier", func(t *T) {
		before := t.enqueue(jobs(2, "k", stint.Queue("other"))...)
		t.enqueue(jobs(4, "k")...)
		behind := t.enqueue(job("k", stint.Queue("other")))[0]
		w := t.join("k")
		for range 3 {
			w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
		}
		got, want := jobIDs(w.Claim(lane("other"), 10)), append(before, behind)
		expect(t, slices.Equal(got, want), "claimed %v, want %v", got, want)
		if got := w.Claim(lane(stint.DefaultQueue), 10); len(got) != 1 {
			t.Errorf("claimed %v, want the one that was left", jobIDs(got))
		}
	}},
	{"An empty claim is not recorded", func(t *T) {
		w := t.join("k")
		for _, l := range []store.LaneID{lane("empty"), lane("never"), lane("empty")} {
			got := w.Claim(l, 10)
			expect(t, len(got) == 0, "an empty lane gave %v", positions(got))
		}
		equal(t, len(t.ledger().Claims), 0, "%d empty claims were recorded, want %d")
	}},
	{"A claim keeps its serial and nonce, and counts the lane's claims", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		for n := range int64(3) {
			req := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 2, Wait: true}
			c := must(w.TryClaim(t.ctx, req))(t)
			expect(t, c.Lane == req.Lane && c.N == n+1 && c.Serial == n+1 && c.Nonce != 0,
				"claim %d came back as %+v", n+1, c.ClaimRef)
			held := t.held(w, 0)
			last := held[len(held)-1]
			expect(t, last.ClaimRef == c.ClaimRef && last.Serial == c.Serial,
				"held is %+v serial %d, claimed was %+v serial %d", last.ClaimRef, last.Serial, c.ClaimRef, c.Serial)
		}
	}},
	{"Who is not in the roster claims nothing", func(t *T) {
		t.enqueue(jobs(3, "k")...)
		never, dead := NewWorker(t, t.Store, "k"), t.join("k")
		dead.Leave()
		for name, w := range map[string]*Worker{"that never joined": never, "that was buried": dead} {
			for _, wait := range []bool{true, false} {
				c, err := w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 3, Wait: wait})
				expect(t, errors.Is(err, store.ErrBuried) && len(c.Positions) == 0,
					"an engine %s got %v, error %v, want ErrBuried", name, c.Positions, err)
			}
		}
		equal(t, len(t.join("k").ClaimAll()), 3, "%d jobs are left to claim, want %d")
	}},
	{"A claim with Settle takes what is there, and nothing twice", func(t *T) {
		w := t.join("k")
		settle := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 10, Wait: true, Settle: true}
		for range 3 {
			ids := t.enqueue(jobs(2, "k")...)
			c := must(w.TryClaim(t.ctx, settle))(t)
			equalAll(t, jobIDs(c.Entries), ids, "a claim with Settle took %v, want %v")
			if c, err := w.TryClaim(t.ctx, settle); err != nil || len(c.Positions) != 0 {
				t.Errorf("another took %v, error %v", c.Positions, err)
			}
		}
	}},
	{"Fetch answers in the order asked and leaves out what does not exist", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		entries := t.join("k").ClaimAll()
		p := positions(entries)
		got := must(t.Store.Fetch(t.ctx, []store.Position{p[2], 1 << 60, p[0], p[3], -5}))(t)
		want := []store.Position{p[2], p[0], p[3]}
		expect(t, slices.Equal(positions(got), want), "fetched %v, want %v", positions(got), want)
		got, err := t.Store.Fetch(t.ctx, nil)
		expect(t, err == nil && len(got) == 0, "fetching nothing gave %v, error %v", got, err)
	}},
	{"Lanes of a queue are told apart by priority", func(t *T) {
		var want []stint.ID
		for _, p := range []int{100, -100, 0, 1} {
			want = append(want, t.enqueue(job("k", stint.Priority(p)))...)
		}
		w := t.join("k")
		for i, p := range []int{100, -100, 0, 1} {
			got := w.Claim(store.LaneOf(stint.DefaultQueue, p, store.PartNormal, "").ID, 10)
			expect(t, len(got) == 1 && got[0].ID == want[i] && got[0].Priority == p,
				"priority %d gave %v, want job %d", p, jobIDs(got), want[i])
		}
	}},
	{"One claimer at a time never finds a lane busy", func(t *T) {
		t.enqueue(jobs(50, "k")...)
		workers := []*Worker{t.join("k"), Join(t, t.again(), "k")}
		for i := range 50 {
			req := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1}
			c, err := workers[i%2].TryClaim(t.ctx, req)
			need(t, err == nil && len(c.Entries) == 1, "claim %d took %v, error %v", i, c.Positions, err)
		}
	}},
	{"Many claimers of one lane take every entry once", func(t *T) { manyClaimers(t, true) }},
	{"Many claimers that do not wait are told so, and take every entry once", func(t *T) { manyClaimers(t, false) }},
	{"An engine that knows nothing finds what another left", func(t *T) {
		ids := t.enqueue(jobs(9, "k")...)
		var got []stint.ID
		for range 3 {
			got = append(got, jobIDs(t.join("k").Claim(lane(stint.DefaultQueue), 3))...)
		}
		equalAll(t, got, ids, "three engines claimed %v, want %v")
	}},
}

func manyClaimers(t *T, wait bool) {
	const n, claimers = 600, 8
	ids := t.enqueue(jobs(n, "k")...)
	second := t.again()
	var (
		wg    sync.WaitGroup
		taken [claimers][]stint.ID
	)
	for i := range claimers {
		w := Join(t, []Store{t.Store, second}[i%2], "k")
		rng := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for left, since := true, time.Now(); left; {
				c, err := w.TryClaim(t.ctx, store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1 + rng.IntN(10), Wait: wait})
				switch {
				case err == nil:
					left, since = len(c.Entries) > 0, time.Now()
				case errors.Is(err, store.ErrLaneBusy) && !wait && time.Since(since) < patience()/5:
					time.Sleep(50 * time.Microsecond)
				default:
					t.Errorf("claimer %d: %v", i, err)
					return
				}
				got := jobIDs(c.Entries)
				expect(t, slices.IsSorted(got), "claimer %d got %v, out of order", i, got)
				taken[i] = append(taken[i], jobIDs(c.Entries)...)
			}
		})
	}
	wg.Wait()
	got := slices.Sorted(slices.Values(slices.Concat(taken[:]...)))
	expect(t, slices.Equal(got, ids), "%d jobs were taken, want each of %d once", len(got), n)
}

// held lists what an engine holds, checking that it is in the order of the
// serial numbers.
func (t *T) held(w *Worker, from int64) []store.Claim {
	t.Helper()
	return must(t.Store.Held(t.ctx, w.Info.Token, from))(t)
}
