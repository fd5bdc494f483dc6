package storetest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var cancelTests = []test{
	{"What waits is cancelled at once, and keeps its arguments and the reason", func(t *T) {
		want := rich()
		want.Delay = time.Hour
		id := t.enqueue(want)[0]
		t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelledNow}, "the customer left")
		info := t.info(id)
		expect(t, info.State == stint.Cancelled && info.Reason == "the customer left" && sameJSON(info.Args, want.Args) &&
			info.URN == want.URN,
			"people see %+v", info)
		t.ended(id)
	}},
	{"What was cancelled before its time never becomes ready", func(t *T) {
		ids := t.enqueue(jobs(3, "k", stint.Delay(20*time.Millisecond))...)
		t.cancels(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelledNow, ids[2]: stint.CancelledNow}, "")
		t.promoteAfter(40*time.Millisecond, 1)
		w := t.join("k")
		if e := w.One(); e.ID != ids[1] || e.Cancelled {
			t.Errorf("claimed job %d, cancelled: %v; want %d", e.ID, e.Cancelled, ids[1])
		} else {
			w.Complete(e)
		}
		t.ended(ids...)
	}},
	{"What waits for another attempt is cancelled behind those that it had", func(t *T) {
		for _, delay := range []time.Duration{0, time.Millisecond} {
			j := job("k", stint.MaxLosses(1))
			j.Delay = delay
			id := t.enqueue(j)[0]
			if delay > 0 {
				t.promoteAfter(15*time.Millisecond, 1)
			}
			w := t.join("k")
			w.Finish(failed, w.One())
			t.state(id, stint.Retrying)
			t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelledNow}, "enough")
			info := t.info(id)
			need(t, info.State == stint.Cancelled && info.Reason == "enough" && len(info.Attempts) == 2 && info.MaxLosses == 1,
				"people see %+v", info)
			x := info.Attempts[1]
			expect(t, x.Outcome == stint.OutcomeCancelled && x.Attempt == 2 && x.Slot == 0 && x.Started.Equal(x.Finished),
				"the last execution is %+v", x)
			t.ended(id)
			w.Leave()
		}
	}},
	{"What is ready has ended when it is cancelled, wherever it stands, and no engine gets it", cancelReady},
	{"What was cancelled while it was ready is retried and deleted like all that ended", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		t.cancels(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelledNow}, "")
		again := t.recovers(ids[0], stint.RerunOptions{})
		t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow})
		t.recount()
		w := t.join("k")
		got := w.ClaimAll()
		need(t, len(got) == 2 && got[0].ID == ids[1] && got[1].ID == again, "claimed were %v, want jobs %d and %d", got, ids[1], again)
		w.Complete(got...)
		t.recount()
	}},
	{"What was final comes too late, and stays what it was", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		got := w.ClaimAll()
		w.Complete(got[0])
		w.Finish(failedFinally, got[1])
		w.Finish(store.Result{Outcome: stint.OutcomeCancelled, Note: "by itself"}, got[2])
		before := []*stint.JobInfo{t.info(ids[0]), t.info(ids[1]), t.info(ids[2])}
		t.cancels(map[stint.ID]stint.CancelStatus{
			ids[0]: stint.CancelTooLate, ids[1]: stint.CancelTooLate, ids[2]: stint.CancelledNow,
		}, "too late")
		for i, id := range ids {
			noDiff(t, gocmp.Diff(before[i], t.info(id), sameJob...), "job %d changed (-before +after)", id)
		}
		t.ended(ids...)
	}},
	{"What does not exist is not found", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Finish(returned, w.One())
		pos := stint.ID(w.One().Pos)
		t.cancels(map[stint.ID]stint.CancelStatus{
			0: stint.CancelNotFound, -1: stint.CancelNotFound, 1 << 60: stint.CancelNotFound, pos: stint.CancelNotFound,
		}, "")
		t.state(id, stint.Running)
		t.ended(0, -1, 1<<60, pos)
	}},
	{"What is not committed is not found, and is not cancelled", func(t *T) {
		t.skipIf(t.SingleWriter, "an open transaction holds up every writer")
		tx := t.begin()
		ids := t.enqueueIn(tx, job("k"), job("k", stint.Delay(time.Hour)))
		t.cancels(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelNotFound, ids[1]: stint.CancelNotFound}, "")
		t.must(tx.Commit())
		t.states(ids, stint.Available, stint.Scheduled)
	}},
	{"Cancelling twice does no harm, and the first reason stands", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("runs")), job("k"), job("k", stint.Delay(time.Hour)))
		w := t.join("k")
		got := w.Claim(lane("runs"), 1)
		for _, why := range []string{"first", "second"} {
			t.cancels(map[stint.ID]stint.CancelStatus{
				ids[0]: stint.CancelRequested, ids[1]: stint.CancelledNow, ids[2]: stint.CancelledNow,
			}, why)
		}
		w.Finish(cancelled, got...)
		for _, id := range ids {
			info := t.info(id)
			expect(t, info.State == stint.Cancelled && info.Reason == "first",
				"job %d is %s, reason %q", id, info.State, info.Reason)
		}
		t.ended(ids...)
	}},
	{"What is asked to stop shows the reason, at its first entry or a later one, and nothing else does", func(t *T) {
		ids := t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		front := returned
		w.Finish(front, w.Claim(lane(stint.DefaultQueue), 2)...)
		w.Finish(front, w.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartFront, "").ID, 1)...) // the first once more
		running := w.ClaimAll()
		t.cancels(map[stint.ID]stint.CancelStatus{ids[0]: stint.CancelRequested, ids[2]: stint.CancelRequested}, "why")
		for i, id := range ids {
			info := t.info(id)
			expect(t, info.State == stint.Running && info.Reason == []string{"why", "", "why", ""}[i],
				"job %d is %s, reason %q", id, info.State, info.Reason)
		}
		w.Complete(running...)
	}},
	{"Many are cancelled at once, each in its own state and named as often as one likes", cancelMany},
	{"Cancelling nothing is no error", func(t *T) {
		t.cancels(map[stint.ID]stint.CancelStatus{}, "")
	}},
	{"A reason that no database can store is cleaned", func(t *T) {
		ids := t.enqueue(job("k", stint.Delay(time.Hour)), job("k"))
		for i, why := range []string{"a\x00b\xffc 'quoted' \"✓\"", strings.Repeat("ü", 1<<20)} {
			got := t.cancel(why, ids[i])
			expect(t, got[ids[i]] == stint.CancelledNow, "the answer is %v", got)
			why := t.info(ids[i]).Reason
			expect(t, len(why) >= 10 && len(why) <= 1<<12, "the reason is %d bytes long: %.100q", len(why), why)
		}
	}},
	{"Cancelled jobs are counted and listed as what they show", func(t *T) {
		ids := []stint.ID{t.oneOfEach()[stint.Available]}
		w := t.join("k")
		t.enqueue(job("k", stint.Queue("later"), stint.Delay(time.Hour)))
		for _, j := range t.list(store.Filter{Limit: 1000}) {
			if info := t.info(j); info.Queue != string(stint.Running) {
				ids = append(ids, j)
			}
		}
		t.cancel("all", append(ids, t.enqueue(job("k", stint.Queue("runs")))...)...)
		for range 2 { // how far another queue is claimed says nothing of them
			t.enqueue(job("k", stint.Queue("behind")))
			w.Claim(lane("behind"), 1)
		}
		t.recount()
		w.Finish(returned, w.ClaimAll()...)
		t.recount()
	}},
	{"A call whose context has ended cancels nothing", func(t *T) {
		ended := t.over()
		id := t.enqueue(job("k"))[0]
		got, err := as[store.Canceller](t).Cancel(ended, []stint.ID{id}, "")
		expect(t, err != nil, "it answers %v", got)
	}},
}

