package mutate

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stint-go/stint/internal/proof/pages"
)

// list is the file that says of each guard which test fails without it.
const list = "guards.txt"

// What list says of guards that no test is named for. Those that need none say
// why, after "none: "; people write that, and the rest is written by make guards.
const (
	needsNone = "none: "
	survives  = "survives"
	notRun    = "not run"
	several   = "not run: it is put together from several texts"
)

const intro = `# Each condition, lock, conflict clause and constraint in the SQL of the two stores, with a test
# that fails without it. Written by make guards, which runs those that have no test here
# (ARGS=-all: all of them). Written by people: "none: " and why a guard needs no test.
#
# Below its file: the object, constant or function that it stands in; the guard; the test, with *
# for a part that any may have. Without it means: a condition that must hold is always true; one of
# several alternatives, "where … or", is never; what a function does under an "if" is not done; a
# lock is not taken; what makes rows unique or refuses them is gone. Tests that only compare the
# schema with what is written down are not asked.
#
# (refused): the statement is none without the clause, so what it promises was not tried.
# (hangs): the test does not fail but hangs.
# Not here: conditions of indexes that are not unique, which decide what is fast and not what is
# true, and where a loop ends.
`

var stores = []string{"postgres", "sqlite"}

func findAll(t *testing.T) (all []Guard) {
	t.Helper()
	for _, store := range stores {
		guards, err := Find(root, store)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, guards...)
	}
	return all
}

// readList is what list says of each guard, by its key.
func readList(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	file := ""
	for i, line := range strings.Split(string(text), "\n") {
		cells := strings.Split(line, "\t")
		switch {
		case line == "" || line[0] == '#':
		case len(cells) == 1:
			file = line
		case len(cells) == 4 && cells[0] == "":
			said[Guard{File: file, In: strings.TrimPrefix(cells[1], "-"), Text: cells[2]}.Key()] = cells[3]
		default:
			t.Fatalf("%s:%d: want a file, or a tab and three cells: %s", list, i+1, line)
		}
	}
	return said
}

func render(all []Guard, said map[string]string) string {
	var b strings.Builder
	b.WriteString(intro)
	file := ""
	for _, g := range all {
		if g.File != file {
			file = g.File
			fmt.Fprintf(&b, "\n%s\n", file)
		}
		what := said[g.Key()]
		if what == "" {
			what = notRun
		}
		if len(g.edits) == 0 && !strings.HasPrefix(what, needsNone) {
			what = several
		}
		in := g.In
		if in == "" {
			in = "-"
		}
		fmt.Fprintf(&b, "\t%s\t%s\t%s\n", in, g.Text, what)
	}
	return b.String()
}

func writeList(t *testing.T, all []Guard, said map[string]string) {
	t.Helper()
	if err := os.WriteFile(list, []byte(render(all, said)), 0o644); err != nil {
		t.Error(err)
	}
}

// TestTheListHasEachGuardOfTheSources notices a guard that is new, changed or gone, before
// anybody knows of a test for it, and tests that are gone.
func TestTheListHasEachGuardOfTheSources(t *testing.T) {
	all, said := findAll(t), readList(t)
	if *refit {
		refitList(all, said)
		writeList(t, all, said)
		said = readList(t)
	}
	there := map[string]bool{}
	for _, g := range all {
		there[g.Key()] = true
		what, store := said[g.Key()], g.store()
		known, err := testsOf(store)
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case what == "":
			t.Errorf("%s: %s does not have it; run make guards, or after a move go test ./internal/proof/mutate -refit", g.Key(), list)
		case what == notRun:
			t.Logf("%s: it was not run; run make guards", g.Key())
		case what == survives:
			t.Errorf("%s: no test fails without it; it needs one, or \"%s\" and why", g.Key(), needsNone)
		case g.blindTo(what):
			t.Errorf("%s: %s notices any change of the schema; run make guards", g.Key(), killerOf(what))
		case strings.HasPrefix(what, "Test"):
			if part := lacks(known, killerOf(what)); part != "" {
				t.Errorf("%s: package %s has no test %q", g.Key(), store, part)
			}
		case what != several && !strings.HasPrefix(what, needsNone):
			t.Errorf("%s: neither a test nor why it needs none: %s", g.Key(), what)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(said)) {
		if !there[key] {
			t.Errorf("%s: it is in %s and not in the sources; run make guards, or after a move go test ./internal/proof/mutate -refit", key, list)
		}
	}
	if text, err := os.ReadFile(list); !t.Failed() && (err != nil || string(text) != render(all, said)) {
		t.Errorf("%s is not as it is written; run make guards (%v)", list, err)
	}
}

