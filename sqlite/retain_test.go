package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestWhatCameWhileTheClockWasAheadKeepsNothingBehindIt(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	complete(t, s, 2)
	alter(t, s,
		`update stint_entries set created = created - 3600000000`,
		`update stint_executions set started = started - 3600000000, finished = finished - 3600000000`,
		`update stint_entries set created = created + 300000000000000 where pos = (select min(pos) from stint_entries)`,
		`update stint_executions set finished = finished + 300000000000000 where pos = (select min(pos) from stint_executions)`)
	keep := store.Retention{KeepFor: store.KeepFor{All: time.Minute}}
	done, err := s.Retain(t.Context(), store.RetainStep{Part: store.RetainJobs, Limit: 100, Keep: keep, Age: time.Minute})
	if err != nil || done.Deleted != 1 || done.Young != (store.RetainMark{}) {
		t.Errorf("it says %+v, error %v", done, err)
	}
}

func TestWhatHasNoEntryEndsNoPass(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	complete(t, s, 3)
	alter(t, s,
		`update stint_entries set created = created - 3600000000`,
		`update stint_executions set started = started - 3600000000, finished = finished - 3600000000`,
		`delete from stint_entries where pos = (select min(pos) from stint_entries)`)
	r := store.RetainStep{Part: store.RetainJobs, Limit: 2, Keep: store.Retention{KeepFor: store.KeepFor{All: time.Minute}}}
	done, err := s.Retain(t.Context(), r)
	if err != nil || done.Deleted != 1 || !done.More {
		t.Fatalf("of two executions, one without an entry, it says %+v, error %v", done, err)
	}
	r.From = done.Next
	if done, err = s.Retain(t.Context(), r); err != nil || done.Deleted != 1 || done.More {
		t.Errorf("of what is behind them it says %+v, error %v", done, err)
	}
}

// complete has n jobs run.
func complete(t *testing.T, s *Store, n int) {
	t.Helper()
	w := storetest.Join(t, s, "k")
	for range n {
		if _, err := stint.NewClient(s).Enqueue(t.Context(), stint.NewJob{Kind: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	w.Complete(w.Claim(store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID, n)...)
}

// alter changes the file behind the store's back.
func alter(t *testing.T, s *Store, texts ...string) {
	t.Helper()
	db := database(t, s.path)
	for _, text := range texts {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
}
