package storetest

import (
	"fmt"
	"maps"
	"time"

	"github.com/stint-go/stint"
)

// lookTests are about what engines see before they claim.
var lookTests = []test{
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
		t.enqueue(append(jobs(5, "k"), job("k", stint.In(time.Hour)))...)
		t.join("k").ClaimAll()
		for _, known := range []stint.KnownLanes{{}, {Mine: []stint.LaneID{lane(stint.DefaultQueue)}}} {
			if got := t.look(known); len(got) != 0 {
				t.Errorf("after everything was claimed it saw %v", got)
			}
		}
	}},
	{"A transaction that ends and brought a lane nothing does not make it look as if it had work", func(t *T) {
		if t.SingleWriter {
			t.Skip("commits come in the order of the log")
		}
		tx := t.begin()
		t.enqueueIn(tx, job("k", stint.Queue("other")))
		t.enqueue(job("k", stint.Queue("mine")))
		t.join("k").ClaimAll()
		t.must(tx.Commit())
		if got := t.look(stint.KnownLanes{}); len(got) != 1 || got[lane("other")].Kind != "k" {
			t.Errorf("the look saw %v, want the lane of other", got)
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
