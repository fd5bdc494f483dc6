package storetest

import (
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// everyEnd brings jobs to an end in every way there is.
func everyEnd(t *T) {
	no := failedFinally
	w := t.join("k")
	ended := map[string]stint.ID{}
	again := func(name string, end store.Result, last store.Result) {
		id := t.enqueue(rich())[0]
		x := w.Conclude(w.One(), end)
		x.Next.Delay = 0
		t.must(errOf(w.TryFinish(t.ctx, x)))
		if x.Next.Wait {
			t.promoteAll(1)
		}
		w.Finish(last, w.One())
		ended[name] = id
	}
	for name, end := range map[string]store.Result{
		"completed": completed, "failed": no, "cancelled by its handler": cancelled, "expired": expired,
	} {
		ended[name] = t.enqueue(rich())[0]
		w.Finish(end, w.One())
		again("retried, then "+name, failure, end)
		again("snoozed, then "+name, snoozed, end)
		again("returned, then "+name, returned, end)
	}

	due := t.enqueue(job("k", stint.Delay(time.Millisecond)))[0]
	t.promoteAfter(15*time.Millisecond, 1)
	w.Complete(w.One())
	ended["promoted"] = due

	ended["lost for good"] = t.enqueue(job("k", stint.MaxLosses(0)))[0]
	dies := t.join("k")
	dies.Heartbeat(dies.One().Pos)
	dies.Leave()
	t.state(ended["lost for good"], stint.Failed)
	ended["lost once"] = t.enqueue(job("k"))[0]
	dies = t.join("k")
	dies.Heartbeat(dies.One().Pos)
	dies.Leave()
	w.Complete(w.One())

	ended["cancelled before it was ready"] = t.enqueue(job("k", stint.Delay(time.Hour)))[0]
	ended["cancelled between attempts"] = t.enqueue(job("k"))[0]
	w.Finish(failure, w.One())
	ended["cancelled while it was ready"] = t.enqueue(job("k"))[0]
	t.cancel("", ended["cancelled before it was ready"], ended["cancelled between attempts"], ended["cancelled while it was ready"])
	w.Finish(cancelled, w.One())

	ended["decided"] = t.undecided("f")[0]
	t.decided(w, 1, t.decisions(retry.Decision{})...)
	ended["decided, and then cancelled"] = t.undecided("f")[0]
	t.cancel("", ended["decided, and then cancelled"])

	ended["recovered"] = t.enqueue(rich())[0]
	w.Finish(no, w.One())
	ended["what recovered it"] = t.recovers(ended["recovered"], stint.RerunOptions{})
	w.Complete(w.One())

	for name, id := range ended {
		s := t.info(id).State
		need(t, s.Final(), "%s: it is %s", name, s)
	}
	t.retain(years)
	for name, id := range ended {
		_, err := t.Store.Job(t.ctx, id)
		expect(t, err == nil, "%s: young, and %v", name, err)
	}
	w.Leave()
	t.retain(atOnceKept)
	for name, id := range ended {
		fails(t, errOf(t.Store.Job(t.ctx, id)), stint.ErrNotFound, "%s: it is there, error %v", name)
	}
	t.gone(slices.Collect(maps.Values(ended))...)
	left := t.list(store.Filter{Tag: rich().Tags[0]})
	expect(t, len(left) == 0, "by tag there are %v", left)
	t.recount()
	l := t.ledger()
	expect(t, len(l.Entries)+len(l.Executions)+len(l.Waiting)+len(l.Jobs) == 0,
		"%d entries, %d executions, %d waits and %d jobs are left", len(l.Entries), len(l.Executions), len(l.Waiting),
		len(l.Jobs))
}