// cancelReady has one job that is ready, one on its way to an engine of its kind,
// one that an engine handed back, one that was tried before, and one that
// nobody cancels.
func cancelReady(t *T) {
	other := t.enqueue(job("k"))[0]
	ids := t.enqueue(rich(), job("k", stint.Queue("hops")), job("k", stint.Queue("back")), job("k", stint.Queue("again")))
	w := t.join("k", rich().Kind)
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind}, w.Claim(lane("hops"), 1)...)
	w.Finish(returned, w.Claim(lane("back"), 1)...)
	w.Finish(snoozed, w.Claim(lane("again"), 1)...)
	t.promoteAll(1)
	for _, times := range []string{"once", "twice"} {
		got := t.cancel("enough", ids...)
		for _, id := range ids {
			expect(t, got[id] == stint.CancelledNow, "cancelling job %d %s answers %q", id, times, got[id])
		}
	}
	t.ended(ids...)
	var before []*stint.JobInfo
	for i, id := range ids {
		info := t.info(id)
		before = append(before, info)
		need(t, info.State == stint.Cancelled && info.Reason == "enough" && len(info.Attempts) == min(i, 1)+1, "job %d shows as %+v", id, info)
		last := info.Attempts[len(info.Attempts)-1]
		expect(t, last.Outcome == stint.OutcomeCancelled && last.Final && last.Slot == 0 && last.Reason == "enough" && last.Started.Equal(last.Finished),
			"the last attempt of job %d is %+v", id, last)
	}
	expect(t, sameJSON(before[0].Args, rich().Args) && before[0].URN == rich().URN, "the first is %+v", before[0])
	t.recount()
	e := w.One()
	expect(t, e.ID == other && !e.Cancelled, "claimed was job %d, cancelled: %v; want job %d", e.ID, e.Cancelled, other)
	w.Complete(e)
	for i, id := range ids {
		noDiff(t, gocmp.Diff(before[i], t.info(id), sameJob...), "job %d changed (-before +after)", id)
	}
	t.recount()
}

