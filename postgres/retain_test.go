package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

// retains is a store of which parts are retained, and whose times pass as quickly
// as the test wants.
type retains struct {
	*bench
	*testing.T
	keep stint.Retention
}

// passes has everything happened so much earlier.
func (r *retains) passes(d time.Duration) {
	r.T.Helper()
	for _, text := range []string{
		`update stint.idempotency set expires = expires - $1 * interval '1 microsecond'`,
		`update stint.executions set started = started - $1 * interval '1 microsecond', finished = finished - $1 * interval '1 microsecond'`,
		`update stint.changes set at = at - $1 * interval '1 microsecond'`,
		`update stint.engine_history set ended = ended - $1 * interval '1 microsecond'`,
	} {
		if _, err := r.s.pool.Exec(r.T.Context(), text, d.Microseconds()); err != nil {
			r.T.Fatal(err)
		}
	}
}

// step retains some of a part.
func (r *retains) step(part stint.RetainPart, limit int) stint.Retained {
	r.T.Helper()
	done, err := r.s.Retain(r.T.Context(), stint.RetainStep{Part: part, Limit: limit, Keep: r.keep})
	must(r.T, err)
	return done
}

// A key is remembered for at least a day, and for as long as its job is kept: by
// default until five days after it ended.
func TestAKeyIsRememberedForAsLongAsItsJobIsKept(t *testing.T) {
	s := verified(t)
	r := &retains{&bench{t, s, nil}, t, stint.Retention{Queues: map[string]stint.Kept{"ever": {Completed: stint.Forever}, "short": {All: time.Hour}}}}
	client := stint.NewClient(s)
	jobs := map[string]stint.NewJob{"done": {Kind: "k"}, "later": {Kind: "k", Delay: 30 * 24 * time.Hour}, "gone": {Kind: "other"},
		"tried": {Kind: "k", Queue: "tried"}, "ever": {Kind: "k", Queue: "ever"}, "short": {Kind: "k", Queue: "short"}}
	first := map[string]stint.ID{}
	for _, key := range []string{"done", "later", "gone", "tried", "ever", "short"} {
		job := jobs[key]
		job.IdempotencyKey = key
		id, err := client.Enqueue(t.Context(), job)
		must(t, err)
		jobs[key], first[key] = job, id
	}
	w := r.join()
	for _, queue := range []string{stint.DefaultQueue, "ever", "short"} {
		w.Complete(w.Claim(stint.LaneOf(queue, 0, stint.PartNormal, "").ID, 1)...)
	}
	w.Finish(stint.Ending{Outcome: stint.OutcomeReturned}, w.Claim(stint.LaneOf("tried", 0, stint.PartNormal, "").ID, 1)...)
	w.Leave()
	value[int](t, s.pool, `with gone as (delete from stint.entries where pos = $1 returning 1) select count(*) from gone`, int64(first["gone"]))
	remembered := func(when string, want map[string]bool) {
		t.Helper()
		for key, want := range want {
			if got := value[bool](t, s.pool, `select exists (select from stint.idempotency where key = $1)`, key); got != want {
				t.Errorf("%s, key %q is remembered: %v", when, key, got)
			}
		}
	}
	forget := func() {
		t.Helper()
		for range 4 {
			r.step(stint.RetainKeys, 2)
		}
	}
	r.passes(24*time.Hour - time.Minute)
	forget()
	remembered("within a day", map[string]bool{"done": true, "later": true, "gone": true, "tried": true, "ever": true, "short": true})
	r.passes(2 * time.Minute)
	forget()
	remembered("after a day", map[string]bool{"done": true, "later": true, "gone": false, "tried": true, "ever": true, "short": false})
	r.passes(4*24*time.Hour - 10*time.Minute)
	forget()
	remembered("just before five days", map[string]bool{"done": true, "later": true, "tried": true})
	if got, err := client.EnqueueReceipt(t.Context(), jobs["done"]); err != nil || got != (stint.Receipt{ID: first["done"], Duplicate: true}) {
		t.Errorf("the repetition is answered with %+v, error %v", got, err)
	}
	r.passes(time.Hour)
	forget()
	remembered("after five days", map[string]bool{"done": false, "later": true, "tried": true, "ever": true})
	if got, err := client.EnqueueReceipt(t.Context(), jobs["done"]); err != nil || got.Duplicate || got.ID == first["done"] {
		t.Errorf("once it is forgotten it is answered with %+v, error %v", got, err)
	}
	w = r.join()
	w.Complete(w.ClaimAll()...)
	w.Leave()
	r.passes(4 * 24 * time.Hour)
	forget()
	remembered("four days after its second attempt", map[string]bool{"later": true, "tried": true, "ever": true})
	r.passes(2 * 24 * time.Hour)
	forget()
	remembered("six days after it", map[string]bool{"later": true, "tried": false, "ever": true})
	r.passes(20 * 24 * time.Hour)
	forget()
	remembered("while its job waits, or is kept for ever", map[string]bool{"later": true, "ever": true})
}

