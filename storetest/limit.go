package storetest

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// limitedTests are about jobs that wait for limits: their lanes, and what is kept with them.
var limitedTests = []test{
	{"A job with limits goes to a lane of its own, whatever it is stored with", func(t *T) {
		as[store.Limiter](t)
		w := t.join("k")
		for _, c := range []struct {
			with string
			jobs []stint.NewJob
		}{
			{"nothing", []stint.NewJob{limited()}},
			{"a policy", []stint.NewJob{limited(stint.Retry(retry.Fixed(3, time.Second)))}},
			{"others without limits", []stint.NewJob{job("k"), limited(), job("k")}},
			{"tags", []stint.NewJob{limited(stint.Tag("a", "b"))}},
			{"a time to begin by", []stint.NewJob{limited(stint.StartWithin(time.Hour))}},
			{"an idempotency key", []stint.NewJob{limited(stint.IdempotencyKey("key")), job("k", stint.IdempotencyKey("other"))}},
			{"a unique key", []stint.NewJob{limited(stint.UniqueUntilEnded())}},
			{"very many others", append(jobs(300, "k"), limited())},
		} {
			mark := t.mark()
			t.enqueue(c.jobs...)
			t.gated(w, mark, store.PartNormal, "smtp\ntenant=acme")
			for _, e := range w.ClaimAll() {
				expect(t, e.Limits == "" && t.info(e.ID).Limits == nil, "with %s a job without limits has %q", c.with, e.Limits)
				w.Complete(e)
			}
		}
	}},
	{"Also in a caller's transaction", func(t *T) {
		as[store.Limiter](t)
		w, mark, tx := t.join("k"), t.mark(), t.begin()
		t.enqueueIn(tx, limited())
		t.must(tx.Commit())
		t.gated(w, mark, store.PartNormal, "smtp\ntenant=acme")
	}},
	{"Also when it was not ready at once", func(t *T) {
		as[store.Limiter](t)
		w, mark := t.join("k"), t.mark()
		id := t.enqueue(limited(stint.Delay(time.Millisecond)))[0]
		equalAll(t, t.info(id).Limits, []string{"smtp", "tenant=acme"}, "while it waits, people see %q, want %q")
		t.promoteAfter(20*time.Millisecond, 1)
		t.gated(w, mark, store.PartNormal, "smtp\ntenant=acme")
	}},
	{"Jobs of the same limits share a lane, and those of others do not", func(t *T) {
		as[store.Limiter](t)
		t.enqueue(job("k", stint.Limited("a", "b")), job("k", stint.Limited("b", "a")), job("k", stint.Limited("a")), job("k", stint.Limited("a=b")), job("k"))
		want := map[string]int{"a\nb": 2, "a": 1, "a=b": 1, "": 1}
		w, got := t.join("k"), map[string]int{}
		for _, head := range t.look(store.LaneHints{}) {
			entries := w.Claim(head.Lane, 10)
			got[head.Limits] += len(entries)
			for _, e := range entries {
				equal(t, e.Limits, head.Limits, "job %d has the limits %q, its lane %q", e.ID)
			}
			w.Complete(entries...)
		}
		expect(t, maps.Equal(got, want), "the lanes gave %v jobs, want %v", got, want)
	}},
	{"The keys of its limits come from the arguments, as text", func(t *T) {
		as[store.Limiter](t)
		w := t.join("k")
		for pointer, want := range map[string]string{
			"/s": "x=a b", "/n": "x=-9007199254740993", "/t": "x=true", "/in/0/deep": "x=ü=1", "/a~1b": "x=slash", "/m~0n": "x=tilde", "/": "x=empty",
		} {
			mark := t.mark()
			j := job("k", stint.LimitedBy("x", pointer))
			j.Args = json.RawMessage(`{"s":"a b","n":-9007199254740993,"t":true,"in":[{"deep":"ü=1"}],"a/b":"slash","m~n":"tilde","":"empty"}`)
			t.enqueue(j)
			t.gated(w, mark, store.PartNormal, want)
		}
	}},
	{"Limits that can never be right are refused, and nothing is stored", func(t *T) {
		as[store.Limiter](t)
		for _, limits := range [][]string{
			{""}, {"a b"}, {"a", "a=x"}, {"a="}, {"=x"}, {"a\nb"}, {"a=\x00"}, {"a by x"}, {"a by /none"}, {"a by /list"}, {"a by /float"}, {"a by /null"},
			{"a by /empty"}, {"a by /list/01"}, {"a by /list/-1"}, {"a by /x~2"}, {strings.Repeat("l", 101)}, {"1", "2", "3", "4", "5", "6", "7", "8", "9"},
		} {
			j := stint.NewJob{Kind: "k", Limits: limits, Args: json.RawMessage(`{"list":[1,"a"],"float":1.5,"null":null,"empty":""}`)}
			fails(t, errOf(stint.NewClient(t.Store).Enqueue(t.ctx, j)), stint.ErrInvalid, "the limits %q give %v", limits)
		}
		t.jobs()
	}},
	{"Whatever becomes of an attempt, the next one has the limits of the job", func(t *T) {
		as[store.Limiter](t)
		w := t.join("k")
		id := t.enqueue(limited())[0]
		var e store.Entry
		next := func(part store.Part) {
			t.Helper()
			got := t.gated(w, store.Mark{}, part, "smtp\ntenant=acme")
			expect(t, got.ID == id, "job %d is claimed, want %d", got.ID, id)
			e = got
		}
		next(store.PartNormal)
		for _, part := range []store.Part{store.PartFront, store.PartKind, store.PartNormal} {
			w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: part}, e)
			next(part)
		}
		for _, end := range []store.Result{failed, snoozed} {
			x := w.Conclude(e, end)
			soon(&x)
			w.record(1, x)
			equalAll(t, t.info(id).Limits, []string{"smtp", "tenant=acme"}, "while it waits, people see %q, want %q")
			t.promoteAll(1)
			next(store.PartNormal)
		}
		w.Leave()
		w = t.join("k")
		next(store.PartFront)
		w.Heartbeat(e.Pos)
		w.Leave()
		w = t.join("k")
		next(store.PartFront)
		w.Complete(e)
	}},
	{"What runs again has its limits, and so has what is recovered", func(t *T) {
		as[store.Limiter](t)
		as[store.Operator](t)
		w := t.join("k")
		id := t.enqueue(limited(stint.Delay(time.Hour)))[0]
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{id: {Answer: stint.RerunReady, ID: id}})
		w.Finish(failedFinally, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		t.recovers(id, stint.RerunOptions{})
		w.Complete(t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		again := t.recovers(id, stint.RerunOptions{Delay: time.Hour})
		equalAll(t, t.info(again).Limits, []string{"smtp", "tenant=acme"}, "recovered for later it has %q, want %q")
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{again: {Answer: stint.RerunReady, ID: again}})
		w.Complete(t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
	}},
	{"What a retry function decides about has its limits, and what is cancelled keeps them", func(t *T) {
		as[store.Limiter](t)
		as[store.Canceller](t)
		w := t.join("k")
		ids := t.enqueue(limited(stint.Retry(retry.Function("f"))), limited(stint.Retry(retry.Function("f"))), limited(), limited(stint.Delay(time.Hour)))
		entries := w.ClaimAll()
		need(t, len(entries) == 3, "claimed %d jobs, want 3", len(entries))
		x := w.Conclude(entries[2], snoozed)
		x.Next.Delay = time.Hour
		w.record(1, x)
		w.Finish(failure, entries[:2]...)
		t.cancels(map[stint.ID]stint.CancelStatus{ids[1]: stint.CancelledNow, ids[2]: stint.CancelledNow, ids[3]: stint.CancelledNow}, "")
		for _, id := range ids {
			equalAll(t, t.info(id).Limits, []string{"smtp", "tenant=acme"}, "people see %q, want %q")
		}
		done := t.decisions(retry.Again(0))
		t.decided(w, 1, done...)
		t.promoteAll(1)
		w.Complete(t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
	}},
	{"Jobs of schedules have their limits", func(t *T) {
		as[store.Limiter](t)
		s := every("s")
		s.Job = stint.NewJob{Kind: "k", Args: json.RawMessage(`{"tenant":"acme"}`), Limits: []string{"smtp", "tenant by /tenant"}}
		t.declare(s)
		mark := t.mark()
		id := t.tick("s", 1)[0]
		e := t.gated(t.join("k"), mark, store.PartNormal, "smtp\ntenant=acme")
		expect(t, e.ID == id && e.Origin.Schedule == "s", "claimed is job %d of %q, want %d", e.ID, e.Origin.Schedule, id)
	}},
	{"What would run where it is enqueued cannot wait for limits, and is refused", func(t *T) {
		as[store.Limiter](t)
		w := t.join("k")
		_, err := w.tryNow(t, limited())
		fails(t, err, stint.ErrInvalid, "it gives %v")
		t.jobs()
	}},
	{"Kinds are listed with their limits, as they were declared last", func(t *T) {
		as[store.Limiter](t)
		limits := func(want ...string) {
			t.Helper()
			w := NewWorker(t, t.Store)
			t.must(t.Store.Join(t.ctx, w.Info, []stint.KindInfo{{Name: "k", Limits: want}}))
			kinds := must(t.Store.Kinds(t.ctx))(t)
			need(t, len(kinds) == 1, "%d kinds are listed, want one", len(kinds))
			equalAll(t, kinds[0].Limits, want, "the kind has the limits %q, want %q")
			expect(t, len(want) > 0 || kinds[0].Limits == nil, "without limits the kind has %#v", kinds[0].Limits)
		}
		limits()
		limits("smtp", "tenant by /tenant")
		limits("tenant by /tenant")
		limits()
	}},
}

// limited is a job that waits for two limits, of which one has a key.
func limited(opts ...stint.Option) stint.NewJob {
	j := job("k", append(opts, stint.LimitedBy("tenant", "/tenant"), stint.Limited("smtp"))...)
	j.Args = json.RawMessage(`{"tenant":"acme"}`)
	return j
}

// mark is this moment of the log.
func (t *T) mark() store.Mark {
	t.Helper()
	return must(t.Store.LookSince(t.ctx, store.Mark{}))(t).Until
}

// gated claims the one entry that is ready in the lane of some gates, and checks that it shows with
// these wherever an engine looks, also since a mark, if there is one.
func (t *T) gated(w *Worker, mark store.Mark, part store.Part, gates string) store.Entry {
	t.Helper()
	lane := store.LimitedLane(stint.DefaultQueue, 0, part, "k", gates).ID
	heads := map[string]store.LaneHead{"a look": t.look(store.LaneHints{})[lane], "a look at known lanes": t.look(store.LaneHints{Mine: []store.LaneID{lane}})[lane]}
	if mark.Set {
		heads["a look since a mark"] = store.LaneHead{}
		for _, head := range must(t.Store.LookSince(t.ctx, mark))(t).Heads {
			if head.Lane == lane {
				heads["a look since a mark"] = head
			}
		}
	}
	for from, head := range heads {
		expect(t, head.Lane == lane && head.Limits == gates, "%s shows %+v, want the lane %d of %q", from, head, lane, gates)
	}
	entries := w.Claim(lane, 10)
	need(t, len(entries) == 1, "the lane of %q gave %d jobs, want one", gates, len(entries))
	e := entries[0]
	equal(t, e.Limits, gates, "job %d is claimed with %q, want %q", e.ID)
	read := must(t.Store.Fetch(t.ctx, []store.Position{e.Pos}))(t)
	expect(t, len(read) == 1 && read[0].Limits == gates, "job %d is read as %+v, want the limits %q", e.ID, read, gates)
	equalAll(t, t.info(e.ID).Limits, strings.Split(gates, "\n"), "people see the limits %q, want %q")
	return e
}
