package storetest

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

var claimTests = []test{
	{"A lane is claimed in the order of becoming ready, up to Max at a time", func(t *T) {
		ids := t.enqueue(jobs(10, "k")...)
		w := t.join("k")
		for _, c := range []struct{ limit, from, to int }{{1, 0, 1}, {4, 1, 5}, {3, 5, 8}, {100, 8, 10}, {100, 10, 10}} {
			if got := jobIDs(w.Claim(lane(stint.DefaultQueue), c.limit)); !slices.Equal(got, ids[c.from:c.to]) {
				t.Errorf("a claim of %d took %v, want %v", c.limit, got, ids[c.from:c.to])
			}
		}
	}},
	{"A look shows every lane with work and what its first entry is", looks},
	{"A look passes over foreign lanes and nothing else", func(t *T) {
		t.enqueue(job("a", stint.Queue("mine")), job("b", stint.Queue("foreign")), job("c", stint.Queue("new")))
		known := stint.KnownLanes{Mine: []stint.LaneID{lane("mine"), lane("empty")}, Foreign: []stint.LaneID{lane("foreign")}}
		for range 2 {
			got := t.look(known)
			if len(got) != 2 || got[lane("mine")].Kind != "a" || got[lane("new")].Kind != "c" {
				t.Errorf("the look saw %v, want the lanes mine and new", got)
			}
		}
	}},
	{"A look that finds nothing says nothing", func(t *T) {
		if got := t.look(stint.KnownLanes{}); len(got) != 0 {
			t.Errorf("in an empty store it saw %v", got)
		}
		t.enqueue(jobs(5, "k")...)
		t.join("k").ClaimAll()
		for _, known := range []stint.KnownLanes{{}, {Mine: []stint.LaneID{lane(stint.DefaultQueue)}}} {
			if got := t.look(known); len(got) != 0 {
				t.Errorf("after everything was claimed it saw %v", got)
			}
		}
	}},
	{"A look writes nothing", func(t *T) {
		t.enqueue(jobs(5, "k")...)
		before := t.ledger()
		t.look(stint.KnownLanes{})
		if after := t.ledger(); len(after.Claims) != len(before.Claims) {
			t.Errorf("a look appended %d claims", len(after.Claims)-len(before.Claims))
		}
	}},
	{"An empty claim is not recorded", func(t *T) {
		w := t.join("k")
		for _, l := range []stint.LaneID{lane("empty"), lane("never"), lane("empty")} {
			if got := w.Claim(l, 10); len(got) != 0 {
				t.Errorf("an empty lane gave %v", positions(got))
			}
		}
		if l := t.ledger(); len(l.Claims) != 0 {
			t.Errorf("%d empty claims were recorded", len(l.Claims))
		}
	}},
	{"A claim keeps its serial and nonce, and counts the lane's claims", func(t *T) {
		t.enqueue(jobs(6, "k")...)
		w := t.join("k")
		for n := range int64(3) {
			req := stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 2, Wait: true}
			c, err := w.TryClaim(t.ctx, req)
			t.must(err)
			if c.Lane != req.Lane || c.N != n+1 || c.Serial != n+1 || c.Nonce == 0 {
				t.Errorf("claim %d came back as %+v", n+1, c.ClaimRef)
			}
			held := t.held(w, 0)
			if last := held[len(held)-1]; last.ClaimRef != c.ClaimRef || last.Serial != c.Serial {
				t.Errorf("held is %+v serial %d, claimed was %+v serial %d", last.ClaimRef, last.Serial, c.ClaimRef, c.Serial)
			}
		}
	}},
	{"Who is not in the roster claims nothing", func(t *T) {
		t.enqueue(jobs(3, "k")...)
		never, dead := NewWorker(t, t.Store, "k"), t.join("k")
		dead.Leave()
		for name, w := range map[string]*Worker{"that never joined": never, "that was buried": dead} {
			for _, wait := range []bool{true, false} {
				c, err := w.TryClaim(t.ctx, stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 3, Wait: wait})
				if !errors.Is(err, stint.ErrBuried) || len(c.Positions) != 0 {
					t.Errorf("an engine %s got %v, error %v, want ErrBuried", name, c.Positions, err)
				}
			}
		}
		if got := t.join("k").ClaimAll(); len(got) != 3 {
			t.Errorf("%d jobs are left to claim, want 3", len(got))
		}
	}},
	{"A claim with Settle takes what is there, and nothing twice", func(t *T) {
		w := t.join("k")
		settle := stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 10, Wait: true, Settle: true}
		for range 3 {
			ids := t.enqueue(jobs(2, "k")...)
			c, err := w.TryClaim(t.ctx, settle)
			t.must(err)
			if !slices.Equal(jobIDs(c.Entries), ids) {
				t.Errorf("a claim with Settle took %v, want %v", jobIDs(c.Entries), ids)
			}
			if c, err = w.TryClaim(t.ctx, settle); err != nil || len(c.Positions) != 0 {
				t.Errorf("another took %v, error %v", c.Positions, err)
			}
		}
	}},
	{"What was rolled back is not in sight, and a claim that settles it takes nothing", func(t *T) {
		w := t.join("k")
		for round := range 3 {
			tx := t.begin()
			t.enqueueIn(tx, jobs(3000, "k")...)
			t.must(tx.Rollback())
			if seen := t.look(stint.KnownLanes{}); len(seen) != 0 {
				t.Errorf("round %d: after a rollback a look sees work in %v", round, seen)
			}
			for range 2 {
				req := stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1, Wait: true, Settle: true}
				if c, err := w.TryClaim(t.ctx, req); err != nil || len(c.Positions) != 0 {
					t.Errorf("round %d: a claim after a rollback took %v, error %v", round, c.Positions, err)
				}
			}
			id := t.enqueue(job("k"))[0]
			if e := w.One(); e.ID != id {
				t.Errorf("round %d: claimed job %d, want %d", round, e.ID, id)
			}
		}
	}},
	{"Fetch answers in the order asked and leaves out what does not exist", func(t *T) {
		t.enqueue(jobs(4, "k")...)
		entries := t.join("k").ClaimAll()
		p := positions(entries)
		got, err := t.Store.Fetch(t.ctx, []stint.Position{p[2], 1 << 60, p[0], p[3], -5})
		t.must(err)
		if want := []stint.Position{p[2], p[0], p[3]}; !slices.Equal(positions(got), want) {
			t.Errorf("fetched %v, want %v", positions(got), want)
		}
		if got, err := t.Store.Fetch(t.ctx, nil); err != nil || len(got) != 0 {
			t.Errorf("fetching nothing gave %v, error %v", got, err)
		}
	}},
	{"Lanes of a queue are told apart by priority", func(t *T) {
		var want []stint.ID
		for _, p := range []int{100, -100, 0, 1} {
			want = append(want, t.enqueue(job("k", stint.Priority(p)))...)
		}
		w := t.join("k")
		for i, p := range []int{100, -100, 0, 1} {
			got := w.Claim(stint.LaneOf(stint.DefaultQueue, p, stint.PartNormal, "").ID, 10)
			if len(got) != 1 || got[0].ID != want[i] || got[0].Priority != p {
				t.Errorf("priority %d gave %v, want job %d", p, jobIDs(got), want[i])
			}
		}
	}},
	{"One claimer at a time never finds a lane busy", func(t *T) {
		t.enqueue(jobs(50, "k")...)
		workers := []*Worker{t.join("k"), Join(t, t.again(), "k")}
		for i := range 50 {
			req := stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1}
			if c, err := workers[i%2].TryClaim(t.ctx, req); err != nil || len(c.Entries) != 1 {
				t.Fatalf("claim %d took %v, error %v", i, c.Positions, err)
			}
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
		if !slices.Equal(got, ids) {
			t.Errorf("three engines claimed %v, want %v", got, ids)
		}
	}},
}