// refitList gives guards that moved what was said of them where they were: the
// same text, in an object of the same name or in the same file, or the only one
// of the store.
func refitList(all []Guard, said map[string]string) {
	lost := maps.Clone(said)
	for _, g := range all {
		delete(lost, g.Key())
	}
	for _, same := range []func(g Guard, file, in string) bool{
		func(g Guard, file, in string) bool { return g.In == in },
		func(g Guard, file, in string) bool { return g.File == file },
		func(g Guard, file, in string) bool { return true },
	} {
		for _, g := range all {
			if said[g.Key()] != "" {
				continue
			}
			var fit []string
			for key := range lost {
				file, rest, _ := strings.Cut(key, " ")
				in, text, _ := strings.Cut(rest, " ")
				if text == g.Text && strings.HasPrefix(file, g.store()+"/") && same(g, file, in) {
					fit = append(fit, key)
				}
			}
			if len(fit) == 1 {
				said[g.Key()] = lost[fit[0]]
				delete(lost, fit[0])
			}
		}
	}
}

// killerOf is the test that list names.
func killerOf(what string) string { test, _, _ := strings.Cut(what, " ("); return test }

func (g Guard) store() string { s, _, _ := strings.Cut(g.File, "/"); return s }

// blind are tests that compare texts with what is written down. They notice
// each change of the schema, and so prove nothing.
const blind = "TestTheManifest|TestEachTrapHasItsMend|TestInstallingAndUpgradingLeadToTheSameSchema"

// blindToSchema are those that find a schema which is not the one written down.
const blindToSchema = "|TestSettingsOfTheDatabaseAreNoDamage|TestARoleThatMayNotSeeAll|TestAHealthy|TestASchemaThatWasSound|TestWhatIsMissingIsMade|TestWhatSomebodyChanged|TestWhatCannotBeLookedAt|TestConformance/.*/Doctor|TestConformance/.*/.*/Doctor"

func (g Guard) skips() string {
	if strings.HasSuffix(g.File, ".sql") {
		return blind + blindToSchema
	}
	return blind
}

// blindTo reports whether a test that list names proves nothing of this guard.
func (g Guard) blindTo(test string) bool {
	return regexp.MustCompile("^(" + g.skips() + ")").MatchString(test)
}

// rounds are patterns of tests to ask one after the other, the likeliest first:
// the test that is known, those that notice guards beside it, those that notice
// guards of its file, and all.
func (g Guard) rounds(all []Guard, said map[string]string) (patterns []string) {
	asked := map[string]bool{}
	for _, same := range []func(o Guard) bool{
		func(o Guard) bool { return o.Key() == g.Key() },
		func(o Guard) bool { return o.File == g.File && o.In == g.In },
		func(o Guard) bool { return o.File == g.File },
	} {
		var tests []string
		for _, o := range all {
			if what := said[o.Key()]; same(o) && strings.HasPrefix(what, "Test") && !asked[killerOf(what)] {
				asked[killerOf(what)] = true
				tests = append(tests, pattern(killerOf(what)))
			}
		}
		if len(tests) > 0 {
			patterns = append(patterns, strings.Join(tests, "|"))
		}
	}
	if g.store() == "postgres" {
		return append(patterns, "TestNoTrapIsOpen", "TestConformance/.*/plain/", "Test[^N]")
	}
	return append(patterns, "Test")
}

