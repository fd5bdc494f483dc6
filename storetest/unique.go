package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var uniqueTests = []test{
	{"Of a unique key at most one job is unfinished, whatever it does meanwhile", uniqueWhileUnfinished},
	{"A unique key is the kind and the selected arguments, compared as JSON", func(t *T) {
		by := stint.UniqueUntilEnded(stint.By("/id", "/of/0~1x/1"))
		first := t.keyed(withArgs("k", `{"id":"a","of":{"0/x":[1,null]},"n":1}`, by))[0].ID
		for text, same := range map[string]bool{
			` {"n":2, "of":{"0/x":[2,null]}, "id":"\u0061"}`: true,
			`{"id":"a","of":{"0/x":[1,0]}}`:                  false,
			`{"id":["a"],"of":{"0/x":[1,null]}}`:             false,
		} {
			r := t.keyed(withArgs("k", text, by))[0]
			expect(t, r.Duplicate == same && (r.ID == first) == same, "%s is answered with %+v beside job %d", text, r, first)
		}
		for name, other := range map[string]stint.NewJob{
			"another kind":     withArgs("other", `{"id":"a","of":{"0/x":[1,null]}}`, by),
			"another pointer":  withArgs("k", `{"id":"a","of":{"0/x":[1,null]}}`, stint.UniqueUntilEnded(stint.By("/id"))),
			"another scope":    withArgs("k", `{"id":"a","of":{"0/x":[1,null]}}`, stint.UniqueWithin(time.Hour, stint.By("/id", "/of/0~1x/1"))),
			"all arguments":    withArgs("k", `{"id":"a","of":{"0/x":[1,null]},"n":1}`, stint.UniqueUntilEnded()),
			"no uniqueness":    withArgs("k", `{"id":"a","of":{"0/x":[1,null]}}`, by, stint.NotUnique()),
			"a name of theirs": withArgs("k", `{"id":"a","of":{"0/x":[1,null]}}`, stint.UniqueUntilEnded(stint.By("/id", "/of/0~1x/1"), stint.Across("x"))),
		} {
			r := t.keyed(other)[0]
			expect(t, !r.Duplicate, "with %s it is answered with %+v", name, r)
		}
		r := t.keyed(withArgs("z", `{"id":"a","of":{"0/x":[1,null]}}`, stint.UniqueUntilEnded(stint.Across("x"), stint.By("/of/0~1x/1", "/id"))))[0]
		expect(t, r.Duplicate, "across kinds it is answered with %+v", r)
		r = t.keyed(stint.NewJob{Kind: "none", Unique: "until-ended"}, withArgs("none", "{}", stint.UniqueUntilEnded()))[1]
		expect(t, r.Duplicate, "no arguments and {} are answered with %+v", r)
	}},
	{"By no argument, one job of the kind is unfinished whatever its arguments", func(t *T) {
		alone := stint.UniqueUntilEnded(stint.By())
		every := t.keyed(withArgs("k", `{}`, stint.UniqueUntilEnded()))[0].ID
		r := t.keyed(withArgs("k", `{}`, alone), withArgs("k", `{"id":2}`, alone))
		first := r[0].ID
		expect(t, first != every && r[1].Duplicate && r[1].ID == first, "in a batch it is answered with %+v", r)
		r = t.keyed(withArgs("k", `[3]`, alone), withArgs("other", `{}`, alone), withArgs("k", `{"id":4}`, alone, stint.NotUnique()))
		expect(t, r[0].Duplicate && r[0].ID == first && !r[1].Duplicate && !r[2].Duplicate, "beside job %d it is answered with %+v", first, r)
		j := t.info(first)
		expect(t, j.Unique == "until-ended,by=none" && string(j.UniqueKey()) == `{}`, "it says %q of %s", j.Unique, j.UniqueKey())
		shared := stint.UniqueUntilEnded(stint.By(), stint.Across("nightly"))
		r = t.keyed(withArgs("k", `{"id":5}`, shared), withArgs("other", `{"id":6}`, shared))
		expect(t, !r[0].Duplicate && r[1].Duplicate, "across kinds it is answered with %+v", r)
	}},
	{"What the arguments do not have is no unique key", func(t *T) {
		_, err := stint.NewClient(t.Store).Enqueue(t.ctx, withArgs("k", `{"id":1}`, stint.UniqueUntilEnded(stint.By("/ID"))))
		fails(t, err, stint.ErrInvalid, "the error is %v")
		t.jobs()
	}},
	{"The ledger says which jobs are to have a unique key, and which took one", func(t *T) {
		ended, started := stint.UniqueUntilEnded(), stint.UniqueUntilStarted()
		all := t.keyed(withArgs("k", `1`, ended), withArgs("k", `2`, ended), withArgs("k", `3`, started), withArgs("k", `4`, stint.IdempotencyKey("four")), job("k"))
		w := t.join("k")
		w.ClaimAll()
		t.cancel("", all[1].ID) // which is asked to stop
		l := t.ledger()
		var unique []stint.ID
		for _, j := range l.Jobs {
			if j.Unique {
				unique = append(unique, j.ID)
			}
		}
		slices.Sort(l.Holders)
		expect(t, slices.Equal(unique, []stint.ID{all[0].ID}), "of %v these are unique until they have ended: %v", all, unique)
		expect(t, slices.Equal(l.Holders, []stint.ID{all[0].ID, all[1].ID, all[2].ID}), "of %v these took keys: %v", all, l.Holders)
	}},
	{"A job that is shown says what is unique of it", func(t *T) {
		before := t.keyed(job("k"))[0].ID
		id := t.keyed(withArgs("k", `{"id":7,"n":1}`, stint.UniqueUntilEnded(stint.By("/id"), stint.OrReplace())))[0].ID
		j := t.info(id)
		expect(t, j.Unique == "until-ended,by=/id,replace" && string(j.UniqueKey()) == `{"/id":7}`, "it says %q of %s", j.Unique, j.UniqueKey())
		equal(t, t.info(before).Unique, "", "one from before says %q, want %q")
		equal(t, t.info(t.keyed(job("k"))[0].ID).Unique, "", "another says %q, want %q")
	}},
	{"Within a period the second is a duplicate, also when the first has ended or is gone", func(t *T) {
		a := job("k", stint.UniqueWithin(time.Hour))
		first := t.keyed(a)[0].ID
		w := t.join("k")
		w.Complete(w.One())
		r := t.keyed(a)[0]
		equal(t, r, stint.Receipt{ID: first, Duplicate: true, State: stint.Completed}, "it is answered with %+v, want %+v")
		t.deletes(map[stint.ID]store.DeleteStatus{first: store.DeletedNow})
		equal(t, t.keyed(a)[0], stint.Receipt{ID: first, Duplicate: true}, "when that is gone it is answered with %+v, want %+v")
		t.pass(59 * time.Minute)
		t.retain(atOnceKept)
		expect(t, t.keyed(a)[0].Duplicate, "shortly before the end of the period it is stored")
		t.pass(2 * time.Minute)
		second := t.keyed(a)[0]
		expect(t, !second.Duplicate, "after the period it is answered with %+v", second)
		t.pass(2 * time.Hour)
		third := t.keyed(a)[0]
		expect(t, !third.Duplicate && t.info(second.ID).State == stint.Available, "after the next period, beside one that waits, it is answered with %+v", third)
		month := t.keyed(job("month", stint.UniqueWithin(30*24*time.Hour)))[0]
		t.cancel("", month.ID)
		t.deletes(map[stint.ID]store.DeleteStatus{month.ID: store.DeletedNow})
		t.pass(29 * 24 * time.Hour)
		t.retain(atOnceKept)
		r = t.keyed(job("month", stint.UniqueWithin(30*24*time.Hour)))[0]
		expect(t, r.Duplicate, "retention forgets a key whose period is not over: %+v", r)
	}},
	{"What is sealed is unique by its MAC", func(t *T) {
		for _, by := range [][]stint.UniqueOption{nil, {stint.By("/iban")}} {
			sealed := func(c, m string) stint.NewJob {
				return withArgs(fmt.Sprint("k", len(by)), fmt.Sprintf(`{"iban": {"$sealed": {"c": %q, "k": %[1]q, "m": %q}}}`, c, m), stint.UniqueUntilEnded(by...))
			}
			r := t.keyed(sealed("AAAA", "same"), sealed("BBBB", "same"), sealed("AAAA", "other"))
			expect(t, !r[0].Duplicate && r[1].Duplicate && r[1].ID == r[0].ID && !r[2].Duplicate, "with %d pointers the answers are %+v", len(by), r)
			again := t.keyed(sealed("CCCC", "same"))[0]
			expect(t, again.Duplicate && again.ID == r[0].ID, "with %d pointers a repetition is answered with %+v", len(by), again)
		}
	}},
	{"In a slot the second is a duplicate, until the next slot begins", func(t *T) {
		const slot = 2 * time.Second
		a := job("k", stint.UniqueSlot(slot))
		for range 2 {
			time.Sleep(time.Until(time.Now().Truncate(slot).Add(slot + 20*time.Millisecond)))
			r := t.keyed(a, a)
			expect(t, !r[0].Duplicate && r[1].Duplicate, "in a new slot it is answered with %+v", r)
		}
		day := t.keyed(job("day", stint.UniqueSlot(50*365*24*time.Hour)))[0]
		r := t.keyed(job("day", stint.UniqueSlot(50*365*24*time.Hour)))[0]
		expect(t, r.Duplicate && r.ID == day.ID, "in a slot of fifty years it is answered with %+v", r)
	}},
	{"A batch stores the first of a unique key, and refuses to replace it by another of its own", func(t *T) {
		a, b := withArgs("k", `1`, stint.UniqueUntilEnded()), withArgs("k", `2`, stint.UniqueUntilEnded(), stint.Delay(time.Hour))
		held := t.keyed(withArgs("k", `3`, stint.UniqueUntilEnded()))[0].ID
		r := t.keyed(a, job("k"), b, a, withArgs("k", `3`, stint.UniqueUntilEnded()), b, withArgs("k", `3`, stint.UniqueUntilEnded()))
		for i, want := range map[int]stint.Receipt{
			3: {ID: r[0].ID, Duplicate: true, State: stint.Available}, 5: {ID: r[2].ID, Duplicate: true, State: stint.Scheduled},
			4: {ID: held, Duplicate: true, State: stint.Available}, 6: {ID: held, Duplicate: true, State: stint.Available},
		} {
			equal(t, r[i], want, "job %d of the batch is answered with %+v, want %+v", i)
		}
		t.jobs(held, r[0].ID, r[1].ID, r[2].ID)
		for _, opt := range []stint.UniqueOption{stint.OrReplace(), stint.OrCancelOld()} {
			c := withArgs("k", `4`, stint.UniqueUntilEnded(opt))
			_, err := stint.NewClient(t.Store).EnqueueMany(t.ctx, []stint.NewJob{c, job("k"), c})
			fails(t, err, stint.ErrInvalid, "the error is %v")
		}
		t.jobs(held, r[0].ID, r[1].ID, r[2].ID)
	}},
	{"Replacing takes what has not begun", func(t *T) {
		for _, first := range []stint.NewJob{job("k", stint.Delay(time.Hour)), job("k")} {
			first.Unique, first.Args = "until-ended,by=/id", json.RawMessage(`{"id":1,"n":1}`)
			old := t.keyed(first)[0].ID
			before := t.info(old)
			r := t.keyed(withArgs("k", `{"id":1,"n":2}`, stint.UniqueUntilEnded(stint.By("/id"), stint.OrReplaceKeepTime()), stint.Delay(2*time.Hour)))[0]
			expect(t, !r.Duplicate && r.Replaced == old && r.ID != old, "beside job %d it is answered with %+v", old, r)
			t.state(old, stint.Cancelled)
			now := t.info(r.ID)
			expect(t, now.State == before.State && sameJSON(now.Args, []byte(`{"id":1,"n":2}`)) &&
				(now.Due.Equal(before.Due) || now.State == stint.Available), "it is %+v, and replaces %+v", now, before)
			r2 := t.keyed(withArgs("k", `{"id":1,"n":3}`, stint.UniqueUntilEnded(stint.By("/id"), stint.OrReplace()), stint.Delay(2*time.Hour)))[0]
			expect(t, r2.Replaced == r.ID && t.info(r2.ID).State == stint.Scheduled && t.info(r2.ID).Due.After(before.Due.Add(30*time.Minute)),
				"it is answered with %+v, and is %+v", r2, t.info(r2.ID))
			equal(t, t.cancel("", r2.ID)[r2.ID], stint.CancelledNow, "the cancellation says %s, want %s")
		}
		t.none(t.join("k"))
	}},
	{"What has begun is kept: it is not replaced while it runs or is retried", func(t *T) {
		newer := job("k", stint.UniqueUntilEnded(stint.OrReplace()))
		old := t.keyed(job("k", stint.UniqueUntilEnded(), stint.Retry(retry.Fixed(3, time.Hour))))[0].ID
		w := t.join("k")
		e := w.One()
		equal(t, t.keyed(newer)[0], stint.Receipt{ID: old, Duplicate: true, State: stint.Running}, "beside one that runs it is answered with %+v, want %+v")
		t.stopping([]stint.ID{old})
		w.Finish(failed, e)
		equal(t, t.keyed(newer)[0], stint.Receipt{ID: old, Duplicate: true, State: stint.Retrying}, "beside one that is retried it is answered with %+v, want %+v")
	}},
	{"A replacement that would be due only after its StartBy is refused", func(t *T) {
		old := t.keyed(job("k", stint.UniqueUntilEnded(), stint.Delay(time.Hour)))[0].ID
		_, err := stint.NewClient(t.Store).Enqueue(t.ctx, job("k", stint.UniqueUntilEnded(stint.OrReplaceKeepTime()), stint.StartBy(t.clock().Add(time.Minute))))
		fails(t, err, stint.ErrInvalid, "the error is %v")
		t.state(old, stint.Scheduled)
	}},
	{"Debounced, a job is put off by each one that replaces it, up to a bound from the first of them", func(t *T) {
		enqueue := func(delay time.Duration) (stint.Receipt, *stint.JobInfo) {
			t.Helper()
			r := t.keyed(job("k", stint.UniqueUntilStarted(stint.OrDebounce(2*time.Hour)), stint.Delay(delay)))[0]
			return r, t.info(r.ID)
		}
		soon := func(got, want time.Time) bool { return got.Sub(want).Abs() < 30*time.Second }
		_, first := enqueue(time.Hour)
		r, second := enqueue(90 * time.Minute)
		expect(t, r.Replaced == first.ID && soon(second.Due, second.Created.Add(90*time.Minute)), "the second one is answered with %+v, and is %+v", r, second)
		t.state(first.ID, stint.Cancelled)
		bound := first.Created.Add(2 * time.Hour)
		r, third := enqueue(4 * time.Hour)
		expect(t, r.Replaced == second.ID && soon(third.Due, bound), "the third one is answered with %+v, and is due at %v, want %v", r, third.Due, bound)
		_, same := enqueue(4 * time.Hour)
		expect(t, same.Due.Equal(third.Due), "the next one is due at %v, want the same %v", same.Due, third.Due)
		r, fourth := enqueue(0)
		expect(t, r.Replaced == same.ID && fourth.State == stint.Available, "the fourth one is answered with %+v, and is %+v", r, fourth)
		w := t.join("k")
		equal(t, w.One().ID, fourth.ID, "job %d is claimed, want %d")
		r, fifth := enqueue(4 * time.Hour)
		expect(t, r.Replaced == 0 && soon(fifth.Due, fifth.Created.Add(2*time.Hour)), "after one that has begun it is answered with %+v, and is due at %v", r, fifth.Due)
	}},
	{"A job that was put off to the bound of the first one is due then at once", func(t *T) {
		debounced := job("k", stint.UniqueUntilEnded(stint.OrDebounce(time.Second)), stint.Delay(time.Second))
		first := t.keyed(debounced)[0].ID
		time.Sleep(1100 * time.Millisecond)
		r := t.keyed(debounced)[0]
		expect(t, r.Replaced == first && t.info(r.ID).State == stint.Available, "it is answered with %+v, and is %+v", r, t.info(r.ID))
	}},
	{"Cancelling the old one ends what waits and asks what runs to stop", func(t *T) {
		newer := job("k", stint.UniqueUntilEnded(stint.OrCancelOld()))
		old := t.keyed(newer)[0].ID
		second := t.keyed(newer)[0]
		expect(t, second.Cancelled == old && !second.Duplicate, "it is answered with %+v", second)
		t.state(old, stint.Cancelled)
		w := t.join("k")
		e := w.One()
		equal(t, e.ID, second.ID, "job %d is claimed, want %d")
		third := t.keyed(newer)[0]
		expect(t, third.Cancelled == second.ID, "it is answered with %+v", third)
		t.stopping([]stint.ID{second.ID, third.ID}, second.ID)
		w.Complete(e) // it had not heard of it
		t.state(second.ID, stint.Completed)
		r := t.keyed(job("k", stint.UniqueUntilEnded()))[0]
		expect(t, r.Duplicate && r.ID == third.ID, "when the old one has ended it is answered with %+v, want a duplicate of job %d", r, third.ID)
	}},
	{"A job that was cancelled and will not run holds nothing", func(t *T) {
		a := job("k", stint.UniqueUntilEnded(), stint.Delay(time.Hour))
		first := t.keyed(a)[0].ID
		t.cancel("", first)
		r := t.keyed(a)[0]
		expect(t, !r.Duplicate, "it is answered with %+v", r)
	}},
	{"Retention and deletion forget the key of what has ended, and not of what has not", func(t *T) {
		a := job("k", stint.UniqueUntilEnded())
		first := t.keyed(a)[0].ID
		t.retain(atOnceKept)
		r := t.keyed(a)[0]
		expect(t, r.Duplicate && r.ID == first, "it is answered with %+v", r)
		w := t.join("k")
		w.Complete(w.One())
		t.deletes(map[stint.ID]store.DeleteStatus{first: store.DeletedNow})
		r = t.keyed(a)[0]
		expect(t, !r.Duplicate, "when the first is deleted it is answered with %+v", r)
	}},
	{"A job that ended takes its unique key again when it is recovered, or is refused", func(t *T) {
		a := job("k", stint.UniqueUntilEnded(stint.OrReplace()))
		first := t.keyed(a)[0].ID
		w := t.join("k")
		w.Finish(failedFinally, w.One())
		anew := t.recovers(first, stint.RerunOptions{})
		r := t.keyed(job("k", stint.UniqueUntilEnded()))[0]
		expect(t, r.Duplicate && r.ID == anew, "beside the recovered job %d it is answered with %+v", anew, r)
		again := must(as[store.Operator](t).Retry(t.ctx, []stint.ID{first}, stint.RerunOptions{}))(t)
		equal(t, again[first], stint.RerunResult{Answer: stint.RerunNotUnique, ID: anew}, "to recover it again is answered with %+v, want %+v")
		t.jobs(first, anew)
		w.Complete(w.ClaimAll()...)
		period := t.keyed(job("p", stint.UniqueWithin(time.Hour)))[0].ID
		w = t.join("p")
		w.Finish(failedFinally, w.One())
		t.recovers(period, stint.RerunOptions{})
	}},
	{"An idempotency key stands for the job that its unique key found", func(t *T) {
		a := job("k", stint.UniqueUntilEnded())
		first := t.keyed(a)[0].ID
		both := job("k", stint.UniqueUntilEnded(), stint.IdempotencyKey("b"))
		r := t.keyed(both, both)
		expect(t, r[0] == (stint.Receipt{ID: first, Duplicate: true, State: stint.Available}) && r[1].ID == first && r[1].Duplicate, "it is answered with %+v", r)
		alone := job("k", stint.UniqueUntilEnded(), stint.IdempotencyKey("a"))
		r = t.keyed(alone)
		equal(t, r[0], stint.Receipt{ID: first, Duplicate: true, State: stint.Available}, "alone it is answered with %+v, want %+v")
		w := t.join("k")
		w.Complete(w.One())
		r = t.keyed(alone)
		equal(t, r[0], stint.Receipt{ID: first, Duplicate: true}, "its repetition is answered with %+v, want %+v")
		r = t.keyed(both)
		equal(t, r[0], stint.Receipt{ID: first, Duplicate: true}, "the repetition is answered with %+v, want %+v")
		fresh := t.keyed(job("k", stint.UniqueUntilEnded(), stint.IdempotencyKey("c")))[0]
		r = t.keyed(job("k", stint.UniqueUntilEnded(stint.OrCancelOld()), stint.IdempotencyKey("c")))
		equal(t, r[0], stint.Receipt{ID: fresh.ID, Duplicate: true}, "a repetition cancels nothing: it is answered with %+v, want %+v")
		t.state(fresh.ID, stint.Available)
	}},
	{"A unique key that was rolled back is free, and in a transaction what is ready is kept", func(t *T) {
		a := job("k", stint.UniqueUntilEnded(stint.OrReplace()))
		tx := t.begin()
		t.keyedIn(tx, a)
		t.must(tx.Rollback())
		waits := t.keyed(job("k", stint.UniqueUntilEnded(), stint.Delay(time.Hour)))[0]
		expect(t, !waits.Duplicate, "after the rollback it is answered with %+v", waits)
		tx = t.begin()
		second := t.keyedIn(tx, a)[0]
		third := t.keyedIn(tx, a)[0]
		t.must(tx.Commit())
		expect(t, second.Replaced == waits.ID, "what waits is answered with %+v", second)
		equal(t, third, stint.Receipt{ID: second.ID, Duplicate: true, State: stint.Available}, "what is ready is answered with %+v, want %+v")
		t.state(waits.ID, stint.Cancelled)
	}},
	{"Who is run at once takes its unique key, or is a duplicate", func(t *T) {
		as[store.ClaimedEnqueuer](t)
		w := t.join("k")
		a := job("k", stint.UniqueUntilEnded())
		e := w.now(t, a).Entries[0]
		equal(t, t.info(e.ID).Unique, "until-ended", "it says %q, want %q")
		_, err := w.tryNow(t, a)
		var dup *store.DuplicateError
		expect(t, errors.As(err, &dup) && dup.ID == e.ID && dup.Key == "", "the second is answered with %v", err)
		r := t.keyed(a)[0]
		expect(t, r.Duplicate && r.ID == e.ID, "as usual it is answered with %+v", r)
		w.Complete(e)
		w.Complete(w.now(t, a).Entries...)
	}},
	{"Of many producers at once one stores the unique job, and none deadlocks", uniqueRace},
	{"What is replaced never runs, whoever claims meanwhile", replaceBesideClaims},
}

