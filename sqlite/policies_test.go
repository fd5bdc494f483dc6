package sqlite

import (
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestAPolicyThatIsNotUnderstoodHoldsUpNeitherItsJobNorItsBatch(t *testing.T) {
	s := open(t, Memory)
	jobs := someJobs(3)
	jobs[1].Retry = retry.Fixed(7, 0)
	ids, err := s.Enqueue(t.Context(), stint.Tx{}, jobs)
	if err != nil {
		t.Fatal(err)
	}
	// As if a newer program had stored it.
	const newer = `{"policy":"by_moon","phase":"full"}`
	err = s.write(t.Context(), func(c *conn) (bool, error) {
		_, err := c.exec(`update stint_policies set body = ?`, newer)
		return false, err
	})
	if err != nil {
		t.Fatal(err)
	}
	w := storetest.Join(t, s, "noop")
	for range 2 { // the second time it is remembered
		entries := w.ClaimAll()
		if len(entries) != 3 {
			t.Fatalf("%d entries were claimed, want 3", len(entries))
		}
		for _, e := range entries {
			if e.Retry != retry.Default() {
				t.Errorf("job %d is retried by %v", e.ID, e.Retry)
			}
		}
		w.Finish(store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}, entries...)
	}
	// People see what is there.
	for i, want := range []string{retry.Default().String(), newer, retry.Default().String()} {
		if job, err := s.Job(t.Context(), ids[i].ID); err != nil || job.Retry != want {
			t.Errorf("of job %d people see %+v, %v, want the policy %s", i, job, err, want)
		}
	}
	w.Complete(w.ClaimAll()...)
	w.Leave()
}
