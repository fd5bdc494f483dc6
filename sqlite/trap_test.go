package sqlite

import (
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// A plain rowid starts again at 1 when a table is empty. Behind a frontier, new
// jobs would never run.
func TestPositionsAreNotReusedWhenHistoryIsDeleted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	enqueue(t, s, someJobs(10))
	w := storetest.Join(t, s, "noop")
	w.Complete(w.ClaimAll()...)
	err := s.write(t.Context(), func(c *conn) (bool, error) {
		return false, c.db.Exec(`delete from stint_entries; delete from stint_executions`)
	})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), someJobs(2))
	if err != nil || ids[0] != 11 {
		t.Fatalf("the ids are %v, error %v; want 11 and 12", ids, err)
	}
	if got := w.ClaimAll(); len(got) != 2 {
		t.Errorf("%d of the 2 new jobs were claimed", len(got))
	}
}

// Reusing the id as position runs a job due at 11 before one due at 10.
func TestPromotionDrawsPositionsInTheOrderOfDueTimes(t *testing.T) {
	s := open(t, Memory)
	at := time.Now().Add(20 * time.Millisecond)
	jobs := someJobs(3)
	jobs[0].RunAt, jobs[1].RunAt, jobs[2].RunAt = at.Add(2*time.Millisecond), at.Add(time.Millisecond), at
	ids, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Until(at) + 5*time.Millisecond)
	if p, err := s.Promote(t.Context(), time.Time{}, 10); err != nil || p.Moved != 3 {
		t.Fatalf("promoted %+v, error %v", p, err)
	}
	var got []stint.ID
	for _, e := range storetest.Join(t, s, "noop").ClaimAll() {
		got = append(got, e.ID)
		if int64(e.Pos) <= int64(ids[2]) {
			t.Errorf("job %d has the position %d, which is not a fresh one", e.ID, e.Pos)
		}
	}
	if want := []stint.ID{ids[2], ids[1], ids[0]}; !slices.Equal(got, want) {
		t.Errorf("claimed %v, want %v", got, want)
	}
}

func TestAJudgeThatPanicsBuriesNobody(t *testing.T) {
	s := open(t, Memory)
	enqueue(t, s, someJobs(2))
	w := storetest.Join(t, s, "noop")
	w.ClaimAll()
	func() {
		defer func() {
			if recover() == nil {
				t.Errorf("the panic was swallowed")
			}
		}()
		_, _ = s.Bury(t.Context(), store.Burial{Engine: w.Info.Token}, func(*store.Entry, bool) store.Completion { panic("no") })
	}()
	if n := w.Leave(); n != 2 {
		t.Errorf("afterwards %d entries were concluded, want 2", n)
	}
	storetest.Verify(t, s)
}

// What a burial writes must be as good as what the engine would have written.
func TestABurialRecordsUnderTheClaimAndForTheEngine(t *testing.T) {
	s := open(t, Memory)
	enqueue(t, s, someJobs(3))
	w := storetest.Join(t, s, "noop")
	c, err := w.TryClaim(t.Context(), store.ClaimRequest{Lane: store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID, Max: 3})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Bury(t.Context(), store.Burial{Engine: w.Info.Token}, func(e *store.Entry, _ bool) store.Completion {
		return store.Conclude(e, store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, time.Now(), 0) // it never began
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Audit(t.Context())
	if err != nil || len(l.Executions) != 3 {
		t.Fatalf("%d executions, error %v", len(l.Executions), err)
	}
	for _, x := range l.Executions {
		if x.Nonce != c.Nonce || x.Engine != w.Info.Token || !x.Started.Equal(x.Finished) || !x.Finished.Equal(l.Buried[w.Info.Token]) {
			t.Errorf("the execution is %+v; want nonce %d and both times %v", x, c.Nonce, l.Buried[w.Info.Token])
		}
	}
}
