package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

var retryTests = []test{
	{"What waits is ready at once, at a fresh position, and nothing is charged", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("first"), stint.Delay(time.Hour)), job("k", stint.Queue("again")))
		w := t.join("k")
		first := w.One()
		w.Finish(failed, first)
		before := t.now()
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{
			ids[0]: {Answer: stint.RerunReady, ID: ids[0]}, ids[1]: {Answer: stint.RerunReady, ID: ids[1]},
		})
		for i, want := range []int{1, 2} {
			info := t.info(ids[i])
			if info.State != stint.Available || info.Attempt != want || info.Due.Before(before) || time.Until(info.Due) > time.Minute {
				t.Errorf("job %d is %s, attempt %d, due %v; want available, attempt %d, due now", ids[i], info.State, info.Attempt, info.Due, want)
			}
		}
		for _, e := range w.Claim(lane("again"), 1) {
			expect(t, e.Attempt == 2 && e.Pos > first.Pos,
				"attempt %d at position %d came after attempt 1 at %d", e.Attempt, e.Pos, first.Pos)
			w.Complete(e)
		}
		w.Complete(w.Claim(lane("first"), 1)...)
		t.states(ids, stint.Completed, stint.Completed)
	}},
	{"What waits may be told to wait until another time", func(t *T) {
		ids := t.enqueue(job("k", stint.Delay(20*time.Millisecond)), job("k", stint.Delay(time.Hour)))
		t.retries(stint.RerunOptions{Delay: time.Hour}, map[stint.ID]stint.RerunResult{ids[0]: {Answer: stint.RerunScheduled, ID: ids[0]}})
		at := t.now().Add(500 * time.Millisecond)
		t.retries(stint.RerunOptions{RunAt: at}, map[stint.ID]stint.RerunResult{ids[1]: {Answer: stint.RerunScheduled, ID: ids[1]}})
		due := t.info(ids[1]).Due
		expect(t, due.Sub(at).Abs() <= time.Millisecond, "it is due %v, want %v", due, at)
		time.Sleep(time.Until(at) + 20*time.Millisecond)
		t.promoteAll(1)
		t.states(ids, stint.Scheduled, stint.Available)
	}},
	{"What waits for a retry function runs now or has its time, faulty as ever, and is not judged any more", func(t *T) {
		ids := t.undecided("f", "f", "f")
		stale := t.decisions(retry.Final("enough"))[:2]
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{ids[0]: {Answer: stint.RerunReady, ID: ids[0]}})
		t.retries(stint.RerunOptions{Delay: 20 * time.Millisecond}, map[stint.ID]stint.RerunResult{ids[1]: {Answer: stint.RerunScheduled, ID: ids[1]}})
		for i, want := range []stint.State{stint.Available, stint.Retrying} {
			info := t.info(ids[i])
			expect(t, info.State == want && info.PendingRetry == "" && info.Attempt == 2 && info.Faulty,
				"it is %s, undecided %q, attempt %d, faulty %v; want %s, decided, attempt 2, faulty", info.State,
				info.PendingRetry, info.Attempt, info.Faulty, want)
		}
		got := t.decisions(retry.Final("enough"))
		expect(t, len(got) == 1 && got[0].Job == ids[2],
			"%d failures are still to be judged, want that of job %d", len(got), ids[2])
		w := t.join("k")
		t.decided(w, 0, stale...)
		t.promoteAfter(40*time.Millisecond, 1)
		for _, e := range w.ClaimAll() {
			expect(t, e.Attempt == 2, "attempt %d of job %d runs, want 2", e.Attempt, e.ID)
			w.Complete(e)
		}
		t.states(ids, stint.Completed, stint.Completed, stint.Retrying)
	}},
	{"A time in the past is now", func(t *T) {
		id := t.enqueue(job("k", stint.Delay(time.Hour)))[0]
		t.retries(stint.RerunOptions{RunAt: t.now().Add(-time.Hour)}, map[stint.ID]stint.RerunResult{id: {Answer: stint.RerunReady, ID: id}})
		t.state(id, stint.Available)
	}},
	{"What is ready or runs is left alone", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("runs")), job("k"))
		w := t.join("k")
		running := w.Claim(lane("runs"), 1)
		for _, again := range []stint.RerunOptions{{}, {Delay: time.Hour}} {
			t.retries(again, map[stint.ID]stint.RerunResult{
				ids[0]: {Answer: stint.RerunRunning, ID: ids[0]}, ids[1]: {Answer: stint.RerunAvailable, ID: ids[1]},
			})
		}
		w.Complete(append(running, w.One())...)
		equal(t, len(t.list(store.Filter{})), 2, "there are %d jobs, want %d")
	}},
	{"What ended is recovered as a new job with all that was said of it, and stays what it was", recovered},
	{"A job that was recovered ends and is recovered like any other", func(t *T) {
		first := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Complete(w.One())
		second := t.recovers(first, stint.RerunOptions{})
		w.Finish(failedFinally, w.One())
		third := t.recovers(second, stint.RerunOptions{})
		e := w.One()
		expect(t, e.ID == third && e.Origin.Recovered == second && e.Attempt == 1,
			"job %d, of %d, attempt %d runs; want %d, of %d, attempt 1", e.ID, e.Origin.Recovered, e.Attempt, third, second)
		w.Complete(e)
	}},
	{"A recovered job may wait for its time, and knows where it comes from when it runs", func(t *T) {
		old := t.enqueue(rich())[0]
		w := t.join(rich().Kind)
		w.Complete(w.One())
		anew := t.recovers(old, stint.RerunOptions{Delay: 20 * time.Millisecond})
		info := t.info(anew)
		expect(t, info.State == stint.Scheduled && info.Origin.Recovered == old,
			"it is %s, of job %d", info.State, info.Origin.Recovered)
		t.promoteAfter(40*time.Millisecond, 1)
		e := w.One()
		expect(t, e.ID == anew && e.Origin.Recovered == old && sameJSON(e.Args, rich().Args),
			"job %d of %d runs, with %s", e.ID, e.Origin.Recovered, e.Args)
		w.Complete(e)
		equalAll(t, t.list(store.Filter{Tag: rich().Tags[0]}), []stint.ID{anew, old}, "by its tag there are %v, want %v")
	}},
	{"What was cancelled is recovered, wherever it was cancelled", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("runs")), job("k"), job("k", stint.Delay(time.Hour)))
		w := t.join("k")
		running := w.Claim(lane("runs"), 1)
		t.cancel("not wanted", ids...)
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{ids[0]: {Answer: stint.RerunRunning, ID: ids[0]}})
		w.Finish(cancelled, running...)
		for _, id := range ids {
			t.state(t.recovers(id, stint.RerunOptions{}), stint.Available)
			t.state(id, stint.Cancelled)
		}
		got := w.ClaimAll()
		equal(t, len(got), len(ids), "%d were claimed, want the %d that are done again")
		w.Complete(got...)
	}},
	{"Once recovers nothing twice, unless what it was recovered as is gone", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		first := t.recovers(ids[0], stint.RerunOptions{})
		answers := t.retry(stint.RerunOptions{Once: true}, ids...)
		got := answers[ids[0]]
		expect(t, got == (stint.RerunResult{Answer: stint.RerunRecoveredBefore, ID: first}),
			"the job that was recovered gives %+v, want %d", got, first)
		got = answers[ids[1]]
		expect(t, got.Answer == stint.RerunRecovered, "the job that was not gives %+v", got)
		second := t.recovers(ids[0], stint.RerunOptions{})
		expect(t, second > first, "without Once it is recovered as %d, after %d", second, first)
		w.Complete(w.ClaimAll()...)
		t.deletes(map[stint.ID]store.DeleteStatus{answers[ids[1]].ID: store.DeletedNow})
		got = t.retry(stint.RerunOptions{Once: true}, ids[1])[ids[1]]
		expect(t, got.Answer == stint.RerunRecovered, "after what it was recovered as was deleted it gives %+v", got)
	}},
	{"A job tells the newest one that it was retried as, and that one tells of it", func(t *T) {
		old := t.enqueue(job("k"))[0]
		tells := func(when string, want stint.ID) {
			t.Helper()
			got := t.info(old).RetriedAs
			expect(t, got == want, "%s it was retried as job %d, want %d", when, got, want)
		}
		w := t.join("k")
		tells("before it ended", 0)
		w.Complete(w.ClaimAll()...)
		tells("before it is retried", 0)
		first := t.recovers(old, stint.RerunOptions{})
		tells("once retried", first)
		second := t.recovers(old, stint.RerunOptions{Delay: time.Hour})
		tells("retried twice", second)
		for _, id := range []stint.ID{first, second} {
			info := t.info(id)
			expect(t, info.Origin.Recovered == old && info.RetriedAs == 0,
				"job %d does job %d again, and was retried as %d", id, info.Origin.Recovered, info.RetriedAs)
		}
		ended, err := as[store.Awaiter](t).Await(t.ctx, old)
		expect(t, err == nil && ended.RetriedAs == second, "who awaits it learns of job %d, %v", ended.RetriedAs, err)
		t.cancels(map[stint.ID]stint.CancelStatus{second: stint.CancelledNow}, "")
		t.deletes(map[stint.ID]store.DeleteStatus{second: store.DeletedNow})
		tells("when the newest one is deleted", first)
		w.Complete(w.ClaimAll()...)
	}},
	{"Jobs that a newer one repeats can be left out", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		left := store.Filter{NotRetried: true}
		t.shows(left, ids[1], ids[0])
		again := t.recovers(ids[0], stint.RerunOptions{Delay: time.Hour})
		t.shows(left, again, ids[1])
		left.States = []stint.State{stint.Completed, stint.Scheduled}
		t.shows(left, again, ids[1])
		left.States = left.States[:1]
		t.shows(left, ids[1])
		t.cancels(map[stint.ID]stint.CancelStatus{again: stint.CancelledNow}, "")
		t.deletes(map[stint.ID]store.DeleteStatus{again: store.DeletedNow})
		t.shows(left, ids[1], ids[0])
	}},
	{"What does not exist is not found", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Finish(returned, w.One())
		pos := stint.ID(w.One().Pos)
		none, gone := stint.RerunResult{Answer: stint.RerunNotFound}, store.DeleteNotFound
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{0: none, -1: none, 1 << 60: none, pos: none})
		t.deletes(map[stint.ID]store.DeleteStatus{0: gone, -1: gone, 1 << 60: gone, pos: gone})
		t.state(id, stint.Running)
	}},
	{"Times that exclude each other or can never be right change nothing", func(t *T) {
		id := t.enqueue(job("k", stint.Delay(time.Hour)))[0]
		for _, again := range []stint.RerunOptions{{RunAt: time.Now(), Delay: time.Second}, {Delay: -time.Second}, {RunAt: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)}} {
			got, err := as[store.Operator](t).Retry(t.ctx, []stint.ID{id}, again)
			expect(t, errors.Is(err, stint.ErrInvalid), "%+v gives %v, error %v", again, got, err)
		}
		t.state(id, stint.Scheduled)
	}},
	{"Doing nothing is no error, and doing it twice to one is doing it once", func(t *T) {
		t.retries(stint.RerunOptions{}, map[stint.ID]stint.RerunResult{})
		t.deletes(map[stint.ID]store.DeleteStatus{})
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Complete(w.One())
		got := t.retry(stint.RerunOptions{}, id, id)
		expect(t, len(got) == 1 && len(t.list(store.Filter{})) == 2,
			"the answers are %v, and there are %d jobs", got, len(t.list(store.Filter{})))
		if got, err := as[store.Operator](t).Delete(t.ctx, []stint.ID{id, id}); err != nil || len(got) != 1 || got[id] != store.DeletedNow {
			t.Errorf("deleting gives %v, error %v", got, err)
		}
	}},
	{"Engines are rung for what runs again", func(t *T) {
		id := t.enqueue(job("k", stint.Delay(time.Hour)))[0]
		bell := t.listen(t.Store)
		for _, again := range []stint.RerunOptions{{Delay: time.Minute}, {}} {
			bell.rings("for what runs again", func() { t.retry(again, id) })
		}
	}},
	{"A call whose context has ended does nothing", func(t *T) {
		ended := t.over()
		ids := t.enqueue(job("k", stint.Delay(time.Hour)), job("k"))
		w := t.join("k")
		w.Complete(w.One())
		expect(t, errOf(as[store.Operator](t).Retry(ended, ids, stint.RerunOptions{})) != nil, "retrying succeeded")
		if _, err := as[store.Operator](t).Delete(ended, ids); err == nil {
			t.Error("deleting succeeded")
		}
		t.states(ids, stint.Scheduled, stint.Completed)
		equal(t, len(t.list(store.Filter{})), 2, "there are %d jobs, want %d")
	}},
}