// none checks that there is nothing to claim.
func (t *T) none(w *Worker) {
	t.Helper()
	got := w.ClaimAll()
	expect(t, len(got) == 0, "%d jobs were handed out", len(got))
}

func cancelMany(t *T) {
	const n = 150
	runs := t.enqueue(jobs(n, "k")...)
	w := t.join("k")
	running := w.ClaimAll()
	waits := t.enqueue(jobs(n, "k", stint.Delay(time.Hour))...)
	ready := t.enqueue(jobs(n, "k")...)
	done := t.enqueue(jobs(n, "k", stint.Queue("done"))...)
	w.Complete(w.Claim(lane("done"), n)...)
	want := map[stint.ID]stint.CancelStatus{1 << 50: stint.CancelNotFound}
	var ids []stint.ID
	for i := range n {
		want[runs[i]], want[waits[i]] = stint.CancelRequested, stint.CancelledNow
		want[ready[i]], want[done[i]] = stint.CancelledNow, stint.CancelTooLate
	}
	for id := range want {
		ids = append(ids, id, id)
	}
	noDiff(t, gocmp.Diff(want, t.cancel("many", ids...)), "the answers (-want +got)")
	t.recount()
	w.Complete(running...)
	t.none(w)
	counts := must(t.Store.Counts(t.ctx))(t)
	expect(t, counts[stint.Completed] == 2*n && counts[stint.Cancelled] == 2*n,
		"the counts are %v, want %d completed and as many cancelled", counts, 2*n)
	t.ended(slices.Concat(runs, waits, ready, done)...)
}

// recount compares counts, lists and filters with each other.
func (t *T) recount() {
	t.Helper()
	counts := must(t.Store.Counts(t.ctx))(t)
	all := must(t.Store.Jobs(t.ctx, store.Filter{Limit: 10_000}))(t)
	listed := map[stint.State]int64{}
	for _, j := range all {
		listed[j.State]++
	}
	none := cmpopts.IgnoreMapEntries(func(_ stint.State, n int64) bool { return n == 0 })
	noDiff(t, gocmp.Diff(listed, counts, none), "counts (-listed +counted)")
	states := []stint.State{stint.Scheduled, stint.Retrying, stint.Available, stint.Running, stint.Completed, stint.Failed, stint.Cancelled}
	for i, state := range states {
		if n := len(t.list(store.Filter{States: []stint.State{state}, Limit: 10_000})); int64(n) != listed[state] {
			t.Errorf("the filter by %s shows %d jobs, want %d", state, n, listed[state])
		}
		for _, other := range states[i+1:] {
			if n := len(t.list(store.Filter{States: []stint.State{state, other}, Limit: 10_000})); int64(n) != listed[state]+listed[other] {
				t.Errorf("the filter by %s and %s shows %d jobs, want %d and %d", state, other, n, listed[state], listed[other])
			}
		}
	}
}

