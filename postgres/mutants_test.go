package postgres

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/proof/mutate"
	"github.com/stint-go/stint/internal/proof/pgtest"
)

// trap is a way in which a store like this one lost or doubled jobs, or stood
// still. Its check says what went wrong, nil when nothing did.
type trap struct {
	name  string
	check func(b *bench) error
}

// TestNoTrapIsOpen runs each trap's check on the store as it is.
func TestNoTrapIsOpen(t *testing.T) {
	pgtest.Each(t, func(t *testing.T, server *pgtest.Server) {
		for _, trap := range traps {
			t.Run(trap.name, func(t *testing.T) {
				t.Parallel()
				open := func(url string) *Store { return openStore(t, url) }
				if err := trap.ask(&bench{t, open(installed.On(t, server)), open}); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// TestEachTrapHasItsMend takes the fixes out, one at a time: the mutants of
// internal/proof/mutate/table/sql.txt. The trap's check must notice.
func TestEachTrapHasItsMend(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a minute, and tests the tests: before a release, as all other mutants")
	}
	mutants, err := mutate.Read("../internal/proof/mutate", "sql")
	must(t, err)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			_, name, _ := strings.Cut(m.Path(), "/*/")
			i := slices.IndexFunc(traps, func(trap trap) bool { return trap.name == name })
			if i < 0 {
				t.Fatalf("there is no trap %q", name)
			}
			open := func(url string) *Store { return openMutant(t, m, url) }
			if err := traps[i].ask(&bench{t, open(pgtest.New(t)), open}); err == nil {
				t.Errorf("without its mend, nothing fails: %s", name)
			} else {
				t.Logf("as it should be: %v", err)
			}
		})
	}
}

// edited is a text in which an edit is made, which fits one place.
func edited(t *testing.T, text string, e mutate.Edit) string {
	t.Helper()
	if n := strings.Count(text, e.Old); n != 1 {
		t.Fatalf("%s has %d times: %.200s", e.File, n, e.Old)
	}
	return strings.Replace(text, e.Old, e.New, 1)
}

// openMutant installs the schema of a mutant in an empty database.
func openMutant(t *testing.T, m mutate.Mutant, url string) *Store {
	t.Helper()
	s := openStore(t, url, Config{SkipCheck: true})
	text, err := s.PrintSchema(0)
	must(t, err)
	texts := map[string]*string{"schedule": &s.sql.schedule, "enqueue": &s.sql.enqueue, "claim": &s.sql.claim, "keyed": &s.sql.keyed, "now": &s.sql.now}
	files := map[string]string{} // as they stand in text
	for _, e := range m.Edits {
		if in := texts[strings.TrimPrefix(e.File, "statement ")]; in != nil {
			*in = edited(t, *in, e)
			continue
		}
		if files[e.File] == "" {
			file, err := os.ReadFile("../" + e.File)
			must(t, err)
			files[e.File] = strings.TrimSpace(string(file))
		}
		whole := edited(t, files[e.File], e)
		text = edited(t, text, mutate.Edit{File: "the schema", Old: files[e.File], New: whole})
		files[e.File] = whole
	}
	_, err = connect(t, s).PgConn().Exec(t.Context(), text).ReadAll()
	must(t, err)
	return s
}
