package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// As docs/sqlite.md says.
func TestACopyMadeWhileEnginesWorkIsWholeAndCanBeGoneBackTo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	copied := path + ".copy"
	s := open(t, path)
	w := storetest.Join(t, s, "noop")
	for i := range 30 {
		enqueue(t, s, someJobs(20))
		entries := w.ClaimAll()
		w.Complete(entries[:10]...)
		if i != 15 {
			w.Complete(entries[10:]...)
			continue
		}
		// By another program, while jobs are in hand.
		db, err := sqlite3.Open("file:" + path)
		if err != nil {
			t.Fatal(err)
		}
		if err := db.Exec(`vacuum into '` + copied + `'`); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		w.Complete(entries[10:]...)
	}
	c := open(t, copied)
	sound(t, c, "the copy")
	if n, err := storetest.Bury(t.Context(), c, store.Burial{Engine: w.Info.Token, Why: "copied"}, storetest.Judge); err != nil || n != 10 {
		t.Errorf("%d jobs were in hand, error %v", n, err)
	}
	other := storetest.Join(t, c, "noop")
	enqueue(t, c, someJobs(5))
	other.Complete(other.ClaimAll()...)
	if counts, err := c.Counts(t.Context()); err != nil || counts[stint.Completed] != 16*20+5 {
		t.Errorf("the counts of the copy are %v, error %v", counts, err)
	}
	storetest.Verify(t, c)
	storetest.Verify(t, s)
}
