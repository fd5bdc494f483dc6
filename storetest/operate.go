package storetest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

var retryTests = []test{
	{"What waits is ready at once, at a fresh position, and nothing is charged", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("first"), stint.In(time.Hour)), job("k", stint.Queue("again")))
		w := t.join("k")
		first := w.One()
		w.Finish(stint.Ending{Outcome: stint.OutcomeFailed, Err: errors.New("no")}, first)
		before := t.now()
		t.retries(stint.Again{}, map[stint.ID]stint.Retried{
			ids[0]: {Answer: stint.RetryReady, ID: ids[0]}, ids[1]: {Answer: stint.RetryReady, ID: ids[1]},
		})
		for i, want := range []int{1, 2} {
			info := t.info(ids[i])
			if info.State != stint.Available || info.Attempt != want || info.Due.Before(before) || time.Until(info.Due) > time.Minute {
				t.Errorf("job %d is %s, attempt %d, due %v; want available, attempt %d, due now", ids[i], info.State, info.Attempt, info.Due, want)
			}
		}
		for _, e := range w.Claim(lane("again"), 1) {
			if e.Attempt != 2 || e.Pos <= first.Pos {
				t.Errorf("attempt %d at position %d came after attempt 1 at %d", e.Attempt, e.Pos, first.Pos)
			}
			w.Complete(e)
		}
		w.Complete(w.Claim(lane("first"), 1)...)
		t.state(ids[0], stint.Completed)
		t.state(ids[1], stint.Completed)
	}},
	{"What waits may be told to wait until another time", func(t *T) {
		ids := t.enqueue(job("k", stint.In(20*time.Millisecond)), job("k", stint.In(time.Hour)))
		t.retries(stint.Again{In: time.Hour}, map[stint.ID]stint.Retried{ids[0]: {Answer: stint.RetryScheduled, ID: ids[0]}})
		at := t.now().Add(500 * time.Millisecond)
		t.retries(stint.Again{At: at}, map[stint.ID]stint.Retried{ids[1]: {Answer: stint.RetryScheduled, ID: ids[1]}})
		if due := t.info(ids[1]).Due; due.Sub(at).Abs() > time.Millisecond {
			t.Errorf("it is due %v, want %v", due, at)
		}
		time.Sleep(time.Until(at) + 20*time.Millisecond)
		t.promoteAll(1)
		t.state(ids[0], stint.Scheduled)
		t.state(ids[1], stint.Available)
	}},
	{"What waits for a retry function runs now or has its time, faulty as ever, and is not judged any more", func(t *T) {
		ids := t.undecided("f", "f", "f")
		stale := t.decisions(retry.Final("enough"))[:2]
		t.retries(stint.Again{}, map[stint.ID]stint.Retried{ids[0]: {Answer: stint.RetryReady, ID: ids[0]}})
		t.retries(stint.Again{In: 20 * time.Millisecond}, map[stint.ID]stint.Retried{ids[1]: {Answer: stint.RetryScheduled, ID: ids[1]}})
		for i, want := range []stint.State{stint.Available, stint.Retrying} {
			if info := t.info(ids[i]); info.State != want || info.Undecided != "" || info.Attempt != 2 || !info.Faulty {
				t.Errorf("it is %s, undecided %q, attempt %d, faulty %v; want %s, decided, attempt 2, faulty", info.State, info.Undecided, info.Attempt, info.Faulty, want)
			}
		}
		if got := t.decisions(retry.Final("enough")); len(got) != 1 || got[0].Job != ids[2] {
			t.Errorf("%d failures are still to be judged, want that of job %d", len(got), ids[2])
		}
		w := t.join("k")
		t.decided(w, 0, stale...)
		time.Sleep(40 * time.Millisecond)
		t.promoteAll(1)
		for _, e := range w.ClaimAll() {
			if e.Attempt != 2 {
				t.Errorf("attempt %d of job %d runs, want 2", e.Attempt, e.ID)
			}
			w.Complete(e)
		}
		t.state(ids[0], stint.Completed)
		t.state(ids[1], stint.Completed)
		t.state(ids[2], stint.Retrying)
	}},
	{"A time in the past is now", func(t *T) {
		id := t.enqueue(job("k", stint.In(time.Hour)))[0]
		t.retries(stint.Again{At: t.now().Add(-time.Hour)}, map[stint.ID]stint.Retried{id: {Answer: stint.RetryReady, ID: id}})
		t.state(id, stint.Available)
	}},
	{"What is ready or runs is left alone", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("runs")), job("k"))
		w := t.join("k")
		running := w.Claim(lane("runs"), 1)
		for _, again := range []stint.Again{{}, {In: time.Hour}} {
			t.retries(again, map[stint.ID]stint.Retried{
				ids[0]: {Answer: stint.RetryRunning, ID: ids[0]}, ids[1]: {Answer: stint.RetryAvailable, ID: ids[1]},
			})
		}
		w.Complete(append(running, w.One())...)
		if n := len(t.list(stint.Filter{})); n != 2 {
			t.Errorf("there are %d jobs, want 2", n)
		}
	}},
	{"What ended is recovered as a new job with all that was said of it, and stays what it was", recovered},
	{"A job that was recovered ends and is recovered like any other", func(t *T) {
		first := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Complete(w.One())
		second := t.recovers(first, stint.Again{})
		w.Finish(stint.Ending{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("no"))}, w.One())
		third := t.recovers(second, stint.Again{})
		e := w.One()
		if e.ID != third || e.Provenance.Recovered != second || e.Attempt != 1 {
			t.Errorf("job %d, of %d, attempt %d runs; want %d, of %d, attempt 1", e.ID, e.Provenance.Recovered, e.Attempt, third, second)
		}
		w.Complete(e)
	}},
	{"A recovered job may wait for its time, and knows where it comes from when it runs", func(t *T) {
		old := t.enqueue(rich())[0]
		w := t.join(rich().Kind)
		w.Complete(w.One())
		anew := t.recovers(old, stint.Again{In: 20 * time.Millisecond})
		if info := t.info(anew); info.State != stint.Scheduled || info.Provenance.Recovered != old {
			t.Errorf("it is %s, of job %d", info.State, info.Provenance.Recovered)
		}
		time.Sleep(40 * time.Millisecond)
		t.promoteAll(1)
		e := w.One()
		if e.ID != anew || e.Provenance.Recovered != old || !sameJSON(e.Args, rich().Args) {
			t.Errorf("job %d of %d runs, with %s", e.ID, e.Provenance.Recovered, e.Args)
		}
		w.Complete(e)
		if found := t.list(stint.Filter{Tag: rich().Tags[0]}); !slices.Equal(found, []stint.ID{anew, old}) {
			t.Errorf("by its tag there are %v, want %v", found, []stint.ID{anew, old})
		}
	}},
	{"What was cancelled is recovered, wherever it was cancelled", func(t *T) {
		ids := t.enqueue(job("k", stint.Queue("runs")), job("k"), job("k", stint.In(time.Hour)))
		w := t.join("k")
		running := w.Claim(lane("runs"), 1)
		t.cancel("not wanted", ids...)
		t.retries(stint.Again{}, map[stint.ID]stint.Retried{ids[0]: {Answer: stint.RetryRunning, ID: ids[0]}})
		w.Finish(stint.Ending{Outcome: stint.OutcomeCancelled}, running...)
		for _, id := range ids {
			t.state(t.recovers(id, stint.Again{}), stint.Available)
			t.state(id, stint.Cancelled)
		}
		n := 0
		for _, e := range w.ClaimAll() {
			end := completed
			if e.Cancelled {
				end = stint.Ending{Outcome: stint.OutcomeCancelled}
				n++
			}
			w.Finish(end, e)
		}
		if n != 1 {
			t.Errorf("%d entries were handed out as cancelled, want that of the job that was available", n)
		}
	}},
	{"Once recovers nothing twice, unless what it was recovered as is gone", func(t *T) {
		ids := t.enqueue(jobs(2, "k")...)
		w := t.join("k")
		w.Complete(w.ClaimAll()...)
		first := t.recovers(ids[0], stint.Again{})
		answers := t.retry(stint.Again{Once: true}, ids...)
		if got := answers[ids[0]]; got != (stint.Retried{Answer: stint.RetryRecoveredBefore, ID: first}) {
			t.Errorf("the job that was recovered gives %+v, want %d", got, first)
		}
		if got := answers[ids[1]]; got.Answer != stint.RetryRecovered {
			t.Errorf("the job that was not gives %+v", got)
		}
		if second := t.recovers(ids[0], stint.Again{}); second <= first {
			t.Errorf("without Once it is recovered as %d, after %d", second, first)
		}
		w.Complete(w.ClaimAll()...)
		t.deletes(map[stint.ID]stint.Deletion{answers[ids[1]].ID: stint.DeletedNow})
		if got := t.retry(stint.Again{Once: true}, ids[1])[ids[1]]; got.Answer != stint.RetryRecovered {
			t.Errorf("after what it was recovered as was deleted it gives %+v", got)
		}
	}},
	{"What does not exist is not found", func(t *T) {
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, w.One())
		pos := stint.ID(w.One().Pos)
		none, gone := stint.Retried{Answer: stint.RetryOfNothing}, stint.DeleteOfNothing
		t.retries(stint.Again{}, map[stint.ID]stint.Retried{0: none, -1: none, 1 << 60: none, pos: none})
		t.deletes(map[stint.ID]stint.Deletion{0: gone, -1: gone, 1 << 60: gone, pos: gone})
		t.state(id, stint.Running)
	}},
	{"Times that exclude each other or can never be right change nothing", func(t *T) {
		id := t.enqueue(job("k", stint.In(time.Hour)))[0]
		for _, again := range []stint.Again{{At: time.Now(), In: time.Second}, {In: -time.Second}, {At: time.Date(99999, 1, 1, 0, 0, 0, 0, time.UTC)}} {
			if got, err := t.operator().Retry(t.ctx, []stint.ID{id}, again); !errors.Is(err, stint.ErrInvalid) {
				t.Errorf("%+v gives %v, error %v", again, got, err)
			}
		}
		t.state(id, stint.Scheduled)
	}},
	{"Doing nothing is no error, and doing it twice to one is doing it once", func(t *T) {
		t.retries(stint.Again{}, map[stint.ID]stint.Retried{})
		t.deletes(map[stint.ID]stint.Deletion{})
		id := t.enqueue(job("k"))[0]
		w := t.join("k")
		w.Complete(w.One())
		if got := t.retry(stint.Again{}, id, id); len(got) != 1 || len(t.list(stint.Filter{})) != 2 {
			t.Errorf("the answers are %v, and there are %d jobs", got, len(t.list(stint.Filter{})))
		}
		if got, err := t.operator().Delete(t.ctx, []stint.ID{id, id}); err != nil || len(got) != 1 || got[id] != stint.DeletedNow {
			t.Errorf("deleting gives %v, error %v", got, err)
		}
	}},
	{"Engines are rung for what runs again", func(t *T) {
		id := t.enqueue(job("k", stint.In(time.Hour)))[0]
		bell := t.listen(t.Store)
		bell.wait("when it began to listen")
		for _, again := range []stint.Again{{In: time.Minute}, {}} {
			bell.rings("for what runs again", func() { t.retry(again, id) })
		}
	}},
	{"A call whose context has ended does nothing", func(t *T) {
		ended, cancel := context.WithCancel(t.ctx)
		cancel()
		ids := t.enqueue(job("k", stint.In(time.Hour)), job("k"))
		w := t.join("k")
		w.Complete(w.One())
		if _, err := t.operator().Retry(ended, ids, stint.Again{}); err == nil {
			t.Error("retrying succeeded")
		}
		if _, err := t.operator().Delete(ended, ids); err == nil {
			t.Error("deleting succeeded")
		}
		t.state(ids[0], stint.Scheduled)
		t.state(ids[1], stint.Completed)
		if n := len(t.list(stint.Filter{})); n != 2 {
			t.Errorf("there are %d jobs, want 2", n)
		}
	}},
}

