package storetest

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// orderTests are about limits that keep an order: what holds up the jobs of a gate, and until when.
var orderTests = []test{
	{"A job that comes again holds up those that have not begun until it has ended, and goes before them", func(t *T) {
		t.rules(map[string]string{"smtp": "1,in-order", "tenant": "5"})
		w, other := t.join("k"), t.join("k")
		for name, again := range map[string]func(store.Entry){
			"it failed":       func(e store.Entry) { t.waits(w, failed, e) },
			"it snoozed":      func(e store.Entry) { t.waits(w, snoozed, e) },
			"it was returned": func(e store.Entry) { w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, e) },
			"it failed twice": func(e store.Entry) {
				t.waits(w, failed, e)
				t.waits(w, failed, t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme"))
			},
			"its engine was lost": func(e store.Entry) {
				v := t.join("k")
				w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, e)
				t.gated(v, store.Mark{}, store.PartFront, "smtp\ntenant=acme")
				v.Leave()
			},
		} {
			id := t.enqueue(limited())[0]
			e := t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme")
			expect(t, !t.order(w, "smtp").Blocked, "while job %d runs for the first time it holds up others", id)
			again(e)
			t.enqueue(limited())
			t.heldUp(other, "smtp", id)
			t.free(other, "tenant=acme")
			e = t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme")
			expect(t, e.ID == id, "when %s, job %d comes first, want %d", name, e.ID, id)
			t.heldUp(other, "smtp", id)
			w.Complete(e)
			t.free(other, "smtp")
			w.Complete(t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		}
	}},
	{"A rule keeps the order of what comes again from then on, and as long as it says so", func(t *T) {
		t.rules(map[string]string{"smtp": "1"})
		w := t.join("k")
		id := t.enqueue(limited())[0]
		t.waits(w, failed, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		t.rules(map[string]string{"smtp": "1,in-order"})
		t.free(w, "smtp")
		t.waits(w, failed, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		t.heldUp(w, "smtp", id)
		t.rules(map[string]string{"smtp": "1"})
		t.free(w, "smtp")
		t.rules(map[string]string{"smtp": "1,in-order"})
		t.heldUp(w, "smtp", id)
		w.Complete(t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme"))
		t.free(w, "smtp")
	}},
	{"What a job costs is no part of the gate whose order it keeps", func(t *T) {
		t.rules(map[string]string{"smtp": "1,in-order"})
		w := t.join("k")
		j := limited()
		stint.Limited("3*smtp")(&j)
		id := t.enqueue(j)[0]
		t.waits(w, failed, t.gated(w, store.Mark{}, store.PartNormal, "3*smtp\ntenant=acme"))
		t.heldUp(w, "smtp", id)
		w.Complete(t.gated(w, store.Mark{}, store.PartFront, "3*smtp\ntenant=acme"))
		t.free(w, "smtp")
	}},
	{"Each key has an order of its own", func(t *T) {
		t.rules(map[string]string{"tenant": "1,in-order"})
		w := t.join("k")
		id := t.enqueue(limited())[0]
		t.waits(w, failed, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		t.heldUp(w, "tenant=acme", id)
		t.free(w, "tenant=other")
		t.free(w, "tenant")
	}},
	{"What was not ready at once goes behind, though another job goes first", func(t *T) {
		t.rules(map[string]string{"smtp": "1,in-order"})
		w := t.join("k")
		id := t.enqueue(limited())[0]
		t.waits(w, failed, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		mark, later := t.mark(), t.enqueue(limited(stint.Delay(time.Millisecond)))[0]
		t.promoteAfter(20*time.Millisecond, 1)
		equal(t, t.gated(w, mark, store.PartNormal, "smtp\ntenant=acme").ID, later, "in the lane behind is job %d, want %d")
		equal(t, t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme").ID, id, "in front is job %d, want %d")
	}},
	{"A job that waited goes first as well when people have it run now", func(t *T) {
		as[store.Operator](t)
		t.rules(map[string]string{"smtp": "1,in-order"})
		w := t.join("k")
		id := t.enqueue(limited())[0]
		x := w.Conclude(t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"), snoozed)
		x.Next.Delay = time.Hour
		w.record(1, x)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{id: {Answer: stint.RerunReady, ID: id}})
		w.Complete(t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme"))
	}},
	{"Who is cancelled or deleted holds up nobody", func(t *T) {
		as[store.Canceller](t)
		as[store.Operator](t)
		t.rules(map[string]string{"smtp": "1,in-order"})
		w := t.join("k")
		id := t.enqueue(limited())[0]
		x := w.Conclude(t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"), snoozed)
		x.Next.Delay = time.Hour
		w.record(1, x)
		t.heldUp(w, "smtp", id)
		t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelledNow}, "")
		t.free(w, "smtp")
		t.deletes(map[stint.ID]store.DeleteStatus{id: store.DeletedNow})
		t.free(w, "smtp")
	}},
	{"When a job has failed for good the others go on, unless the rule says halt", func(t *T) {
		as[store.Operator](t)
		l := as[store.Limiter](t)
		t.rules(map[string]string{"smtp": "1,in-order"})
		w := t.join("k")
		t.enqueue(limited())
		w.Finish(failedFinally, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		t.free(w, "smtp")
		t.rules(map[string]string{"smtp": "1,in-order,halt"})
		t.free(w, "smtp")
		id := t.enqueue(limited())[0]
		t.waits(w, failed, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		t.heldUp(w, "smtp", id)
		w.Finish(failedFinally, t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme"))
		t.halted(w, "smtp", id)

		again := t.recovers(id, stint.RerunOptions{})
		t.heldUp(w, "smtp", again)
		e := t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme")
		expect(t, e.ID == again, "retried it is job %d, want %d", e.ID, again)
		w.Finish(failedFinally, e)
		t.halted(w, "smtp", again)
		last := t.recovers(again, stint.RerunOptions{Delay: time.Hour})
		t.heldUp(w, "smtp", last)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{last: {Answer: stint.RerunReady, ID: last}})
		w.Finish(failedFinally, t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme"))
		t.halted(w, "smtp", last)

		for gate, want := range map[string][]stint.ID{"tenant=acme": nil, "smt": nil} {
			equalAll(t, must(l.Unblock(t.ctx, gate))(t), want, "unblocked, %s waited for %v, want %v", gate)
		}
		t.halted(w, "smtp", last)
		equalAll(t, must(l.Unblock(t.ctx, "smtp"))(t), []stint.ID{last}, "it waited for %v, want %v")
		t.free(w, "smtp")
		equalAll(t, must(l.Unblock(t.ctx, "smtp"))(t), nil, "unblocked again, it waited for %v, want %v")
		w.Complete(t.claimAfter(w, t.recovers(last, stint.RerunOptions{})))
	}},
	{"Also when a retry function decided that it has failed", func(t *T) {
		t.rules(map[string]string{"smtp": "1,in-order,halt"})
		w := t.join("k")
		id := t.enqueue(limited(stint.Retry(retry.Function("f"))))[0]
		w.Finish(failure, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		t.heldUp(w, "smtp", id)
		t.decided(w, 1, t.decisions(retry.Final("no"))...)
		t.halted(w, "smtp", id)
	}},
	{"What ended is forgotten, and what holds up others is not", func(t *T) {
		l := as[store.Limiter](t)
		t.rules(map[string]string{"smtp": "1,in-order,halt", "tenant": "1,in-order"})
		w := t.join("k")
		id := t.enqueue(limited())[0]
		t.waits(w, failed, t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme"))
		equal(t, must(l.TidyPermits(t.ctx))(t), 0, "of what waits %d rows were forgotten, want %d")
		t.heldUp(w, "tenant=acme", id)
		t.must(errOf(l.TidyPermits(t.ctx)))
		w.Finish(failedFinally, t.gated(w, store.Mark{}, store.PartFront, "smtp\ntenant=acme"))
		equal(t, must(l.TidyPermits(t.ctx))(t), 1, "of what has ended %d rows were forgotten, want %d")
		t.halted(w, "smtp", id)
		t.free(w, "tenant=acme")
	}},
}

// waits has an attempt end so that its job waits, and promotes it.
func (t *T) waits(w *Worker, end store.Result, e store.Entry) {
	t.Helper()
	x := w.Conclude(e, end)
	soon(&x)
	w.record(1, x)
	t.promoteAll(1)
}

// order asks about a gate.
func (t *T) order(w *Worker, gate string) store.Hold {
	t.Helper()
	return t.permits(w, keeping(gate, 0))[0]
}

// try asks for a permit, gives it back, and returns whether it got one.
func (t *T) try(w *Worker, gate string, again bool) bool {
	t.Helper()
	h := t.permits(w, store.PermitRequest{Take: []store.Taking{{Gates: []store.TakingGate{{Gate: gate}}, Want: 1, Again: again}}})[0]
	if h.Permits > 0 {
		t.order(w, gate)
	}
	return h.Permits > 0
}

// heldUp checks that the jobs of a gate wait for one that comes again, and that people see it.
func (t *T) heldUp(w *Worker, gate string, by stint.ID) {
	t.Helper()
	expect(t, t.order(w, gate).Blocked && !t.try(w, gate, false) && t.try(w, gate, true), "job %d does not hold up those of %q that have not begun, or those that come again too", by, gate)
	t.seesOrder(gate, store.GateOrder{Again: by})
}

// halted checks that no job of a gate may start since one failed.
func (t *T) halted(w *Worker, gate string, since stint.ID) {
	t.Helper()
	expect(t, t.order(w, gate).Blocked && !t.try(w, gate, false) && !t.try(w, gate, true), "jobs of %q may start although job %d failed", gate, since)
	t.seesOrder(gate, store.GateOrder{Failed: since})
}

// free checks that nothing holds up the jobs of a gate.
func (t *T) free(w *Worker, gate string) {
	t.Helper()
	expect(t, !t.order(w, gate).Blocked && t.try(w, gate, false), "the jobs of %q are held up", gate)
	t.seesOrder(gate, store.GateOrder{})
}

func (t *T) seesOrder(gate string, want store.GateOrder) {
	t.Helper()
	var got store.GateOrder
	for _, g := range must(as[store.Limiter](t).Gates(t.ctx, gate, 9))(t) {
		if g.Gate == gate {
			got = g.GateOrder
		}
	}
	equal(t, got, want, "of %q people see the order %+v, want %+v", gate)
}

// claimAfter claims the job that is ready.
func (t *T) claimAfter(w *Worker, id stint.ID) store.Entry {
	t.Helper()
	e := t.gated(w, store.Mark{}, store.PartNormal, "smtp\ntenant=acme")
	equal(t, e.ID, id, "job %d is ready, want %d")
	return e
}