// shown is a test as list names it: with * for parts that are made up as it runs.
func shown(known pages.Names, test string) string {
	words := map[string]string{}
	for word := range known.Words {
		words[rewritten(word)] = word
	}
	parts := strings.Split(test, "/")
	for i, part := range parts {
		switch word, ok := words[part]; {
		case ok:
			parts[i] = word
		case !known.Funcs[part]:
			parts[i] = "*"
		}
	}
	return strings.Join(parts, "/")
}

// refused matches a failure that shows only that the clause is needed for the
// statement to be one at all.
var refused = regexp.MustCompile(`SQLSTATE 42(P10|601|703|P01|803|804|883)|SQL logic error`)

// kill finds a test that fails without a guard, twice.
func (g Guard) kill(t *testing.T, known pages.Names, rounds []string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, g.File))
	if err != nil {
		return "", err
	}
	p, err := build(t.Context(), root, g.store(), t.TempDir(), map[string]string{g.File: g.without(string(text))})
	if err != nil {
		return "", err
	}
	skip := g.skips()
	for _, tests := range rounds {
		for range 3 {
			first, err := p.run(t.Context(), tests, skip, "-test.short", "-test.parallel=4")
			if err != nil {
				return "", err
			}
			if first.failed == "" {
				break
			}
			killer := shown(known, first.failed)
			again, err := p.run(t.Context(), pattern(killer), "", "-test.short", "-test.parallel=4")
			switch {
			case err != nil:
				return "", err
			case again.failed == "":
				t.Logf("it fails once and passes then: %s", first.failed)
				skip += "|" + pattern(killer)
				continue
			case again.hung:
				killer += " (hangs)"
			case refused.MatchString(again.output):
				killer += " (refused)"
			}
			return killer, nil
		}
	}
	return survives, nil
}

// TestAChangeOfNothingIsNoticedByNoTest finds tests that are to stand in blindToSchema.
func TestAChangeOfNothingIsNoticedByNoTest(t *testing.T) {
	if !*runGuards {
		t.Skip("not run: this takes long (make guards)")
	}
	const file, body = "postgres/schema/0001_2_functions.sql", "as $$\n"
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), body, body+"-- nothing\n", 1)
	if changed == string(text) {
		t.Fatal("no function begins as this test knows it")
	}
	p, err := build(t.Context(), root, "postgres", t.TempDir(), map[string]string{file: changed})
	if err != nil {
		t.Fatal(err)
	}
	got, err := p.run(t.Context(), "Test", Guard{File: file}.skips(), "-test.short", "-test.parallel=4")
	if err != nil || got.failed != "" {
		t.Errorf("it fails though nothing is missing: %s, %v", got.failed, err)
	}
}

// TestEachGuardHasItsKiller takes guards out and writes down which test fails.
func TestEachGuardHasItsKiller(t *testing.T) {
	if !*runGuards {
		t.Skip("not run: this takes long (make guards)")
	}
	wanted := regexp.MustCompile(*only)
	all, said := findAll(t), readList(t)
	writeList(t, all, said)
	var mu sync.Mutex // over said and the file
	for _, g := range all {
		what := said[g.Key()]
		if len(g.edits) == 0 || strings.HasPrefix(what, needsNone) || strings.HasPrefix(what, "Test") && !*runAll || !wanted.MatchString(g.Key()) {
			continue
		}
		t.Run(g.Key(), func(t *testing.T) {
			t.Parallel()
			mu.Lock()
			known, err := testsOf(g.store())
			rounds := g.rounds(all, said)
			mu.Unlock()
			if err != nil {
				t.Fatal(err)
			}
			killer, err := g.kill(t, known, rounds)
			if err != nil {
				t.Fatal(err)
			}
			if killer == survives {
				t.Errorf("no test fails without it")
			}
			t.Log(killer)
			mu.Lock()
			defer mu.Unlock()
			said[g.Key()] = killer
			writeList(t, all, said)
		})
	}
}
