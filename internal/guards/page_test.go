package guards

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/pages"
)

// page lists all guards, for people; it is also what is remembered of them.
const page = "../../docs/design/guards.md"

const (
	survives = "*nobody notices*"
	unlikely = "*not the likeliest; the others are not yet asked*"
	notYet   = "*not yet run*"
	spread   = "*put together from several texts, and not taken out*"
)

var stores = []string{"postgres", "sqlite"}

const intro = `# The guards of the SQL

Each condition, lock, conflict clause and constraint of the two stores' SQL is taken out by itself, and a test notices: its *killer*. This page is written by
` + "`make guards`" + `, which runs what has no killer here yet (` + "`ARGS=-all`" + ` runs everything again); a test of internal/guards fails when it does not list exactly what is in
the sources. Taken out means: a condition that must hold is always true; one of several alternatives, written *where … or*, is never; what a function does under an *if*
is not done; a lock is not taken; what makes rows unique or refuses them is gone. Tests that only compare the schema with what is written down are not asked.

A killer that is *refused* shows only that the statement is none without the clause: what it promises was not tried; of those that were
found before November 2026 that is not said. Not listed are the conditions of indexes that are not
unique, which decide what is fast and not what is true, and where a loop ends.

`

// readPage is what the page says of each guard.
func readPage(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	known := map[string]string{}
	for section := range strings.SplitSeq(string(text), "\n## ") {
		file, rest, _ := strings.Cut(section, "\n")
		for _, row := range pages.Rows(rest, "in") {
			known[file+" "+row[0]+" "+strings.Trim(row[1], "`")] = strings.ReplaceAll(row[2], "`", "")
		}
	}
	return known
}

// render is the page.
func render(guards []Guard, known map[string]string) string {
	var b strings.Builder
	file := ""
	killed, exempt, none, unsure, parts, open := 0, 0, 0, 0, 0, 0
	for _, g := range guards {
		if g.File != file {
			file = g.File
			fmt.Fprintf(&b, "\n## %s\n\n| in | guard | killer |\n|---|---|---|\n", file)
		}
		said := known[g.Key()]
		switch why := exemptFor(g); {
		case why != "":
			said = "none: " + why
			exempt++
		case len(g.edits) == 0:
			said = spread
			parts++
		case strings.HasPrefix(said, "Test"):
			killer, note, noted := strings.Cut(said, " (")
			if said = "`" + killer + "`"; noted {
				said += " (" + note
			}
			killed++
		case said == survives:
			none++
		case said == unlikely:
			unsure++
		default:
			said = notYet
			open++
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s |\n", g.In, strings.ReplaceAll(g.Text, "|", `\|`), strings.ReplaceAll(said, "|", `\|`))
	}
	counts := fmt.Sprintf("%d guards: %d have a killer, %d need none, which is said there; %d are not yet run, %d are put together from several texts, of %d only the likeliest tests were asked, in vain, and of %d nobody notices that they are gone.\n",
		len(guards), killed, exempt, open, parts, unsure, none)
	return intro + counts + b.String()
}

func writePage(t *testing.T, guards []Guard, known map[string]string) {
	t.Helper()
	if err := os.WriteFile(page, []byte(render(guards, known)), 0o644); err != nil {
		t.Error(err)
	}
}

// TestThePageListsWhatIsInTheSources makes sure that no guard is added, changed
// or taken out without a look at who notices.
func TestThePageListsWhatIsInTheSources(t *testing.T) {
	var all []Guard
	for _, store := range stores {
		guards, err := Find("../..", store)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, guards...)
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	known := readPage(t)
	listed := map[string]bool{}
	for _, g := range all {
		listed[g.Key()] = true
		if known[g.Key()] == "" {
			t.Errorf("%s: %s does not list it; run make guards", g.Key(), filepath.Base(page))
		}
	}
	for key := range known {
		if !listed[key] {
			t.Errorf("%s: it is listed and is not there; run make guards", key)
		}
	}
	if want := render(all, known); !t.Failed() && string(text) != want {
		t.Errorf("%s is not as it is written; run make guards", filepath.Base(page))
	}
}

// TestEachKillerIsATest makes sure that what the page names exists.
func TestEachKillerIsATest(t *testing.T) {
	tests := map[string]pages.Names{}
	for _, store := range stores {
		var err error
		if tests[store], err = pages.TestsOf("../..", store); err != nil {
			t.Fatal(err)
		}
	}
	for key, killer := range readPage(t) {
		store, _, _ := strings.Cut(key, "/")
		if !strings.HasPrefix(killer, "Test") {
			continue
		}
		killer, _, _ = strings.Cut(killer, " (")
		for part := range strings.SplitSeq(killer, "/") {
			if part != "*" && !tests[store].Has(part) {
				t.Errorf("%s: package %s has no test %q", key, store, part)
			}
		}
	}
}

// TestEachExemptionIsOfAGuard makes sure that none is left over.
func TestEachExemptionIsOfAGuard(t *testing.T) {
	used := map[string]bool{}
	for _, store := range stores {
		guards, err := Find("../..", store)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range guards {
			if exemptFor(g) != "" {
				used[g.Key()] = true
			}
		}
	}
	for _, e := range exempt {
		if !used[e.key] {
			t.Errorf("there is no guard %q", e.key)
		}
	}
}
