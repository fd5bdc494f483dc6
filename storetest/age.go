package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const day = 24 * time.Hour

var ageTests = []test{
	{"A key is remembered for a day and as long as its job is kept, by default until five days after it ended", func(t *T) {
		keep := store.Retention{Queues: map[string]store.KeepFor{"ever": {Completed: store.Forever}, "short": {All: time.Hour}}}
		keys := map[string]stint.NewJob{"done": job("k"), "later": job("k", stint.Delay(30*day)), "deleted": job("k", stint.Queue("deleted")),
			"tried": job("k", stint.Queue("tried")), "ever": job("k", stint.Queue("ever")), "short": job("k", stint.Queue("short"))}
		first := map[string]stint.ID{}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			j := keys[key]
			j.IdempotencyKey = key
			keys[key], first[key] = j, t.keyed(j)[0].ID
		}
		w := t.join("k")
		tries := store.Result{Outcome: stint.OutcomeReturned}
		for _, e := range w.ClaimAll() {
			end := completed
			if e.ID == first["tried"] {
				end = tries
			}
			w.Finish(end, e)
		}
		w.Finish(tries, w.One())
		t.delete(first["deleted"])
		remembered := func(when, want string) {
			t.Helper()
			for range 4 {
				t.step(store.RetainStep{Part: store.RetainKeys, Limit: 2, Keep: keep})
			}
			tx := t.begin()
			var got []string
			for _, key := range slices.Sorted(maps.Keys(keys)) {
				r := t.keyedIn(tx, keys[key])[0]
				if r.Duplicate {
					got = append(got, key)
				}
				expect(t, r.Duplicate == (r.ID == first[key]),
					"%s key %q is answered with %+v; the job is %d", when, key, r, first[key])
			}
			t.must(tx.Rollback())
			equal(t, strings.Join(got, " "), want, "%s %s are remembered, want %s", when)
		}
		t.pass(day - time.Minute)
		remembered("within a day", "deleted done ever later short tried")
		t.pass(2 * time.Minute)
		remembered("after a day", "done ever later tried")
		t.pass(4*day - 10*time.Minute)
		remembered("just before five days", "done ever later tried")
		t.pass(time.Hour)
		remembered("after five days", "ever later tried")
		if r := t.keyed(keys["done"])[0]; r.Duplicate || r.ID == first["done"] {
			t.Errorf("once it is forgotten it is answered with %+v", r)
		} else {
			first["done"] = r.ID
		}
		for _, e := range w.ClaimAll() {
			if e.ID == first["tried"] {
				w.Complete(e)
			}
		}
		t.pass(4 * day)
		remembered("four days behind its last attempt", "done ever later tried")
		t.pass(2 * day)
		remembered("six days behind it", "done ever later")
		t.pass(20 * day)
		remembered("while the job waits, runs, or is kept for ever", "done ever later")
	}},
	{"Keys are looked at some at a time, and only when they are due to be", func(t *T) {
		w := t.join("k")
		for n := range 5 {
			w.Complete(w.Claim(lane(stint.DefaultQueue), 1)...)
			t.keyed(job("k", stint.IdempotencyKey(fmt.Sprint("old ", n))))
		}
		w.Complete(w.ClaimAll()...)
		t.pass(25 * time.Hour)
		t.keyed(job("k", stint.IdempotencyKey("young")))
		w.Complete(w.ClaimAll()...)
		for _, want := range []store.Retained{{Deleted: 3, More: true}, {Deleted: 2}, {}} {
			equal(t, t.step(store.RetainStep{Part: store.RetainKeys, Limit: 3, Keep: atOnceKept}), want,
				"a step says %+v, want %+v")
		}
		expect(t, t.keyed(job("k", stint.IdempotencyKey("young")))[0].Duplicate, "the young one is forgotten")
	}},
	{"Changes go when they are old, some at a time", func(t *T) {
		for n := range 9 {
			if n == 7 {
				t.pass(2 * time.Hour)
			}
			t.begins(pausing)
		}
		t.pass(store.ChangesKept - time.Hour)
		for _, want := range []store.Retained{{Deleted: 5, More: true}, {Deleted: 2}, {}} {
			equal(t, t.step(store.RetainStep{Part: store.RetainChanges, Limit: 5}), want, "a step says %+v, want %+v")
		}
		left := t.changes(store.ChangeFilter{})
		expect(t, len(left) == 2 && left[1].ID == 8, "left are %+v, want the 2 young ones", left)
	}},
	{"An engine that left nothing is forgotten when any job that it ran would be", func(t *T) {
		lives := t.join("k")
		for range 3 {
			t.join("k").Leave()
		}
		known := func(want int) {
			t.Helper()
			equal(t, len(t.ledger().Buried), want, "%d are remembered, want %d")
		}
		t.pass(5*day - time.Hour)
		t.retain(store.Retention{})
		known(3)
		t.pass(2 * time.Hour)
		r := store.RetainStep{Part: store.RetainEngines, Limit: 2}
		done := t.step(r)
		if known(3 - done.Deleted); done.Deleted == 0 || done.Deleted > 2 || !done.More {
			t.Errorf("a step for two says %+v", done)
		}
		r.From = done.Next
		t.step(r)
		known(0)
		t.engine(lives)
	}},
}

// pass makes what there is that much older.
func (t *T) pass(d time.Duration) {
	t.Helper()
	t.skipIf(t.Pass == nil, "nothing makes this store older")
	t.must(t.Pass(t.T, t.Store, d))
}