func withArgs(kind, args string, opts ...stint.Option) stint.NewJob {
	j := job(kind, opts...)
	j.Args = json.RawMessage(args)
	return j
}

// uniqueWhileUnfinished takes a unique job through all that can happen to one.
func uniqueWhileUnfinished(t *T) {
	a := job("k", stint.UniqueUntilEnded(), stint.Retry(retry.Fixed(5, time.Millisecond)))
	waits := a
	waits.Delay = 10 * time.Millisecond
	first := t.keyed(waits)[0].ID
	is := func(state stint.State, when string) {
		t.Helper()
		equal(t, t.keyed(a)[0], stint.Receipt{ID: first, Duplicate: true, State: state}, when+" it is answered with %+v, want %+v")
	}
	is(stint.Scheduled, "while it waits")
	t.promoteAfter(20*time.Millisecond, 1)
	is(stint.Available, "when it is ready")
	w := t.join("k")
	e := w.One()
	is(stint.Running, "when it is claimed")
	w.Heartbeat(e.Pos)
	w.Leave()
	is(stint.Available, "when its engine was buried")
	w = t.join("k")
	e = w.One()
	w.Finish(failed, e)
	is(stint.Retrying, "when it failed")
	t.promoteAfter(20*time.Millisecond, 1)
	e = w.One()
	is(stint.Running, "when it runs again")
	w.Complete(e)
	second := t.keyed(a)[0]
	expect(t, !second.Duplicate && second.ID != first, "when it has completed it is answered with %+v", second)
	first = second.ID
	is(stint.Available, "when the next one is there")
	w.Finish(failedFinally, w.One())
	third := t.keyed(a, job("k"))[0]
	expect(t, !third.Duplicate, "when it has failed it is answered with %+v", third)
}

