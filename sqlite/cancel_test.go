package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// A program in any language cancels a job by inserting a marker.
func TestAMarkerAloneCancelsAJob(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	jobs := someJobs(5)
	jobs[0].Delay, jobs[1].Delay = time.Hour, time.Hour
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.Join(t, s, "noop")
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	w.Complete(w.Claim(lane, 1)...) // ids[2]
	running := w.Claim(lane, 1)     // ids[3]
	show := func(want ...stint.State) {
		t.Helper()
		for i, id := range ids {
			if job, err := s.Job(t.Context(), id); err != nil || job.State != want[i] {
				t.Errorf("job %d is %+v, error %v; want %s", id, job, err, want[i])
			}
		}
	}
	show(stint.Scheduled, stint.Scheduled, stint.Completed, stint.Running, stint.Available)
	if _, err := database(t, s.path).Exec(`insert into stint_cancellations (job, at) values (?, 1), (?, 1), (?, 1), (?, 1), (99, 1)`,
		ids[1], ids[2], ids[3], ids[4]); err != nil {
		t.Fatal(err)
	}
	show(stint.Scheduled, stint.Cancelled, stint.Completed, stint.Running, stint.Cancelled)
	counts, err := s.Counts(t.Context())
	if err != nil || counts[stint.Cancelled] != 2 || counts[stint.Scheduled] != 1 || counts[stint.Available] != 0 || counts[stint.Completed] != 1 {
		t.Errorf("the counts are %v, error %v", counts, err)
	}
	if list, err := s.Jobs(t.Context(), store.Filter{States: []stint.State{stint.Scheduled}, Limit: 1}); err != nil || len(list) != 1 || list[0].ID != ids[0] {
		t.Errorf("scheduled are %+v, error %v", list, err)
	}
	if a, err := s.Analyze(t.Context(), report.AnalyticsFilter{}); err != nil || a.Queued != 0 || a.Postponed != 1 || a.Running != 1 {
		t.Errorf("it says %+v, error %v", a, err)
	}
	before := shown(t, s, ids[1], ids[4])
	// Promotion ends what no engine has, long before it is due.
	if p, err := s.Promote(t.Context(), time.Time{}, 2); err != nil || p.Moved != 0 || p.Next <= 0 {
		t.Errorf("promoted %+v, error %v", p, err)
	}
	if left, err := s.Cancelling(t.Context(), append(ids, 99)); err != nil || !slices.Equal(left, ids[3:4]) {
		t.Errorf("%v are still to be cancelled, error %v; want job %v", left, err, ids[3])
	}
	if diff := cmp.Diff(before, shown(t, s, ids[1], ids[4])); diff != "" {
		t.Errorf("(-marked +ended):\n%s", diff)
	}
	w.Finish(store.Result{Outcome: stint.OutcomeSnoozed}, running...)
	if all := w.ClaimAll(); len(all) != 0 {
		t.Errorf("%d were handed out", len(all))
	}
	show(stint.Scheduled, stint.Cancelled, stint.Completed, stint.Cancelled, stint.Cancelled)
	storetest.Verify(t, s)
}

func shown(t *testing.T, s *Store, ids ...stint.ID) (jobs []*stint.JobInfo) {
	t.Helper()
	for _, id := range ids {
		job, err := s.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		jobs = append(jobs, job)
	}
	return jobs
}

// What is marked alone and that no engine has shows why and when that was, after
// an attempt or a hop as well; to delete it is to end it before.
func TestWhatIsMarkedAloneEndsByADeletionAndReadsTheSame(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	enqueue(t, s, someJobs(4))
	w := storetest.Join(t, s, "noop")
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind}, w.Claim(lane, 1)...)
	w.Finish(store.Result{Outcome: stint.OutcomeSnoozed}, w.Claim(lane, 1)...)
	if p, err := s.Promote(t.Context(), time.Time{}, 10); err != nil || p.Moved != 1 {
		t.Fatalf("promoted %+v, error %v", p, err)
	}
	running := w.Claim(lane, 1)
	at := time.Now().Truncate(time.Microsecond)
	alter(t, s, fmt.Sprintf(`insert into stint_cancellations (job, at, why) select value, %d, 'why' from json_each('[1, 2, 3, 4]')`, micro(at)))
	before := shown(t, s, 1, 2, 4)
	for _, job := range before {
		if job.State != stint.Cancelled || job.Reason != "why" || !job.Started.Equal(at) || !job.Finished.Equal(at) {
			t.Errorf("job %d shows as %+v", job.ID, job)
		}
	}
	limit, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if job, err := s.Await(limit, 2); err != nil || job.State != stint.Cancelled {
		t.Errorf("who awaits it is told %+v, error %v", job, err)
	}
	if got, err := s.Delete(t.Context(), []stint.ID{3, 4}); err != nil || got[3] != store.DeleteNotFinal || got[4] != store.DeletedNow {
		t.Errorf("deleting answers %v, error %v", got, err)
	}
	if _, err := s.Promote(t.Context(), time.Time{}, 10); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before[:2], shown(t, s, 1, 2)); diff != "" {
		t.Errorf("(-marked +ended):\n%s", diff)
	}
	w.Complete(running...)
	if all := w.ClaimAll(); len(all) != 0 {
		t.Errorf("%d were handed out", len(all))
	}
	storetest.Verify(t, s)
}

