package mutate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/proof/pages"
)

var (
	runMutants = flag.Bool("mutants", false, "build and run each mutant of table/")
	runGuards  = flag.Bool("guards", false, "run each guard that has no test in guards.txt yet, and write that")
	runAll     = flag.Bool("all", false, "with -guards: those that have a test too")
	only       = flag.String("only", "", "with -mutants or -guards: what the name of a mutant, or the file, object or text of a guard, has, as a regular expression")
	refit      = flag.Bool("refit", false, "correct what no longer fits the sources and has only one possible answer")
)

// root is the module's directory as seen from this one.
const root = "../../.."

// withTests is the table whose mutants package postgres tries with its tests.
const withTests = "sql"

func mutants(t *testing.T, table string) []Mutant {
	t.Helper()
	all, err := Read(".", table)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// chosen are the mutants to build and run.
func chosen(t *testing.T) []Mutant {
	t.Helper()
	if !*runMutants {
		t.Skip("not run: this takes minutes (make mutants)")
	}
	wanted := regexp.MustCompile(*only)
	return slices.DeleteFunc(mutants(t, "*"), func(m Mutant) bool { return m.ofTests() || !wanted.MatchString(m.Name) })
}

func (m Mutant) ofTests() bool { return filepath.Base(m.table) == withTests+".txt" }

var tests = map[string]pages.Names{} // by package

// testsOf are what a package's tests and their parts may be called.
func testsOf(pkg string) (pages.Names, error) {
	known, read := tests[pkg]
	if !read {
		var err error
		if known, err = pages.TestsOf(root, pkg); err != nil {
			return known, err
		}
		tests[pkg] = known
	}
	return known, nil
}

// lacks is the first part of a test's name that no test of its package has.
func lacks(known pages.Names, path string) string {
	for i, part := range strings.Split(path, "/") {
		if part != "*" && !known.Has(part) || i == 0 && !known.Funcs[part] {
			return part
		}
	}
	return ""
}

// TestEachMutantFitsItsSourceAndNamesItsTest reports all that do not.
func TestEachMutantFitsItsSourceAndNamesItsTest(t *testing.T) {
	if *refit {
		refitTables(t)
	}
	seen := map[string]bool{}
	for _, m := range mutants(t, "*") {
		if seen[m.Name] {
			t.Errorf("%s: two mutants are named %q", m.table, m.Name)
		}
		seen[m.Name] = true
		// Package postgres looks itself whether its statements fit.
		m.Edits = slices.DeleteFunc(m.Edits, func(e Edit) bool { return m.ofTests() && strings.HasPrefix(e.File, "statement ") })
		if _, err := m.Apply(root); err != nil {
			t.Error(err)
		}
		if m.ofTests() && !strings.HasPrefix(m.Path(), "TestNoTrapIsOpen/*/") {
			t.Errorf("%s:%d: mutant %q: TestEachTrapHasItsMend runs traps only", m.table, m.line, m.Name)
		}
		known, err := testsOf(m.Package())
		if err != nil {
			t.Errorf("%s:%d: mutant %q: %v", m.table, m.line, m.Name, err)
		} else if part := lacks(known, m.Path()); part != "" {
			t.Errorf("%s:%d: mutant %q: package %s has no test %q", m.table, m.line, m.Name, m.Package(), part)
		}
	}
}

// refitTables corrects the files, names and packages of tests that moved.
func refitTables(t *testing.T) {
	tables, err := filepath.Glob("table/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	packages := testPackages(t)
	for _, table := range tables {
		text, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		all, err := read(table, string(text))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for _, m := range all {
			if known, err := testsOf(m.Package()); err != nil || lacks(known, m.Path()) != "" {
				if now := slices.DeleteFunc(slices.Clone(packages), func(pkg string) bool {
					known, err := testsOf(pkg)
					return err != nil || lacks(known, m.Path()) != ""
				}); len(now) == 1 {
					lines[m.line-1] = "test " + now[0] + " " + m.Path()
				}
			}
		}
		for _, m := range all {
			for i, e := range m.Edits {
				now := refitted(e)
				if now.File != e.File {
					lines[e.line-1] = "in " + now.File
				}
				if now.Old != e.Old {
					refitLines(lines, e, now, i, m.Edits)
				}
			}
		}
		if err := os.WriteFile(table, []byte(strings.Join(lines, "\n")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// refitted is an edit as it fits the sources, if there is only one way.
func refitted(e Edit) Edit {
	text, err := os.ReadFile(filepath.Join(root, e.File))
	if err == nil && strings.Count(string(text), e.Old) == 1 || strings.HasPrefix(e.File, "statement ") {
		return e
	}
	if files := holders(root, e.Old); len(files) == 1 {
		e.File = files[0]
	} else if now, names := renamed(string(text), e.Old); now != "" {
		e.Old, e.New = now, rename(e.New, names)
	}
	return e
}

// refitLines puts an edit's new lines where the old ones stand. Names change no
// number of lines.
func refitLines(lines []string, was, now Edit, nth int, edits []Edit) {
	at := was.line // the line after the file's name
	for _, e := range edits[:nth] {
		if e.line == was.line {
			at += height(e)
		}
	}
	for _, part := range []struct{ sign, text string }{{"-", now.Old}, {"+", now.New}} {
		if part.text == "" && !strings.HasPrefix(lines[at], part.sign) {
			continue
		}
		for line := range strings.SplitSeq(part.text, "\n") {
			lines[at] = part.sign + line
			at++
		}
	}
}

// height is how many lines an edit takes in its table.
func height(e Edit) int {
	n := 1 + strings.Count(e.Old, "\n")
	if e.New != "" {
		n += 1 + strings.Count(e.New, "\n")
	}
	return n
}

// testPackages are the directories that have tests.
func testPackages(t *testing.T) (dirs []string) {
	t.Helper()
	for _, pattern := range []string{"", "*/", "*/*/", "*/*/*/", "*/*/*/*/"} {
		files, err := filepath.Glob(filepath.Join(root, pattern+"*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if dir, err := filepath.Rel(root, filepath.Dir(file)); err == nil && !strings.HasPrefix(dir, ".git") {
				dirs = append(dirs, filepath.ToSlash(dir))
			}
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// TestWithoutMutationsAllPass runs the tests of the mutants on the sources as
// they are.
func TestWithoutMutationsAllPass(t *testing.T) {
	of := map[string][]Mutant{}
	for _, m := range chosen(t) {
		of[m.Package()] = append(of[m.Package()], m)
	}
	for pkg, list := range of {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			p, err := build(t.Context(), root, pkg, t.TempDir(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var patterns []string
			for _, m := range list {
				patterns = append(patterns, pattern(m.Path()))
			}
			slices.Sort(patterns)
			o, err := p.run(t.Context(), strings.Join(slices.Compact(patterns), "|"), "")
			if err != nil || o.failed != "" {
				t.Fatalf("%s fails: %v\n%s", o.failed, err, o.output)
			}
			for _, m := range list {
				if !slices.ContainsFunc(o.passed, func(ran string) bool { return matches(m.Path(), ran) }) {
					t.Errorf("the test of mutant %q did not run: %s", m.Name, m.Test)
				}
			}
		})
	}
}

func TestEachMutantFails(t *testing.T) {
	for _, m := range chosen(t) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			said, err := m.try(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Log(said)
		})
	}
}

// try runs the mutant's test. It is an error when nothing fails, or something
// else.
func (m Mutant) try(t *testing.T) (said string, err error) {
	t.Helper()
	texts, err := m.Apply(root)
	if err != nil {
		return "", err
	}
	p, err := build(t.Context(), root, m.Package(), t.TempDir(), texts)
	if err != nil {
		return "", err
	}
	o, err := p.run(t.Context(), pattern(m.Path()), "")
	switch {
	case err != nil:
		return "", err
	case o.hung:
		return "caught: it hangs", nil
	case o.failed == "":
		return "", fmt.Errorf("it survives: nothing fails without that fix: %s", m.Test)
	case !slices.ContainsFunc(append(o.ran, o.failed), func(ran string) bool { return matches(m.Path(), ran) }):
		return "", fmt.Errorf("something else failed, %s:\n%s", o.failed, o.output)
	}
	return "caught:\n" + o.output, nil
}

func TestTheRunnerTellsTheCaughtFromTheSurvivors(t *testing.T) {
	const dir = "internal/proof/mutate/testdata/sample"
	for _, c := range []struct{ test, now, want string }{
		{"of two", "a < b", "caught:\n"},
		{"of equals", "a < b", "survives"},
		{"*", "a < b", "caught:\n"},
		{"of two", "a >= b", "survives"},
		{"of two", "a > c", "undefined: c"},
	} {
		m := Mutant{Name: c.now, Test: dir + " TestTheLargerIsReturned/" + c.test, Edits: []Edit{{File: dir + "/sample.go", Old: "a > b", New: c.now}}}
		if said, err := m.try(t); !strings.Contains(said+fmt.Sprint(err), c.want) {
			t.Errorf("%s, %s: got %s %v, want %s", c.now, c.test, said, err, c.want)
		}
	}
}

func TestATableIsReadAndEveryMisfitIsReported(t *testing.T) {
	all, err := read("t.txt", "# why\n\nmutant a\ntest engine TestA/*/b\nin x/y.go\n-one\n-\n+two\n-three\nin z.go\n-four\n\nmutant b\ntest . TestB\nin z.go\n-if s.held(now) {\n+if held || s.held(now) {\n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(all), "[{a engine TestA/*/b [{x/y.go one\n two 5} {x/y.go three  5} {z.go four  10}] t.txt 4} {b . TestB [{z.go if s.held(now) { if held || s.held(now) { 15}] t.txt 14}]"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if text, err := all[0].ApplyTo("x/y.go", "zero\none\nthree."); text != "zero\ntwo." || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	_, err = all[0].ApplyTo("x/y.go", "zero\none three threes three.")
	if want := "t.txt:5: mutant \"a\": this stands 0 times in x/y.go, want once:\n\tone\n\t\nthe nearest line is x/y.go:2: one three threes three.\n" +
		"t.txt:5: mutant \"a\": this stands 3 times in x/y.go, want once:\n\tthree\nthe nearest line is x/y.go:2: one three threes three."; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	for _, text := range []string{"-a\n", "mutant a\n", "mutant a\ntest . TestA\n-b\n", "mutant a\ntest . TestA\nin b\n+c\n", "mutant a\ntest . TestA\nin b\n", "what\n", "mutant a\nin b\n"} {
		if _, err := read("t.txt", text); err == nil {
			t.Errorf("no error for %q", text)
		}
	}
}

func TestNamesThatChangedAreFound(t *testing.T) {
	const old = "if s.held(now) {\n\treturn held"
	for text, want := range map[string]string{
		"x\nif s.claimed(now) {\n\treturn claimed\n}\nif s.held() {": "if s.claimed(now) {\n\treturn claimed",
		"if s.claimed(now) {\n\treturn other\n}":                     "", // one name has become two
		"if s.a(now) {\n\treturn a\n}\nif s.b(now) {\n\treturn b\n}": "", // two places
		"if s.held(now, then) {\n\treturn held\n}":                   "", // another text
	} {
		now, names := renamed(text, old)
		if now != want {
			t.Errorf("%q: got %q, want %q", text, now, want)
		}
		if want != "" && rename("if held && s.held(then)", names) != "if claimed && s.claimed(then)" {
			t.Errorf("%q: %v", text, names)
		}
	}
}