// recovered brings a job that says everything to each end, and recovers it.
func recovered(t *T) {
	w := t.join(rich().Kind)
	ends := []store.Result{
		completed, {Outcome: stint.OutcomeCancelled, Note: "by itself"}, expired,
		failedFinally,
	}
	for i, end := range ends {
		t.enqueue(job("k", stint.Queue("other")))
		other := w.One()
		want := rich()
		if i%2 == 1 {
			want.Delay, want.Correlation = time.Millisecond, ""
		}
		old := t.enqueue(want)[0]
		t.promoteAfter(15*time.Millisecond, i%2)
		w.Finish(returned, w.One())
		w.Finish(end, w.One())
		w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, other) // the newest entry is of another job
		before := t.info(old)
		anew := t.recovers(old, stint.RerunOptions{})
		before.RetriedAs = anew
		noDiff(t, cmp.Diff(before, t.info(old), sameJob...), "the old job changed (-before +after)")
		got := t.info(anew)
		expect(t, !got.Created.Before(before.Finished) && !got.Due.Before(got.Created),
			"the new job was created %v and is due %v; the old one ended %v", got.Created, got.Due, before.Finished)
		if i%2 == 1 {
			before.Correlation = old.String()
		}
		before.StartBy = time.Time{} // which was for the old one
		what := cmpopts.IgnoreFields(stint.JobInfo{}, "ID", "State", "Reason", "Created", "Due", "Started", "Finished", "Attempts", "Origin", "RetriedAs")
		noDiff(t, cmp.Diff(before, got, append(sameJob, what)...), "the new job (-old +new)")
		expect(t, got.State == stint.Available && got.Attempt == 1 && got.Reason == "" && len(got.Attempts) == 0 &&
			got.Origin.Recovered == old,
			"people see %+v", got)
		w.Complete(w.Claim(lane("other"), 1)...)
		e := w.One()
		expect(t, e.ID == anew && e.Origin.Recovered == old && e.Attempt == 1 && sameJSON(e.Args, want.Args) &&
			sameJSON(e.Metadata, want.Metadata) && e.Retry == want.Retry && e.Timeout == want.Timeout &&
			e.MaxLosses == *want.MaxLosses && e.URN == want.URN && e.Source == want.Source,
			"an engine gets %+v", e)
		w.Complete(e)
		t.state(old, end.Outcome.State())
	}
}

