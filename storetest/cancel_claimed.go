package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// cancelClaimedTests are about jobs that an engine has in its hands.
var cancelClaimedTests = []test{
	{"What is available is cancelled at once, and its claimer is told", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		t.cancels(map[stint.ID]stint.CancelStatus{ids[1]: stint.CancelledNow}, "not needed")
		info := t.info(ids[1])
		expect(t, info.State == stint.Cancelled && info.Reason == "not needed" && sameJSON(info.Args, []byte("{}")),
			"people see %+v", info)
		w := t.join("k")
		got := w.ClaimAll()
		again := must(t.again().Fetch(t.ctx, positions(got)))(t)
		for _, e := range append(got, again...) {
			equal(t, e.Cancelled, e.ID == ids[1], "job %d was handed out as cancelled: %v, want %v", e.ID)
		}
		w.Finish(cancelled, got[1])
		w.Complete(got[0], got[2])
		info = t.info(ids[1])
		expect(t, info.State == stint.Cancelled && info.Reason == "not needed", "people see %+v", info)
		t.ended(ids...)
	}},
	{"Of many that are handed out at once only the cancelled are told apart", func(t *T) {
		ids := t.enqueue(jobs(30, "k")...)
		w := t.join("k")
		first := w.Claim(lane(stint.DefaultQueue), 1)[0]
		w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, first)
		t.cancels(map[stint.ID]stint.CancelStatus{ids[7]: stint.CancelledNow, first.ID: stint.CancelledNow}, "")
		got := w.Claim(lane(stint.DefaultQueue), 30)
		equal(t, len(got), 30, "%d were claimed, want %d")
		for _, e := range got {
			equal(t, e.Cancelled, e.ID == ids[7] || e.ID == first.ID, "job %d was handed out as cancelled: %v, want %v", e.ID)
		}
	}},
	{"Each of several that are cancelled keeps its own reason", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		for i, id := range ids {
			t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelledNow}, fmt.Sprint("reason ", i))
		}
		w := t.join("k")
		got := w.ClaimAll()
		slices.Reverse(got)
		w.Finish(cancelled, got...)
		for i, id := range ids {
			info := t.info(id)
			expect(t, info.State == stint.Cancelled && info.Reason == fmt.Sprint("reason ", i),
				"job %d is %s, since %q", id, info.State, info.Reason)
		}
	}},
	{"A later entry of a job is handed out as cancelled too", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Finish(returned, w.One())
		t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelledNow}, "")
		t.state(id, stint.Cancelled)
		e := w.One()
		expect(t, e.Cancelled, "it was handed out like any other")
		w.Finish(cancelled, e)
		t.ended(id)
	}},
	{"What is cancelled and nobody claims shows why and when that was, whatever became of it before", cancelUnclaimed},
	{"What was claimed and not begun does not come back", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		got := w.ClaimAll()
		t.cancels(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelRequested}, "no")
		t.state(ids[0], stint.Running)
		w.Finish(returned, got...)
		t.states(ids, stint.Cancelled, stint.Available)
		equal(t, w.One().ID, ids[1], "job %d came back, want %d")
		t.ended(ids[0])
	}},
	{"What runs behind attempts that were recorded is asked to stop, and no other follows", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		for range 3 {
			e := w.One()
			need(t, e.ID == id && !e.Cancelled, "claimed job %d, cancelled: %v", e.ID, e.Cancelled)
			w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, e)
		}
		e := w.One()
		t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelRequested}, "enough")
		t.stopping([]stint.ID{id}, id)
		w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, e)
		t.state(id, stint.Cancelled)
		t.ended(id)
	}},
	{"How the handler ends decides what becomes of a running job", cancelRunning},
	{"A flush that is repeated after the job was cancelled brings nothing back", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		x := w.Conclude(w.One(), failed)
		for i, want := range []int{1, 0, 0} {
			n, err := w.TryFinish(t.ctx, x)
			expect(t, err == nil && n == want, "time %d recorded %d, error %v, want %d", i+1, n, err, want)
			if i == 0 {
				t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelledNow}, "")
			}
		}
		t.ended(id)
	}},
	{"One of a batch is ended, and the others go on", func(t *T) {
		ids := t.enqueue(jobs(8, "k")...)
		w := t.join("k")
		got := w.ClaimAll()
		t.cancel("", ids[1], ids[2], ids[7])
		done := snoozes(w, got[:4])
		for _, e := range got[4:] {
			done = append(done, w.Conclude(e, returned))
		}
		for i, want := range []int{8, 0} {
			n, err := w.TryFinish(t.ctx, done...)
			expect(t, err == nil && n == want, "time %d recorded %d, error %v, want %d", i+1, n, err, want)
		}
		for i, id := range ids {
			want := stint.Scheduled
			switch {
			case slices.Contains([]int{1, 2, 7}, i):
				want = stint.Cancelled
			case i >= 4:
				want = stint.Available
			}
			t.state(id, want)
		}
		t.ended(ids[1], ids[2], ids[7])
	}},
	{"A burial hands cancelled jobs to nobody", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		w.Heartbeat(w.ClaimAll()[0].Pos)
		t.cancel("gone", ids[:2]...)
		told := map[stint.ID]bool{}
		n, err := Bury(t.ctx, t.again(), store.Burial{Engine: w.Info.Token}, func(e *store.Entry, begun bool) store.Completion {
			told[e.ID] = e.Cancelled
			return Judge(e, begun)
		})
		expect(t, err == nil && n == 3, "the burial concluded %d, error %v", n, err)
		for i, id := range ids {
			equal(t, told[id], i < 2, "the judge of job %d is told that it was cancelled: %v, want %v", id)
			t.state(id, []stint.State{stint.Cancelled, stint.Cancelled, stint.Available}[i])
		}
		t.ended(ids[:2]...)
	}},
	{"Cancelling tells who of the asked is to stop", func(t *T) {
		ids := t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		got := w.ClaimAll()
		t.cancel("", ids[0], ids[2], ids[3])
		t.stopping(ids[:3], ids[0], ids[2])
		t.stopping(ids[1:2])
		t.stopping(nil)
		w.Complete(got[0], got[1])
		t.stopping(ids, ids[2], ids[3])
	}},
	{"Cancelling wakes those who listen", func(t *T) {
		id := t.enqueue(job("k"))[0]
		t.join("k").ClaimAll()
		b := t.listen(t.Store)
		b.rings("when a running job was cancelled", func() { t.cancel("", id) })
	}},
}

