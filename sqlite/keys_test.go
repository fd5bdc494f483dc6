package sqlite

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/storetest"
)

// A key is remembered for at least a day, and for as long as its job is kept: by
// default until five days after it ended.
func TestAKeyIsRememberedForAsLongAsItsJobIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	synctest.Test(t, func(t *testing.T) {
		s := open(t, path, Config{Poll: time.Minute})
		defer s.Close()
		client := stint.NewClient(s)
		keep := stint.Retention{Queues: map[string]stint.Kept{"ever": {Completed: stint.Forever}, "short": {All: time.Hour}}}
		jobs := map[string]stint.NewJob{"done": {Kind: "k"}, "later": {Kind: "k", Delay: 30 * 24 * time.Hour}, "gone": {Kind: "other"},
			"tried": {Kind: "k", Queue: "tried"}, "ever": {Kind: "k", Queue: "ever"}, "short": {Kind: "k", Queue: "short"}}
		first := map[string]stint.ID{}
		for _, key := range []string{"done", "later", "gone", "tried", "ever", "short"} {
			job := jobs[key]
			job.IdempotencyKey = key
			id, err := client.Enqueue(t.Context(), job)
			if err != nil {
				t.Fatal(err)
			}
			jobs[key], first[key] = job, id
		}
		w := storetest.Join(t, s, "k")
		w.Complete(w.Claim(stint.LaneOf(stint.DefaultQueue, 0, stint.PartNormal, "").ID, 1)...)
		for _, queue := range []string{"ever", "short"} {
			w.Complete(w.Claim(stint.LaneOf(queue, 0, stint.PartNormal, "").ID, 1)...)
		}
		w.Finish(stint.Ending{Outcome: stint.OutcomeReturned}, w.Claim(stint.LaneOf("tried", 0, stint.PartNormal, "").ID, 1)...)
		w.Leave()
		remembered := func(when string, want map[string]bool) {
			t.Helper()
			for key, want := range want {
				found := false
				err := s.read(t.Context(), func(c *conn) (err error) {
					found, err = c.found(holderSQL, key)
					return err
				})
				if err != nil || found != want {
					t.Errorf("%s, key %q is remembered: %v, error %v", when, key, found, err)
				}
			}
		}
		forget := func() {
			t.Helper()
			for range 4 {
				if _, err := s.Retain(t.Context(), stint.RetainStep{Part: stint.RetainKeys, Limit: 2, Keep: keep}); err != nil {
					t.Fatal(err)
				}
			}
		}
		err := s.write(t.Context(), func(c *conn) (bool, error) {
			_, err := c.exec(`delete from stint_entries where pos = ?`, int64(first["gone"]))
			return false, err
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(24*time.Hour - time.Minute)
		forget()
		remembered("within a day", map[string]bool{"done": true, "later": true, "gone": true, "tried": true, "ever": true, "short": true})
		time.Sleep(2 * time.Minute)
		forget()
		remembered("after a day", map[string]bool{"done": true, "later": true, "gone": false, "tried": true, "ever": true, "short": false})
		time.Sleep(4*24*time.Hour - 10*time.Minute)
		forget()
		remembered("just before five days", map[string]bool{"done": true, "later": true, "tried": true})
		if r, err := client.EnqueueReceipt(t.Context(), jobs["done"]); err != nil || r != (stint.Receipt{ID: first["done"], Duplicate: true}) {
			t.Errorf("the repetition is answered with %+v, error %v", r, err)
		}
		time.Sleep(time.Hour)
		forget()
		remembered("after five days", map[string]bool{"done": false, "later": true, "tried": true, "ever": true})
		if r, err := client.EnqueueReceipt(t.Context(), jobs["done"]); err != nil || r.Duplicate || r.ID == first["done"] {
			t.Errorf("once it is forgotten it is answered with %+v, error %v", r, err)
		}
		w = storetest.Join(t, s, "k")
		w.Complete(w.ClaimAll()...)
		w.Leave()
		time.Sleep(4 * 24 * time.Hour)
		forget()
		remembered("four days after its second attempt", map[string]bool{"later": true, "tried": true, "ever": true})
		time.Sleep(2 * 24 * time.Hour)
		forget()
		remembered("six days after it", map[string]bool{"later": true, "tried": false, "ever": true})
		time.Sleep(15 * 24 * time.Hour)
		forget()
		remembered("while its job waits, or is kept for ever", map[string]bool{"later": true, "ever": true})
	})
}