// recovered brings a job that says everything to each end, and recovers it.
func recovered(t *T) {
	w := t.join(rich().Kind)
	ends := []stint.Ending{
		completed, {Outcome: stint.OutcomeCancelled, Note: "by itself"}, {Outcome: stint.OutcomeExpired},
		{Outcome: stint.OutcomeFailed, Err: stint.NoRetry(errors.New("no"))},
	}
	for i, end := range ends {
		t.enqueue(job("k", stint.Queue("other")))
		other := w.One()
		want := rich()
		if i%2 == 1 {
			want.Delay, want.Correlation = time.Millisecond, ""
		}
		old := t.enqueue(want)[0]
		t.due()
		t.promoteAll(i % 2)
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, w.One())
		w.Finish(end, w.One())
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartNormal}, other) // the newest entry is of another job
		before := t.info(old)
		anew := t.recovers(old, stint.Again{})
		if diff := cmp.Diff(before, t.info(old), sameJob...); diff != "" {
			t.Errorf("the old job changed (-before +after):\n%s", diff)
		}
		got := t.info(anew)
		if got.Created.Before(before.Finished) || got.Due.Before(got.Created) {
			t.Errorf("the new job was created %v and is due %v; the old one ended %v", got.Created, got.Due, before.Finished)
		}
		if i%2 == 1 {
			before.Correlation = old.String()
		}
		before.StartBy = time.Time{} // which was for the old one
		what := cmpopts.IgnoreFields(stint.JobInfo{}, "ID", "State", "Reason", "Created", "Due", "Started", "Finished", "Executions", "Provenance")
		if diff := cmp.Diff(before, got, append(sameJob, what)...); diff != "" {
			t.Errorf("the new job (-old +new):\n%s", diff)
		}
		if got.State != stint.Available || got.Attempt != 1 || got.Reason != "" || len(got.Executions) != 0 || got.Provenance.Recovered != old {
			t.Errorf("people see %+v", got)
		}
		w.Complete(w.Claim(lane("other"), 1)...)
		e := w.One()
		if e.ID != anew || e.Provenance.Recovered != old || e.Attempt != 1 || !sameJSON(e.Args, want.Args) || !sameJSON(e.Metadata, want.Metadata) ||
			e.Retry != want.Retry || e.Timeout != want.Timeout || e.MaxLosses != *want.MaxLosses || e.URN != want.URN || e.Source != want.Source {
			t.Errorf("an engine gets %+v", e)
		}
		w.Complete(e)
		t.state(old, end.Outcome.State())
	}
}