// What is looked at is what is due to be, and no more than is asked for.
func TestKeysAreLookedAtSomeAtATime(t *testing.T) {
	r := &retains{&bench{t, verified(t), nil}, t, stint.Retention{}}
	for n := range 5 {
		id := r.enqueue(1, stint.IdempotencyKey(fmt.Sprint("old ", n)))[0]
		value[int](t, r.s.pool, `with gone as (delete from stint.entries where pos = $1 returning 1) select count(*) from gone`, int64(id))
	}
	r.passes(25 * time.Hour)
	r.enqueue(1, stint.IdempotencyKey("young"))
	for _, want := range []stint.Retained{{Deleted: 3, More: true}, {Deleted: 2}, {}} {
		if done := r.step(stint.RetainKeys, 3); done != want {
			t.Errorf("a step says %+v, want %+v", done, want)
		}
	}
	if left := value[string](t, r.s.pool, `select string_agg(key, ',') from stint.idempotency`); left != "young" {
		t.Errorf("left are %s", left)
	}
}

func TestChangesGoWhenTheyAreOldSomeAtATime(t *testing.T) {
	r := &retains{&bench{t, verified(t), nil}, t, stint.Retention{}}
	for n := range 9 {
		if n == 7 {
			r.passes(2 * time.Hour)
		}
		if _, err := r.s.BeginChange(t.Context(), stint.NewChange{Way: stint.WayAPI, Operation: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	r.passes(stint.ChangesKept - time.Hour)
	for _, want := range []stint.Retained{{Deleted: 5, More: true}, {Deleted: 2}, {}} {
		if done := r.step(stint.RetainChanges, 5); done != want {
			t.Errorf("a step says %+v, want %+v", done, want)
		}
	}
	if left := value[string](t, r.s.pool, `select string_agg(n::text, ',' order by n) from stint.changes`); left != "8,9" {
		t.Errorf("left are %s, want the 2 young ones", left)
	}
}

// An engine that left nothing is forgotten when it is older than all jobs, and not
// while what it claimed is to be looked through.
func TestAnEngineIsForgottenOnceItsClaimsWereLookedThrough(t *testing.T) {
	r := &retains{&bench{t, verified(t), nil}, t, stint.Retention{}}
	gone, unswept := r.join(), r.join()
	gone.Leave()
	unswept.Leave()
	const known = `select count(*) from stint.engine_history where token = any ($1)`
	tokens := []int64{int64(gone.Info.Token), int64(unswept.Info.Token)}
	swept := func(is bool) {
		t.Helper()
		if _, err := r.s.pool.Exec(t.Context(), `update stint.engine_history set swept = $2 where token = $1`, tokens[1], is); err != nil {
			t.Fatal(err)
		}
	}
	forgets := func(want stint.Retained) {
		t.Helper()
		if done := r.step(stint.RetainEngines, 10); done != want {
			t.Errorf("a step says %+v, want %+v", done, want)
		}
	}
	swept(false)
	r.passes(4 * 24 * time.Hour)
	forgets(stint.Retained{})
	if n := value[int](t, r.s.pool, known, tokens); n != 2 {
		t.Errorf("%d are known after four days", n)
	}
	r.passes(2 * 24 * time.Hour)
	forgets(stint.Retained{Deleted: 1})
	if n := value[int](t, r.s.pool, known, tokens[1:]); n != 1 {
		t.Error("one whose claims are to be looked through is forgotten")
	}
	swept(true)
	forgets(stint.Retained{Deleted: 1})
}