// retry has jobs run again and returns the answers.
func (t *T) retry(again stint.RerunOptions, ids ...stint.ID) map[stint.ID]stint.RerunResult {
	t.Helper()
	return must(as[store.Operator](t).Retry(t.ctx, ids, again))(t)
}

// retries has jobs run again and checks the answers.
func (t *T) retries(again stint.RerunOptions, want map[stint.ID]stint.RerunResult) {
	t.Helper()
	var ids []stint.ID
	for id := range want {
		ids = append(ids, id)
	}
	noDiff(t, cmp.Diff(want, t.retry(again, ids...), cmpopts.EquateEmpty()), "the answers (-want +got)")
}

// recovers recovers a job and returns the new one.
func (t *T) recovers(id stint.ID, again stint.RerunOptions) stint.ID {
	t.Helper()
	got := t.retry(again, id)[id]
	need(t, got.Answer == stint.RerunRecovered && got.ID > id, "job %d gives %+v, want that it is recovered", id, got)
	return got.ID
}

// deletes deletes jobs and checks the answers.
func (t *T) deletes(want map[stint.ID]store.DeleteStatus) {
	t.Helper()
	var ids []stint.ID
	for id := range want {
		ids = append(ids, id)
	}
	got := must(as[store.Operator](t).Delete(t.ctx, ids))(t)
	noDiff(t, cmp.Diff(want, got, cmpopts.EquateEmpty()), "the answers (-want +got)")
}