// uniqueRace has many producers enqueue batches of few keys while engines complete jobs.
func uniqueRace(t *T) {
	const producers, keys = 8, 12
	var stop atomic.Bool
	var side, wg sync.WaitGroup
	seed := NewSeed(t)
	w := t.join("k")
	side.Go(func() {
		for !stop.Load() {
			w.Complete(w.ClaimAll()...)
			time.Sleep(time.Millisecond)
		}
	})
	side.Go(func() {
		for !stop.Load() {
			t.onePerKey()
			time.Sleep(2 * time.Millisecond)
		}
	})
	for p := range producers {
		s, r := t.Store, seed.Rand(fmt.Sprint("producer ", p))
		wg.Go(func() {
			for range 25 {
				_, err := stint.NewClient(s).EnqueueReceipts(t.ctx, uniqueBatch(r, keys))
				expect(t, err == nil, "producer %d: %v", p, err)
			}
		})
	}
	wg.Wait()
	stop.Store(true)
	side.Wait()
	t.onePerKey()
}

// uniqueBatch is a batch of jobs of different keys, in any order and with any answer to a conflict.
func uniqueBatch(r *rand.Rand, keys int) []stint.NewJob {
	var batch []stint.NewJob
	for _, k := range r.Perm(keys)[:1+r.IntN(keys-1)] {
		mode := []stint.UniqueOption{func(*stint.Uniqueness) {}, func(*stint.Uniqueness) {}, stint.OrReplace(), stint.OrReplaceKeepTime(), stint.OrDebounce(10 * time.Millisecond)}[r.IntN(5)]
		j := withArgs("k", fmt.Sprintf(`{"id":%d,"n":%d}`, k, r.IntN(1e6)), stint.UniqueUntilEnded(stint.By("/id"), mode), stint.URN(fmt.Sprint(k)))
		if r.IntN(3) == 0 {
			j.Delay = time.Duration(r.IntN(20)) * time.Millisecond
		}
		batch = append(batch, j)
	}
	return batch
}

