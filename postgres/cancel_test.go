package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// An outcome that is about to be committed and the marker of a cancellation do
// not see each other. Whoever promotes next makes up for it, long before
// anything is due.
func TestAJobThatIsCancelledBeforeItsOutcomeCommitsIsTidiedUp(t *testing.T) {
	for _, c := range []struct {
		name  string
		end   store.Result
		state stint.State
	}{
		{"its success", store.Result{Outcome: stint.OutcomeCompleted}, stint.Completed},
		{"its wait", store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, stint.Cancelled},
		{"its retry", store.Result{Outcome: stint.OutcomeFailed, Err: errors.New("no")}, stint.Cancelled},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := verified(t)
			id, err := stint.NewClient(s).Enqueue(t.Context(), stint.KindInfo{Name: "k"}.Job(nil))
			must(t, err)
			w := storetest.Join(t, s, "k")
			x := w.Conclude(w.One(), c.end)
			tx, err := s.pool.Begin(t.Context())
			must(t, err)
			must(t, s.recordIn(t.Context(), tx, w.Info.Token, []store.Completion{x}))
			got, err := s.Cancel(t.Context(), []stint.ID{id}, "why")
			must(t, err)
			if got[id] != stint.CancelRequested {
				t.Errorf("the answer is %q, want %q", got[id], stint.CancelRequested)
			}
			must(t, tx.Commit(t.Context()))
			if job, err := s.Job(t.Context(), id); err != nil || job.State != c.state {
				t.Errorf("people see %+v, error %v; want %s", job, err, c.state)
			}
			if p, err := s.Promote(t.Context(), time.Time{}, 10); err != nil || p.Moved != 0 {
				t.Errorf("promoted %+v, error %v", p, err)
			}
			if left, err := s.Cancelling(t.Context(), []stint.ID{id}); err != nil || len(left) != 0 {
				t.Errorf("%v are still to be cancelled, error %v", left, err)
			}
			l, err := s.Audit(t.Context())
			must(t, err)
			if job, err := s.Job(t.Context(), id); err != nil || job.State != c.state || len(l.Waiting) != 0 {
				t.Errorf("people see %+v, error %v; want %s", job, err, c.state)
			}
		})
	}
}

// A marker that is committed while an outcome is being written, which is not final
// and saw none, stays until somebody ends the job by it.
func TestAMarkerThatComesWhileAnOutcomeIsWrittenStays(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	id := b.enqueue(1)[0]
	w := b.join()
	x := w.Conclude(w.One(), store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour})
	other := begin(t, s) // in the way of the outcome, so that there is a moment in the middle of its writing
	_, err := other.Exec(t.Context(), `
		insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final) values ($1, 1, 1, now(), now(), 1, 1, 4, false)`, x.Pos)
	must(t, err)
	wrote := make(chan error, 1)
	go func() { _, err := w.TryFinish(t.Context(), x); wrote <- err }()
	blocked(t, s)
	if got, err := s.Cancel(t.Context(), []stint.ID{id}, "why"); err != nil || got[id] != stint.CancelRequested {
		t.Errorf("the answer is %v, error %v, want %q", got, err, stint.CancelRequested)
	}
	must(t, other.Rollback(t.Context()))
	must(t, <-wrote)
	_, err = s.Promote(t.Context(), time.Time{}, 10)
	must(t, err)
	if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Cancelled || job.Reason != "why" {
		t.Errorf("people see %+v, error %v", job, err)
	}
	if l, err := s.Audit(t.Context()); err != nil || len(l.Waiting) != 0 {
		t.Errorf("%d jobs wait still, error %v", len(l.Waiting), err)
	}
}