var deleteTests = []test{
	{"What ended is deleted with all that is known of it, and nothing else", func(t *T) {
		left := t.enqueue(rich())[0]
		w := t.join("k", rich().Kind)
		w.Complete(w.One())
		before := t.info(left)
		ids := t.enqueue(rich(), job("k", stint.Delay(time.Millisecond)), job("k", stint.Delay(time.Hour)), job("k"))
		t.promoteAfter(15*time.Millisecond, 1)
		w.Finish(returned, w.ClaimAll()...)
		w.Finish(failedFinally, w.ClaimAll()...)
		t.cancel("", ids[2])
		want := map[stint.ID]store.DeleteStatus{}
		for _, id := range ids {
			want[id] = store.DeletedNow
		}
		t.deletes(want)
		t.gone(ids...)
		got := t.list(store.Filter{})
		expect(t, slices.Equal(got, []stint.ID{left}), "there are %v, want %d", got, left)
		got = t.list(store.Filter{Tag: rich().Tags[0]})
		expect(t, slices.Equal(got, []stint.ID{left}), "by tag there are %v, want %d", got, left)
		after := t.info(left)
		expect(t, len(after.Attempts) == len(before.Attempts) && sameJSON(after.Args, before.Args),
			"of what is left people see %+v", after)
		t.recount()
		for id := range want {
			want[id] = store.DeleteNotFound
		}
		t.deletes(want)
	}},
	{"What has not ended is not deleted, wherever it is", func(t *T) {
		all := t.oneOfEach()
		want := map[stint.ID]store.DeleteStatus{}
		for state, id := range all {
			if want[id] = store.DeleteNotFinal; state.Final() {
				want[id] = store.DeletedNow
			}
		}
		w := t.join("k")
		twice := t.enqueue(job("k", stint.Queue("twice")))[0]
		w.Finish(failure, w.Claim(lane("twice"), 1)...)
		t.retry(stint.RerunOptions{}, twice)
		w.Finish(failure, w.Claim(lane("twice"), 1)...)
		want[twice] = store.DeleteNotFinal
		marked := t.enqueue(job("k", stint.Queue("marked")))[0]
		w.Claim(lane("marked"), 1)
		t.cancel("", marked) // its claimer ends it
		want[marked] = store.DeleteNotFinal
		t.deletes(want)
		for state, id := range all {
			if !state.Final() {
				t.state(id, state)
			}
		}
		t.state(marked, stint.Running)
		t.state(twice, stint.Retrying)
		t.recount()
	}},
	{"An outcome that is repeated does not bring back what was deleted, nor what followed", func(t *T) {
		ids := t.enqueue(jobs(4, "k")...)
		w := t.join("k")
		e := w.ClaimAll()
		fails := w.Conclude(e[1], failed)
		fails.Next.Delay = 0
		flush := []store.Completion{
			w.Conclude(e[0], completed), fails,
			w.Conclude(e[2], returned),
		}
		t.must(errOf(w.TryFinish(t.ctx, flush...)))
		t.promoteAll(1)
		w.Complete(w.ClaimAll()...)
		t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow, ids[2]: store.DeletedNow})
		// With what the engine repeats comes what it says for the first time.
		w.record(1, append(flush, w.Conclude(e[3], completed))...)
		t.gone(ids[:3]...)
		t.state(ids[3], stint.Completed)
		again := w.ClaimAll()
		expect(t, len(again) == 0, "claimed %v", jobIDs(again))
		w.Heartbeat()
		w.record(0, flush...)
		t.gone(ids[:3]...)
	}},
	{"Nobody holds what was deleted, and its engine's burial concludes the rest", func(t *T) {
		ids := t.enqueue(jobs(3, "k")...)
		w := t.join("k")
		e := w.ClaimAll()
		w.Complete(e[:2]...)
		t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow})
		held := must(t.Store.Held(t.ctx, w.Info.Token, 0))(t)
		expect(t, len(held) == 1 && slices.Equal(held[0].Positions, []store.Position{e[2].Pos}),
			"it holds %+v, want position %d", held, e[2].Pos)
		equal(t, w.Leave(), 1, "its burial concluded %d entries, want %d")
		fails(t, errOf(w.TryFinish(t.ctx, w.Conclude(e[0], completed))), store.ErrBuried, "what it records afterwards gives %v")
		t.gone(ids[:2]...)
		again := t.join("k")
		again.Complete(again.One())
	}},
	{"A lane from which everything was deleted goes on where it was", func(t *T) {
		w := t.join("k")
		last := stint.ID(0)
		for range 3 {
			ids := t.enqueue(jobs(3, "k")...)
			expect(t, ids[0] > last, "job %d came after job %d", ids[0], last)
			last = ids[2]
			got := w.ClaimAll()
			need(t, slices.Equal(jobIDs(got), ids), "claimed %v, want %v", jobIDs(got), ids)
			w.Complete(got...)
			t.deletes(map[stint.ID]store.DeleteStatus{ids[0]: store.DeletedNow, ids[1]: store.DeletedNow, ids[2]: store.DeletedNow})
			left := t.list(store.Filter{})
			expect(t, len(left) == 0, "%v are left", left)
		}
	}},
	{"What was recovered stands without the job that it recovers", func(t *T) {
		old := t.enqueue(rich())[0]
		w := t.join(rich().Kind)
		w.Complete(w.One())
		anew := t.recovers(old, stint.RerunOptions{})
		t.deletes(map[stint.ID]store.DeleteStatus{old: store.DeletedNow})
		e := w.One()
		expect(t, e.ID == anew && sameJSON(e.Args, rich().Args) && e.Origin.Recovered == old,
			"job %d of %d runs, with %s", e.ID, e.Origin.Recovered, e.Args)
		w.Complete(e)
		info := t.info(anew)
		expect(t, sameJSON(info.Args, rich().Args) && info.Origin.Recovered == old, "people see %+v", info)
	}},
}

// gone checks that nothing is left of jobs.
func (t *T) gone(ids ...stint.ID) {
	t.Helper()
	for _, id := range ids {
		fails(t, errOf(t.Store.Job(t.ctx, id)), stint.ErrNotFound, "job %d is shown, error %v", id)
	}
	l := t.ledger()
	for _, e := range l.Entries {
		expect(t, !slices.Contains(ids, e.Job), "job %d has an entry at %d", e.Job, e.Pos)
	}
	for _, x := range l.Executions {
		expect(t, !slices.Contains(ids, x.Job) && !slices.Contains(ids, stint.ID(x.Pos)),
			"job %d has an execution at %d", x.Job, x.Pos)
	}
	for _, w := range l.Waiting {
		expect(t, !slices.Contains(ids, w.Job), "job %d waits", w.Job)
	}
}

// delete deletes jobs whatever comes of it.
func (t *T) delete(ids ...stint.ID) {
	t.Helper()
	t.must(errOf(as[store.Operator](t).Delete(t.ctx, ids)))
}
