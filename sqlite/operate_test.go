package sqlite

import (
	"maps"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// deletions are the engines that may repeat what was deleted, each with the last
// claim that it had made by then.
func deletions(t *testing.T, s *Store) map[store.EngineID]int64 {
	t.Helper()
	got := map[store.EngineID]int64{}
	err := s.read(t.Context(), func(c *conn) error {
		return c.query(`select engine, serial from stint_deletions`, nil, func(q *stmt) error {
			got[store.EngineID(q.ColumnInt64(0))] = q.ColumnInt64(1)
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func beat(t *testing.T, s *Store, w *storetest.Worker, number, low int64) {
	t.Helper()
	if _, err := s.Heartbeat(t.Context(), w.Info.Token, store.Heartbeat{Number: number, Low: low}); err != nil {
		t.Fatal(err)
	}
}

// A deletion is noted for the engines that may record the job once more: those of
// its attempts that stand, and that either ended one just now or have not said
// that all of their claims are recorded.
func TestADeletionIsNotedForTheEnginesThatMayRepeatTheJob(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	enqueue(t, s, someJobs(1))
	id := stint.ID(1)
	again := store.Result{Outcome: stint.OutcomeReturned, Part: store.PartNormal}
	join := func() *storetest.Worker { return storetest.Join(t, s, "noop") }
	first, lately, unsure, sure, gone, last, bystander := join(), join(), join(), join(), join(), join(), join()
	// Each claims something of its own before and behind, so that serials differ.
	own := map[*storetest.Worker]int{first: 0, lately: 1, unsure: 2, sure: 3, gone: 0, last: 4, bystander: 7}
	for _, w := range []*storetest.Worker{first, lately, unsure, sure, gone, last, bystander} {
		if w != bystander {
			w.Finish(again, w.One())
		}
		for range own[w] {
			mine := someJobs(1)
			mine[0].Queue = "own"
			enqueue(t, s, mine)
			w.Complete(w.Claim(store.LaneOf("own", 0, store.PartNormal, "").ID, 1)...)
		}
	}
	last.Complete(last.One())
	token := func(w *storetest.Worker) int64 { return int64(w.Info.Token) }
	db := database(t, s.path)
	serial := func(w *storetest.Worker) (n int64) {
		t.Helper()
		if err := db.QueryRow(`select max(serial) from stint_claims where engine = ?`, token(w)).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	beat(t, s, lately, 1, serial(lately)+1)
	beat(t, s, sure, 1, serial(sure)+1)
	beat(t, s, bystander, 1, 1)
	gone.Leave()
	for _, w := range []*storetest.Worker{first, unsure, sure, gone, last} {
		if _, err := db.Exec(`update stint_executions set started = started - 660000000, finished = finished - 660000000 where engine = ?`, token(w)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Delete(t.Context(), []stint.ID{id}); err != nil || got[id] != store.DeletedNow {
		t.Fatalf("deleting gives %v, error %v", got, err)
	}
	want := map[store.EngineID]int64{}
	for _, w := range []*storetest.Worker{first, lately, unsure, last} {
		want[w.Info.Token] = serial(w)
	}
	if got := deletions(t, s); !maps.Equal(got, want) {
		t.Errorf("noted are %v, want %v", got, want)
	}
}

// The note goes when the engine has said that nothing is left to repeat and a
// request that was cut off is over, or with its burial; and no other engine's.
func TestTheNoteOfADeletionGoesWhenNothingIsLeftToRepeat(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	w, other, third := storetest.Join(t, s, "noop"), storetest.Join(t, s, "noop"), storetest.Join(t, s, "noop")
	for n, w := range []*storetest.Worker{w, other, third} {
		enqueue(t, s, someJobs(1))
		w.Complete(w.One())
		id := stint.ID(n + 1)
		if got, err := s.Delete(t.Context(), []stint.ID{id}); err != nil || got[id] != store.DeletedNow {
			t.Fatalf("deleting gives %v, error %v", got, err)
		}
	}
	noted := func(when string, want ...*storetest.Worker) {
		t.Helper()
		got := deletions(t, s)
		if len(got) != len(want) {
			t.Errorf("%s %d are noted, want %d", when, len(got), len(want))
		}
		for _, w := range want {
			if _, is := got[w.Info.Token]; !is {
				t.Errorf("%s one is not noted", when)
			}
		}
	}
	noted("after the deletion", w, other, third)
	beat(t, s, w, 1, 100)
	noted("while a request that was cut off may go on", w, other, third)
	alter(t, s, `update stint_deletions set at = at - 120000000`)
	serial := deletions(t, s)[w.Info.Token]
	beat(t, s, w, 2, serial)
	noted("while its last claim may be repeated", w, other, third)
	beat(t, s, w, 3, serial+1)
	noted("when that is recorded", other, third)
	other.Leave()
	noted("when another one has left", third)
	// What is not noted for an engine is not looked for at its outcomes.
	err := s.read(t.Context(), func(c *conn) error {
		for _, w := range []*storetest.Worker{w, third} {
			r, err := c.recorder(w.Info.Token, time.Now())
			if err != nil {
				return err
			}
			if r.deleted != (w == third) {
				t.Errorf("engine %x may repeat something: %v", w.Info.Token, r.deleted)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