// Of what has ended a marker changes nothing, at its first entry or a later one.
func TestAMarkerThatComesTooLateShowsNowhere(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := append(b.enqueue(1, stint.Delay(time.Hour)), b.enqueue(3)...)
	w := b.join()
	w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, w.Claim(normal, 1)...)
	w.Complete(w.Claim(normal, 1)...)
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, w.One())
	w.Complete(w.One())
	// These are to end by theirs, at their third entry, their second and their first.
	open := b.enqueue(2)
	w.Finish(returned, w.Claim(normal, 2)...)
	w.Finish(returned, w.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartFront, "").ID, 1)...)
	open = append(open, b.enqueue(1)...)
	if _, err := s.Cancel(t.Context(), ids[:2], ""); err != nil { // they wait, and end in no lane
		t.Fatal(err)
	}
	before, err := s.Jobs(t.Context(), store.Filter{})
	must(t, err)
	exec(t, s, `insert into stint.cancellations (job, why) select unnest($1::bigint[]), 'x'`, ids)
	after, err := s.Jobs(t.Context(), store.Filter{})
	must(t, err)
	if diff := cmp.Diff(before, after); diff != "" || len(after) != len(ids)+len(open) {
		t.Errorf("(-before +after):\n%s", diff)
	}
	exec(t, s, `insert into stint.cancellations (job) select unnest($1::bigint[])`, open)
	want := append(slices.Clone(ids[:2]), open...)
	slices.Reverse(want)
	if got, err := s.Find(t.Context(), store.Filter{States: []stint.State{stint.Cancelled}}); err != nil || !slices.Equal(got, want) {
		t.Errorf("as cancelled are listed %v, error %v; want %v", got, err, want)
	}
}

// A promotion takes away the markers of what ended, wherever it did, and of what is
// gone. One of a job that has not ended stays, whatever others did.
func TestAPromotionTidiesUpTheMarkersOfWhatEndedAndNoOthers(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := b.enqueue(4)
	w := b.join()
	w.Complete(w.Claim(normal, 1)...) // the first
	w.Finish(returned, w.Claim(normal, 2)...)
	front := store.LaneOf(stint.DefaultQueue, 0, store.PartFront, "").ID
	w.Complete(w.Claim(front, 1)...) // the second, at its second entry
	w.Finish(returned, w.Claim(front, 1)...)
	running := append(w.Claim(front, 1), w.Claim(normal, 1)...) // the third at its third, the fourth at its first
	const gone = 1 << 40
	exec(t, s, `insert into stint.cancellations (job) select unnest($1::bigint[])`, append(slices.Clone(ids), gone))
	_, err := s.Promote(t.Context(), past, 10)
	must(t, err)
	if left := value[[]stint.ID](t, s.pool, `select array_agg(job order by job) from stint.cancellations`); !slices.Equal(left, ids[2:]) {
		t.Errorf("there are markers of %v, want %v", left, ids[2:])
	}
	w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, running...)
}

// What SQL marks alone shows as it will when it has ended. The next promotion ends
// that, and does not wait for a lane that is being claimed from; a deletion does
// so at once.
func TestWhatIsMarkedAloneEndsByAPromotionOrADeletionAndReadsTheSame(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	ids := append(b.enqueue(4), b.enqueue(2, stint.Queue("hops"))...)
	w := b.join()
	hops := store.LaneOf("hops", 0, store.PartNormal, "").ID
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind}, w.Claim(hops, 2)...)
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}, w.Claim(normal, 1)...)
	shown := func() (jobs []*stint.JobInfo) {
		t.Helper()
		for _, id := range ids {
			job, err := s.Job(t.Context(), id)
			must(t, err)
			if job.State != stint.Cancelled || job.Reason != "why" || !job.Started.Equal(job.Finished) || time.Since(job.Finished) > time.Minute {
				t.Errorf("job %d shows as %+v", id, job)
			}
			jobs = append(jobs, job)
		}
		return jobs
	}
	left := func(want ...stint.ID) {
		t.Helper()
		if got, err := s.Cancelling(t.Context(), ids); err != nil || !slices.Equal(got, want) {
			t.Errorf("marked are %v, error %v; want %v", got, err, want)
		}
	}
	for _, id := range ids {
		if got := value[string](t, s.pool, `select stint.cancel($1, 'why')`, id); got != "cancelled" {
			t.Errorf("job %d is %s", id, got)
		}
	}
	before := shown()
	limit, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if job, err := s.Await(limit, ids[0]); err != nil || job.State != stint.Cancelled {
		t.Errorf("who awaits it is told %+v, error %v", job, err)
	}
	promote := func(limit int) {
		t.Helper()
		if p, err := s.Promote(t.Context(), past, limit); err != nil || p.Moved != 0 {
			t.Errorf("promoted %+v, error %v", p, err)
		}
	}
	other := begin(t, s)
	_, err := other.Exec(t.Context(), s.sql.in(nowLockSQL), int64(normal))
	must(t, err)
	promote(100)
	left(ids[:4]...)
	must(t, other.Rollback(t.Context()))
	promote(2)
	left(ids[2:4]...)
	if got, err := s.Delete(t.Context(), ids[3:4]); err != nil || got[ids[3]] != store.DeletedNow {
		t.Errorf("deleting answers %v, error %v", got, err)
	}
	promote(2)
	left()
	ids, before = slices.Delete(ids, 3, 4), slices.Delete(before, 3, 4)
	if diff := cmp.Diff(before, shown()); diff != "" {
		t.Errorf("(-marked +ended):\n%s", diff)
	}
	if all := w.ClaimAll(); len(all) != 0 {
		t.Errorf("%d were handed out", len(all))
	}
}