// cancel cancels jobs and returns the answers.
func (t *T) cancel(why string, ids ...stint.ID) map[stint.ID]stint.CancelStatus {
	t.Helper()
	return must(as[store.Canceller](t).Cancel(t.ctx, ids, why))(t)
}

// cancels cancels jobs and checks the answers.
func (t *T) cancels(want map[stint.ID]stint.CancelStatus, why string) {
	t.Helper()
	var ids []stint.ID
	for id := range want {
		ids = append(ids, id)
	}
	noDiff(t, gocmp.Diff(want, t.cancel(why, ids...), cmpopts.EquateEmpty()), "the answers (-want +got)")
}

// stopping checks which jobs are to stop.
func (t *T) stopping(asked []stint.ID, want ...stint.ID) {
	t.Helper()
	got := must(as[store.Canceller](t).Cancelling(t.ctx, asked))(t)
	slices.Sort(got)
	equalAll(t, got, want, "of %v those to stop are %v, want %v", asked)
}

// ended checks that nothing is left of jobs but their history: no marker, and
// nothing to claim or to promote.
func (t *T) ended(ids ...stint.ID) {
	t.Helper()
	t.stopping(ids)
	l := t.ledger()
	for _, w := range l.Waiting {
		expect(t, !slices.Contains(ids, w.Job), "job %d still waits", w.Job)
	}
	done := map[store.Position]bool{}
	for _, x := range l.Executions {
		done[x.Pos] = true
	}
	for _, e := range l.Entries {
		expect(t, !slices.Contains(ids, e.Job) || done[e.Pos], "job %d has an unfinished entry", e.Job)
	}
}

// cancelClaimedTests are about jobs that an engine has in its hands.
var cancelClaimedTests = []test{
	{"Of what is fetched only the cancelled are told apart, of few and of many", func(t *T) {
		for _, n := range []int{3, 30} {
			ids := t.enqueue(jobs(n+1, "k")...)
			w := t.join("k")
			first := w.Claim(lane(stint.DefaultQueue), 1)[0]
			w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, first)
			got := w.Claim(lane(stint.DefaultQueue), n+1) // the first at a later entry
			equal(t, len(got), n+1, "%d were claimed, want %d")
			t.cancels(map[stint.ID]stint.CancelStatus{ids[2]: stint.CancelRequested, first.ID: stint.CancelRequested}, "")
			for _, e := range must(t.again().Fetch(t.ctx, positions(got)))(t) {
				equal(t, e.Cancelled, e.ID == ids[2] || e.ID == first.ID, "job %d was fetched as cancelled: %v, want %v", e.ID)
			}
			w.Finish(cancelled, got...)
		}
	}},
	{"Each of several that are cancelled keeps its own reason", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		got := w.ClaimAll()
		for i, id := range ids {
			t.cancels(map[stint.ID]stint.CancelStatus{id: stint.CancelRequested}, fmt.Sprint("reason ", i))
		}
		slices.Reverse(got)
		w.Finish(cancelled, got...)
		for i, id := range ids {
			info := t.info(id)
			expect(t, info.State == stint.Cancelled && info.Reason == fmt.Sprint("reason ", i),
				"job %d is %s, since %q", id, info.State, info.Reason)
		}
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
			w.record(want, x)
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
		for _, want := range []int{8, 0} {
			w.record(want, done...)
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
		for _, want := range []int{1, 0} {
			w.record(want, x)
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
