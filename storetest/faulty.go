package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// faultyTests are about jobs that people should look at before they have
// failed for good.
var faultyTests = []test{
	{"A job is faulty from its bound on, wherever it is, until it ends", faultyLife},
	{"The filter by faulty shows those alone, and together with others", func(t *T) {
		w := t.join("k")
		var faulty []stint.ID
		for _, queue := range []string{"p", "q"} {
			for _, policy := range []retry.Policy{retry.Fixed(1, time.Hour), retry.Fixed(2, time.Hour), retry.Forever(time.Hour).Faulty(1)} {
				id := t.enqueue(job("k", stint.Queue(queue), stint.Retry(policy)))[0]
				w.Finish(failed, w.ClaimAll()...)
				if policy != retry.Fixed(2, time.Hour) {
					faulty = append(faulty, id)
				}
			}
		}
		t.enqueue(job("k"), job("k", stint.Delay(time.Hour)))
		slices.Reverse(faulty)
		for _, c := range []struct {
			f    store.Filter
			want []stint.ID
		}{
			{store.Filter{Faulty: true}, faulty},
			{store.Filter{Faulty: true, Queue: "p"}, faulty[2:]},
			{store.Filter{Faulty: true, States: []stint.State{stint.Retrying}}, faulty},
			{store.Filter{Faulty: true, States: []stint.State{stint.Available}}, []stint.ID{}},
			{store.Filter{Faulty: true, States: []stint.State{stint.Failed}}, []stint.ID{}},
			{store.Filter{Faulty: true, Limit: 1, Before: faulty[0]}, faulty[1:2]},
		} {
			equalAll(t, t.list(c.f), c.want, "%+v shows %v, want %v", c.f)
		}
	}},
	{"Every final state has its reason, in the list as in the job", func(t *T) {
		w := t.join("k")
		failed := func(err error) store.Result { return store.Result{Outcome: stint.OutcomeFailed, Err: err} }
		for _, c := range []struct {
			end    store.Result
			policy retry.Policy
			want   string
		}{
			{completed, retry.Default(), "done"},
			{cancelled, retry.Default(), "cancelled"},
			{store.Result{Outcome: stint.OutcomeCancelled, Note: "sold out"}, retry.Default(), "sold out"},
			{expired, retry.Default(), "expired"},
			{failed(errors.New("no")), retry.None(), "no retries"},
			{failed(errors.New("no")), retry.Fixed(0, 0), "retries exhausted"},
			{failed(stint.NoRetry(errors.New("no"))), retry.Default(), "error not retriable"},
			{failed(errors.New("no")), retry.Default().Only("timeout"), "error not retriable"},
		} {
			id := t.enqueue(job("k", stint.Retry(c.policy)))[0]
			w.Finish(c.end, w.ClaimAll()...)
			info := t.info(id)
			listed := must(t.Store.Jobs(t.ctx, store.Filter{Limit: 1}))(t)
			if info.Reason != c.want || listed[0].Reason != c.want || info.Attempts[0].Reason != c.want {
				t.Errorf("%v under %v: the job says %q, the list %q, the execution %q, want %q",
					c.end.Outcome, c.policy, info.Reason, listed[0].Reason, info.Attempts[0].Reason, c.want)
			}
		}
		id := t.enqueue(job("k", stint.MaxLosses(1)))[0]
		w.Heartbeat(w.One().Pos)
		w.Leave()
		equal(t, t.info(id).Reason, "lost", "a lost job says %q, want %q")
	}},
}

func faultyLife(t *T) {
	id := t.enqueue(job("k", stint.Retry(retry.Fixed(9, 0).Faulty(2))))[0]
	w := t.join("k")
	see := func(state stint.State, faulty bool) {
		t.Helper()
		info := t.info(id)
		expect(t, info.State == state && info.Faulty == faulty,
			"it is %s, faulty %v; want %s, %v", info.State, info.Faulty, state, faulty)
		got := t.list(store.Filter{Faulty: true})
		expect(t, (len(got) == 1) == faulty, "%s, faulty %v: the filter shows %v", state, faulty, got)
	}
	fails := failed
	see(stint.Available, false)
	w.Finish(fails, w.One())
	see(stint.Retrying, false)
	t.promoteAll(1)
	e := w.One()
	see(stint.Running, false)
	w.Finish(fails, e)
	see(stint.Retrying, true)
	t.promoteAll(1)
	see(stint.Available, true)
	e = w.One()
	see(stint.Running, true)
	w.Finish(returned, e)
	see(stint.Available, true)
	w.Finish(snoozed, w.One())
	see(stint.Scheduled, true)
	t.promoteAll(1)
	w.Heartbeat(w.One().Pos)
	w.Leave() // it was lost
	see(stint.Available, true)
	w = t.join("k")
	w.Complete(w.One())
	see(stint.Completed, false)
}