// look returns the lanes with work by their IDs. Those that only want to be
// settled are left out: how much is much, each store decides for itself.
func (t *T) look(known stint.KnownLanes) map[stint.LaneID]stint.Sight {
	t.Helper()
	sights, err := t.Store.Look(t.ctx, known)
	t.must(err)
	seen := map[stint.LaneID]stint.Sight{}
	for _, s := range sights {
		if _, twice := seen[s.Lane]; twice {
			t.Errorf("a look shows lane %d twice", s.Lane)
		}
		seen[s.Lane] = s
	}
	maps.DeleteFunc(seen, func(_ stint.LaneID, s stint.Sight) bool { return s.Settle })
	return seen
}

func looks(t *T) {
	want := map[stint.LaneID]stint.Sight{}
	for q := range 10 {
		for _, p := range []int{-100, 0, 7} {
			queue, kind := fmt.Sprintf("queue %d", q), fmt.Sprintf("kind %d %d", q, p)
			t.enqueue(job(kind, stint.Queue(queue), stint.Priority(p)), job("second", stint.Queue(queue), stint.Priority(p)))
			l := stint.LaneOf(queue, p, stint.PartNormal, "")
			want[l.ID] = stint.Sight{Lane: l.ID, Queue: queue, Priority: p, Kind: kind}
		}
	}
	got := t.look(stint.KnownLanes{})
	for id, s := range want {
		if got[id] != s {
			t.Errorf("the look saw %+v, want %+v", got[id], s)
		}
	}
	if len(got) != len(want) {
		t.Errorf("the look saw %d lanes, want %d", len(got), len(want))
	}
	one := stint.LaneOf("queue 3", 0, stint.PartNormal, "").ID
	t.join("x").Claim(one, 1)
	if got := t.look(stint.KnownLanes{Mine: []stint.LaneID{one}})[one]; got.Kind != "second" {
		t.Errorf("after the first entry was claimed, the look shows kind %q, want second", got.Kind)
	}
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
				c, err := w.TryClaim(t.ctx, stint.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1 + rng.IntN(10), Wait: wait})
				switch {
				case err == nil:
					left, since = len(c.Entries) > 0, time.Now()
				case errors.Is(err, stint.ErrLaneBusy) && !wait && time.Since(since) < patience/5:
					time.Sleep(50 * time.Microsecond)
				default:
					t.Errorf("claimer %d: %v", i, err)
					return
				}
				if got := jobIDs(c.Entries); !slices.IsSorted(got) {
					t.Errorf("claimer %d got %v, out of order", i, got)
				}
				taken[i] = append(taken[i], jobIDs(c.Entries)...)
			}
		})
	}
	wg.Wait()
	got := slices.Sorted(slices.Values(slices.Concat(taken[:]...)))
	if !slices.Equal(got, ids) {
		t.Errorf("%d jobs were taken, want each of %d once", len(got), n)
	}
}

// held lists what an engine holds, checking that it is in the order of the
// serial numbers.
func (t *T) held(w *Worker, from int64) []stint.Claim {
	t.Helper()
	held, err := t.Store.Held(t.ctx, w.Info.Token, from)
	t.must(err)
	return held
}