// onePerKey checks that at one moment no two jobs of a key are unfinished. The key is the URN.
func (t *T) onePerKey() {
	page, err := t.Store.Jobs(t.ctx, store.Filter{Limit: 1000, States: []stint.State{stint.Scheduled, stint.Retrying, stint.Available, stint.Running}})
	expect(t, err == nil, "%v", err)
	seen := map[string]stint.ID{}
	for _, j := range page {
		expect(t, seen[j.URN] == 0, "of key %s both job %d and job %d, which is %s, are unfinished", j.URN, seen[j.URN], j.ID, j.State)
		seen[j.URN] = j.ID
	}
}

// replaceBesideClaims replaces a job over and over while an engine claims.
func replaceBesideClaims(t *T) {
	w := t.join("k")
	stop := make(chan struct{})
	var ran sync.Map
	var side sync.WaitGroup
	side.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, e := range w.ClaimAll() {
				ran.Store(e.ID, true)
				w.Complete(e)
			}
		}
	})
	seed := NewSeed(t).Rand("delays")
	var replaced []stint.ID
	kept := 0
	ctx, cancel := context.WithTimeout(t.ctx, 2*time.Second)
	defer cancel()
	for i := 0; ctx.Err() == nil && (len(replaced) < 150 || kept < 5); i++ {
		j := withArgs("k", fmt.Sprintf(`{"n":%d}`, i), stint.UniqueUntilEnded(stint.Across("one"), stint.By("/one"), stint.OrReplace()))
		j.Args = fmt.Appendf(nil, `{"one":1,"n":%d}`, i)
		r := t.keyed(j)[0]
		if r.Replaced != 0 {
			replaced = append(replaced, r.Replaced)
		} else if r.Duplicate {
			kept++
			expect(t, r.State == stint.Running, "job %d is kept, being %s", r.ID, r.State)
		}
		time.Sleep(time.Duration(seed.IntN(300)) * time.Microsecond)
	}
	close(stop)
	side.Wait()
	for _, id := range replaced {
		if _, ok := ran.Load(id); ok {
			t.Errorf("job %d was replaced, and ran", id)
		}
		t.state(id, stint.Cancelled)
	}
	t.Logf("%d replaced, %d kept", len(replaced), kept)
}
