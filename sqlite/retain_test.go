package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/storetest"
)

func TestWhatCameWhileTheClockWasAheadKeepsNothingBehindIt(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	w := storetest.Join(t, s, "k")
	for range 2 {
		if _, err := stint.NewClient(s).Enqueue(t.Context(), stint.NewJob{Kind: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	w.Complete(w.Claim(stint.LaneOf(stint.DefaultQueue, 0, stint.PartNormal, "").ID, 2)...)
	db := database(t, s.path)
	for _, text := range []string{
		`update stint_entries set created = created - 3600000000`,
		`update stint_executions set started = started - 3600000000, finished = finished - 3600000000`,
		`update stint_entries set created = created + 300000000000000 where pos = (select min(pos) from stint_entries)`,
		`update stint_executions set finished = finished + 300000000000000 where pos = (select min(pos) from stint_executions)`,
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	keep := stint.Retention{Kept: stint.Kept{All: time.Minute}}
	done, err := s.Retain(t.Context(), stint.RetainStep{Part: stint.RetainJobs, Limit: 100, Keep: keep, Age: time.Minute})
	if err != nil || done.Deleted != 1 || done.Young != (stint.RetainMark{}) {
		t.Errorf("it says %+v, error %v", done, err)
	}
}
