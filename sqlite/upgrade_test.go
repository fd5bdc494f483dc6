package sqlite

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/storetest"
)

// laterSteps are those of a program that knows more than this one.
func laterSteps() []steps.Step {
	known := schemaSteps()
	n := len(known)
	return append(known,
		steps.Step{Version: n + 1, Oldest: 1, Text: `alter table stint_entries add column note text; create table stint_done (version integer) strict; insert into stint_done values (2);`},
		steps.Step{Version: n + 2, Oldest: 1, Text: `create index stint_entries_note on stint_entries (note) where note is not null; insert into stint_done values (3);`})
}

func TestAStepThatFailsLeavesThoseBeforeItAndTheFileGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	t.Cleanup(func() { storetest.Verify(t, s) })
	enqueue(t, s, someJobs(2))
	w := storetest.Join(t, s, "noop")
	entries := w.ClaimAll()

	later := laterSteps()
	broken := append(later[:len(later)-1:len(later)-1], steps.Step{Version: len(later), Oldest: 1, Text: `insert into stint_done values (3); select none;`})
	next, err := openSteps(t.Context(), path, Config{SkipCheck: true}, broken)
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if info, err := next.Migrate(t.Context()); err == nil || !strings.Contains(err.Error(), "to version 3") || info.Installed != 2 {
		t.Errorf("a step that fails says %+v, error %v", info, err)
	}
	if n := count(t, path, `select count(*) from stint_done`); n != 1 {
		t.Errorf("%d steps were done, want 1", n)
	}
	w.Complete(entries...) // by a program of the version before
	w.Leave()
	enqueue(t, s, someJobs(1))
	whole, err := openSteps(t.Context(), path, Config{Upgrade: true}, later)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	storetest.Verify(t, whole)
}

func TestManyUpgradersOfAFileDoEachStepOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	enqueue(t, open(t, path), someJobs(1))
	var all sync.WaitGroup
	for range 5 {
		all.Go(func() {
			s, err := openSteps(t.Context(), path, Config{Upgrade: true}, laterSteps())
			if err != nil {
				t.Error(err)
				return
			}
			s.Close()
		})
	}
	all.Wait()
	if n := count(t, path, `select count(*) from stint_done`); n != 2 {
		t.Errorf("%d steps were done, want 2", n)
	}
}

func count(t *testing.T, path, query string) (n int) {
	t.Helper()
	if err := database(t, path).QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