// What was in progress when a frontier passed is ready until a claim has taken it, in
// parts perhaps: what that took is asked to stop, and the rest ended.
func TestOfWhatWasLateIsEndedWhatNoClaimHasTaken(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	w := b.join()
	tx, open := begin(t, s), begin(t, s)
	late := b.enqueueIn(Tx(tx), 4)
	later := b.enqueueIn(Tx(open), 1)
	b.enqueue(2)
	w.Complete(w.ClaimAll()...) // past those
	must(t, tx.Commit(t.Context()))
	taken := w.Claim(normal, 2)
	ids := append(late, later...)
	got, err := s.Cancel(t.Context(), ids, "")
	must(t, err)
	must(t, open.Commit(t.Context()))
	for i, want := range []stint.CancelStatus{stint.CancelRequested, stint.CancelRequested, stint.CancelledNow, stint.CancelledNow, stint.CancelNotFound} {
		if got[ids[i]] != want {
			t.Errorf("job %d of %v: the answer is %q, want %q", ids[i], ids, got[ids[i]], want)
		}
	}
	w.Finish(store.Result{Outcome: stint.OutcomeCancelled}, taken...)
	if e := w.One(); e.ID != later[0] || e.Cancelled {
		t.Errorf("claimed was job %d, cancelled: %v; want %d", e.ID, e.Cancelled, later[0])
	}
}

// Two who cancel jobs in several lanes would wait for each other, if each took the
// locks in an order of its own.
func TestACancellationTakesTheLocksOfLanesInTheirOrder(t *testing.T) {
	s := verified(t)
	b := &bench{t, s, nil}
	var lanes []int64
	var ids []stint.ID
	for i := range 8 {
		queue := fmt.Sprint("q", i)
		ids = append(ids, b.enqueue(1, stint.Queue(queue))...)
		lanes = append(lanes, int64(store.LaneOf(queue, 0, store.PartNormal, "").ID))
	}
	slices.Sort(lanes)
	for i, lane := range lanes {
		other, tx := begin(t, s), begin(t, s)
		_, err := other.Exec(t.Context(), s.sql.in(nowLockSQL), lane)
		must(t, err)
		_, err = tx.Exec(t.Context(), `insert into stint.cancellations (job) select unnest($1::bigint[])`, ids)
		must(t, err)
		done := make(chan error, 1)
		go func() { _, err := tx.Exec(t.Context(), `select stint.cancel_ready($1, true)`, ids); done <- err }()
		blocked(t, s)
		if held := value[int](t, s.pool, `select count(*) from pg_locks where locktype = 'advisory' and granted and mode = 'ExclusiveLock'
			and database = (select oid from pg_database where datname = current_database())`) - 1; held != i {
			t.Errorf("who waits for the lock of lane %d in their order holds %d", i, held)
		}
		must(t, other.Rollback(t.Context()))
		must(t, <-done)
		must(t, tx.Rollback(t.Context()))
	}
}