// retry has jobs run again and returns the answers.
func (t *T) retry(again stint.Again, ids ...stint.ID) map[stint.ID]stint.Retried {
	t.Helper()
	got, err := t.operator().Retry(t.ctx, ids, again)
	t.must(err)
	return got
}

// retries has jobs run again and checks the answers.
func (t *T) retries(again stint.Again, want map[stint.ID]stint.Retried) {
	t.Helper()
	var ids []stint.ID
	for id := range want {
		ids = append(ids, id)
	}
	if diff := cmp.Diff(want, t.retry(again, ids...), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}
}

// recovers recovers a job and returns the new one.
func (t *T) recovers(id stint.ID, again stint.Again) stint.ID {
	t.Helper()
	got := t.retry(again, id)[id]
	if got.Answer != stint.RetryRecovered || got.ID <= id {
		t.Fatalf("job %d gives %+v, want that it is recovered", id, got)
	}
	return got.ID
}

// deletes deletes jobs and checks the answers.
func (t *T) deletes(want map[stint.ID]stint.Deletion) {
	t.Helper()
	var ids []stint.ID
	for id := range want {
		ids = append(ids, id)
	}
	got, err := t.operator().Delete(t.ctx, ids)
	t.must(err)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the answers (-want +got):\n%s", diff)
	}
}