func cancelRunning(t *T) {
	failure := errors.New("no")
	for _, c := range []struct {
		end    store.Result
		state  stint.State
		reason string
	}{
		{completed, stint.Completed, retry.ReasonDone},
		{store.Result{Outcome: stint.OutcomeFailed, Err: failure}, stint.Cancelled, "why"},
		{store.Result{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(failure)}, stint.Failed, "no retry"},
		{store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, stint.Cancelled, "why"},
		{store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront, Note: "the engine stopped"}, stint.Cancelled, "why"},
		{store.Result{Outcome: stint.OutcomeLost}, stint.Cancelled, "why"},
		{store.Result{Outcome: stint.OutcomeCancelled, Err: failure}, stint.Cancelled, "why"},
		{store.Result{Outcome: stint.OutcomeCancelled, Note: "its own"}, stint.Cancelled, "its own"},
		{expired, stint.Failed, retry.ReasonExpired},
	} {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		e := w.One()
		w.Heartbeat(e.Pos)
		t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelRequested}, "why")
		t.state(id, stint.Running)
		t.stopping([]stint.ID{id}, id)
		x := w.Conclude(e, c.end)
		x.Result = []byte(`{"kept":true}`)
		for i, want := range []int{1, 0} {
			n, err := w.TryFinish(t.ctx, x)
			expect(t, err == nil && n == want, "%s, time %d: recorded %d, error %v, want %d", c.end.Outcome, i+1, n, err, want)
		}
		info := t.info(id)
		need(t, len(info.Attempts) != 0, "after %s nothing is recorded", c.end.Outcome)
		last := info.Attempts[len(info.Attempts)-1]
		expect(t, info.State == c.state && len(info.Attempts) == 1 && last.Final && (c.reason == "no retry" ||
			info.Reason == c.reason),
			"after %s it is %s, reason %q; want %s, %q", c.end.Outcome, info.State, info.Reason, c.state, c.reason)
		expect(t, (last.Error == nil) == (c.end.Err == nil) && sameJSON(last.Result, x.Result),
			"after %s the execution shows the error %v and the result %s", c.end.Outcome, last.Error, last.Result)
		t.ended(id)
		w.Leave()
	}
}

// cancelUnclaimed has one job that nobody claimed, one that is on its way to an
// engine of its kind, and one that was tried before.
func cancelUnclaimed(t *T) {
	ids := t.enqueue(job("k"), job("k", stint.Queue("hops")), job("k", stint.Queue("again")))
	w := t.join("k")
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind}, w.Claim(lane("hops"), 1)...)
	w.Finish(snoozed, w.Claim(lane("again"), 1)...)
	t.promoteAll(1)
	for i, why := range []string{"", "not needed"} {
		time.Sleep(2 * time.Millisecond)
		before := t.now()
		if i == 0 {
			t.cancel(why, ids[1])
		} else {
			t.cancel(why, ids[0], ids[2])
		}
		after := t.now()
		of := [][]stint.ID{{ids[1]}, {ids[0], ids[2]}}[i]
		for _, id := range of {
			j := t.info(id)
			want := cmp.Or(why, retry.ReasonCancelled)
			expect(t, j.State == stint.Cancelled && j.Reason == want,
				"job %d shows as %s, reason %q, want %q", id, j.State, j.Reason, want)
			expect(t, between(j.Finished, before, after) && j.Started.Equal(j.Finished),
				"job %d was cancelled between %v and %v and shows %v to %v", id, before, after, j.Started, j.Finished)
			listed := must(t.Store.Jobs(t.ctx, store.Filter{Finished: store.TimeRange{From: j.Finished}, States: []stint.State{stint.Cancelled}}))(t)
			if i := slices.IndexFunc(listed, func(l stint.JobInfo) bool { return l.ID == id }); i < 0 {
				t.Errorf("job %d is not among those that ended then: %v", id, listed)
			} else if listed[i].Reason != j.Reason || !listed[i].Finished.Equal(j.Finished) {
				t.Errorf("the list shows %+v, the job %+v", listed[i], j)
			}
		}
	}
}
