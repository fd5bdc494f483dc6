package storetest

import (
	"fmt"
	"maps"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// lookTests are about what engines see before they claim.
var lookTests = []test{
	{"A look shows every lane with work and what its first entry is", looks},
	{"A look passes over foreign lanes and nothing else", func(t *T) {
		t.enqueue(job("a", stint.Queue("mine")), job("b", stint.Queue("foreign")), job("c", stint.Queue("new")))
		known := store.LaneHints{Mine: []store.LaneID{lane("mine"), lane("empty")}, Foreign: []store.LaneID{lane("foreign")}}
		for range 2 {
			got := t.look(known)
			expect(t, len(got) == 2 && got[lane("mine")].Kind == "a" && got[lane("new")].Kind == "c",
				"the look saw %v, want the lanes mine and new", got)
		}
	}},
	{"A look that finds nothing says nothing", func(t *T) {
		got := t.look(store.LaneHints{})
		expect(t, len(got) == 0, "in an empty store it saw %v", got)
		t.enqueue(append(jobs(5, "k"), job("k", stint.Delay(time.Hour)))...)
		t.join("k").ClaimAll()
		for _, known := range []store.LaneHints{{}, {Mine: []store.LaneID{lane(stint.DefaultQueue)}}} {
			got := t.look(known)
			expect(t, len(got) == 0, "after everything was claimed it saw %v", got)
		}
	}},
	{"A transaction that ends and brought a lane nothing does not make it look as if it had work", func(t *T) {
		t.skipIf(t.SingleWriter, "commits come in the order of the log")
		tx := t.begin()
		t.enqueueIn(tx, job("k", stint.Queue("other")))
		t.enqueue(job("k", stint.Queue("mine")))
		t.join("k").ClaimAll()
		t.must(tx.Commit())
		got := t.look(store.LaneHints{})
		expect(t, len(got) == 1 && got[lane("other")].Kind == "k", "the look saw %v, want the lane of other", got)
	}},
	{"A look writes nothing", func(t *T) {
		t.enqueue(jobs(5, "k")...)
		before := t.ledger()
		t.look(store.LaneHints{})
		after := t.ledger()
		expect(t, len(after.Claims) == len(before.Claims), "a look appended %d claims", len(after.Claims)-len(before.Claims))
	}},
	{"What was rolled back is not in sight, and a claim that settles it takes nothing", func(t *T) {
		w := t.join("k")
		for round := range 3 {
			tx := t.begin()
			t.enqueueIn(tx, jobs(3000, "k")...)
			t.must(tx.Rollback())
			seen := t.look(store.LaneHints{})
			expect(t, len(seen) == 0, "round %d: after a rollback a look sees work in %v", round, seen)
			for range 2 {
				req := store.ClaimRequest{Lane: lane(stint.DefaultQueue), Max: 1, Wait: true, Settle: true}
				c, err := w.TryClaim(t.ctx, req)
				expect(t, err == nil && len(c.Positions) == 0,
					"round %d: a claim after a rollback took %v, error %v", round, c.Positions, err)
			}
			id := t.enqueue(job("k"))[0]
			equal(t, w.One().ID, id, "round %d: claimed job %d, want %d", round)
		}
	}},
}

// look returns the lanes with work by their IDs. Those that only want to be
// settled are left out: how much is much, each store decides for itself.
func (t *T) look(known store.LaneHints) map[store.LaneID]store.LaneHead {
	t.Helper()
	sights := must(t.Store.Look(t.ctx, known))(t)
	seen := map[store.LaneID]store.LaneHead{}
	for _, s := range sights {
		_, twice := seen[s.Lane]
		expect(t, !twice, "a look shows lane %d twice", s.Lane)
		seen[s.Lane] = s
	}
	maps.DeleteFunc(seen, func(_ store.LaneID, s store.LaneHead) bool { return s.Settle })
	return seen
}

func looks(t *T) {
	want := map[store.LaneID]store.LaneHead{}
	for q := range 10 {
		for _, p := range []int{-100, 0, 7} {
			queue, kind := fmt.Sprintf("queue %d", q), fmt.Sprintf("kind %d %d", q, p)
			t.enqueue(job(kind, stint.Queue(queue), stint.Priority(p)), job("second", stint.Queue(queue), stint.Priority(p)))
			l := store.LaneOf(queue, p, store.PartNormal, "")
			want[l.ID] = store.LaneHead{Lane: l.ID, Queue: queue, Priority: p, Kind: kind}
		}
	}
	got := t.look(store.LaneHints{})
	for id, s := range want {
		equal(t, got[id], s, "the look saw %+v, want %+v")
	}
	equal(t, len(got), len(want), "the look saw %d lanes, want %d")
	one := store.LaneOf("queue 3", 0, store.PartNormal, "").ID
	t.join("x").Claim(one, 1)
	equal(t, t.look(store.LaneHints{Mine: []store.LaneID{one}})[one].Kind,
		"second", "after the first entry was claimed, the look shows kind %q, want %q")
}