// A marker of what is no job, or of one that has ended, is forgotten, and no other.
func TestMarkersThatCameTooLateAreForgottenAndNoOthers(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	enqueue(t, s, someJobs(5))
	w := storetest.Join(t, s, "noop")
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	w.Complete(w.Claim(lane, 1)...)                                             // job 1
	w.Finish(store.Result{Outcome: stint.OutcomeReturned}, w.Claim(lane, 1)...) // job 2, to run again and end
	w.Finish(store.Result{Outcome: stint.OutcomeReturned}, w.Claim(lane, 1)...) // job 3, to run again
	running := w.Claim(lane, 1)                                                 // job 4
	rest := w.ClaimAll()
	slices.SortFunc(rest, func(a, b store.Entry) int { return int(a.ID - b.ID) })
	w.Complete(rest[0])
	later := int64(rest[1].Pos)
	markers := func(when string, want ...int64) {
		t.Helper()
		var got []int64
		err := s.read(t.Context(), func(c *conn) error {
			return c.query(`select job from stint_cancellations order by job`, nil, func(q *stmt) error {
				got = append(got, q.ColumnInt64(0))
				return nil
			})
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s the markers are %v, error %v; want %v", when, got, err, want)
		}
	}
	for _, late := range []int64{1, 2, later, 99} {
		alter(t, s, fmt.Sprintf(`insert into stint_cancellations (job, at) values (3, 1), (4, 1), (5, 1), (%d, 1)`, late))
		if _, err := s.Promote(t.Context(), time.Time{}, 10); err != nil {
			t.Fatal(err)
		}
		markers(fmt.Sprintf("beside that of %d", late), 3, 4, 5)
		alter(t, s, `delete from stint_cancellations`)
	}
	w.Complete(running...)
	w.Complete(rest[1:]...)
	storetest.Verify(t, s)
}

// Promotion is told that there is something to do about markers only if there is.
func TestOfMarkersThatStandPromotionWritesNothing(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	jobs := someJobs(5)
	jobs[3].Delay = time.Hour
	enqueue(t, s, jobs)
	w := storetest.Join(t, s, "noop")
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	w.Complete(w.Claim(lane, 1)...)
	e := w.Claim(lane, 1)
	w.Finish(store.Result{Outcome: stint.OutcomeReturned}, e...)
	running := w.Claim(lane, 1) // job 3
	left := func(wants map[int64]bool) {
		t.Helper()
		for marker, want := range wants {
			alter(t, s, fmt.Sprintf(`insert into stint_cancellations (job, at) values (%d, 1)`, marker))
			err := s.read(t.Context(), func(c *conn) error {
				if got, err := c.found(anyLeftSQL); err != nil || got != want {
					t.Errorf("of a marker of job %d something is to be done: %v, error %v", marker, got, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			alter(t, s, `delete from stint_cancellations`)
		}
	}
	left(map[int64]bool{1: true, 2: true, 3: false, 4: true, 5: true, 99: true})
	running = append(running, w.ClaimAll()...)
	left(map[int64]bool{1: true, 2: false, 3: false, 4: true, 5: false, 99: true})
	w.Complete(running...)
}

// Of what has ended a marker changes nothing, at its first entry or a later one.
func TestAMarkerThatComesTooLateShowsNowhere(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	jobs := someJobs(4)
	jobs[0].Delay = time.Hour
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.Join(t, s, "noop")
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	w.Finish(store.Result{Outcome: stint.OutcomeSnoozed, Snooze: time.Hour}, w.Claim(lane, 1)...)
	w.Complete(w.Claim(lane, 1)...)
	w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, w.One())
	w.Complete(w.One())
	if _, err := s.Cancel(t.Context(), ids[:2], ""); err != nil { // they wait, and end in no lane
		t.Fatal(err)
	}
	shown := func() (all []stint.JobInfo) {
		t.Helper()
		all, err := s.Jobs(t.Context(), store.Filter{})
		if err != nil || len(all) != len(ids) {
			t.Fatalf("there are %+v, error %v", all, err)
		}
		return all
	}
	before := shown()
	if _, err := database(t, s.path).Exec(`insert into stint_cancellations (job, at, why) values (?, 1, 'x'), (?, 1, 'x'), (?, 1, 'x'), (?, 1, 'x')`, ids[0], ids[1], ids[2], ids[3]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, shown()); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
	storetest.Verify(t, s)
}
