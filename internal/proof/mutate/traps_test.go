package mutate

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/proof/pages"
)

// page lists all traps, for people.
const page = "docs/design/traps.md"

var (
	quoted = regexp.MustCompile("`([^`]+)`")
	listed = regexp.MustCompile("(sql|go|suite|model): (`[^`]+`(?:, `[^`]+`)*)")
)

// names are words that stand in sources.
type names = map[string]bool

// wordsIn are the string literals of a file.
func wordsIn(t *testing.T, file string) names {
	t.Helper()
	n, err := pages.NamesIn(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return n.Words
}

// TestThePageOfTrapsIsTrue makes sure that what the page names exists, and
// that no trap is without a check or a mutant.
func TestThePageOfTrapsIsTrue(t *testing.T) {
	checks := names{}
	for _, pkg := range []string{".", "api", "cron", "dashboard", "dashboard/link", "engine", "faktory", "gateway", "ops", "report", "store", "internal/cli", "internal/proof/chaos", "internal/redact", "internal/valid", "observe", "outside", "postgres", "seal", "sqlite", "storetest"} {
		known, err := testsOf(pkg)
		if err != nil {
			t.Fatal(err)
		}
		maps.Copy(checks, known.Funcs)
		maps.Copy(checks, known.Words)
	}
	known := map[string]names{
		"go": {}, "sql": {}, "model": wordsIn(t, "internal/proof/model/suite_test.go"), "suite": wordsIn(t, "storetest/mutants_test.go"),
	}
	for _, m := range mutants(t, "*") {
		kind := "go"
		if m.ofTests() {
			kind = "sql"
		}
		known[kind][m.Name] = true
	}
	shown := map[string]names{"go": {}, "sql": {}, "model": {}, "suite": {}}
	for _, row := range traps(t) {
		trap, check, fails := row[0], row[1], row[2]
		if strings.HasPrefix(check, "*not yet*") {
			continue
		}
		for _, q := range quoted.FindAllStringSubmatch(check, -1) {
			if !checks[q[1]] {
				t.Errorf("%s: there is no test %q", trap, q[1])
			}
		}
		n := 0
		for _, list := range listed.FindAllStringSubmatch(fails, -1) {
			for _, q := range quoted.FindAllStringSubmatch(list[2], -1) {
				if n++; !known[list[1]][q[1]] {
					t.Errorf("%s: there is no mutant of the kind %q named %q", trap, list[1], q[1])
				}
				shown[list[1]][q[1]] = true
			}
		}
		if len(quoted.FindAllString(check, -1)) == 0 || n == 0 || n != len(quoted.FindAllString(fails, -1)) {
			t.Errorf("%s: it needs a check and a mutant, and each mutant its kind: %s", trap, fails)
		}
	}
	for _, kind := range []string{"go", "sql"} {
		for _, name := range slices.Sorted(maps.Keys(known[kind])) {
			if !shown[kind][name] {
				t.Errorf("%s does not name the mutant %q", page, name)
			}
		}
	}
}

// traps are the rows of the page's tables: trap, check, and the mutants that it
// fails for.
func traps(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	rows := pages.Rows(string(text), "trap")
	for _, row := range rows {
		if len(row) != 3 {
			t.Fatalf("%d cells, want 3: %s", len(row), strings.Join(row, " | "))
		}
	}
	if len(rows) < 40 {
		t.Errorf("%s has only %d traps", page, len(rows))
	}
	return rows
}
