package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint/internal/pages"
)

var runAll = flag.Bool("mutants", false, "build and run each mutant, instead of only looking whether it fits")

// root is the module's directory as seen from this one.
const root = "../.."

// patience is how long the test of a mutant may take; the slowest takes a few
// seconds. One that hangs has failed.
const patience = "60s"

// mutant is a source with the mend of a trap taken out, and the test that must
// fail for it.
type mutant struct {
	name string // as docs/design/traps.md names it
	file string // below the root of the module
	old  string // stands in the file once
	new  string
	test string // the package and the test's name, with "*" for a part that any may have: "engine TestStop/*/drained"
}

func (m mutant) pkg() string { return strings.Fields(m.test)[0] }

// path is the test's name, as it is passed to t.Run part by part.
func (m mutant) path() []string {
	_, name, _ := strings.Cut(m.test, " ")
	return strings.Split(name, "/")
}

// pattern is what go test calls the test.
func (m mutant) pattern() string {
	parts := m.path()
	for i, part := range parts {
		if parts[i] = ".*"; part != "*" {
			parts[i] = "^" + regexp.QuoteMeta(strings.ReplaceAll(part, " ", "_")) + "$"
		}
	}
	return strings.Join(parts, "/")
}

// source is the mutated file.
func (m mutant) source() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("%s has %d times: %s", m.file, n, m.old)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

func TestEachMutantFitsItsSourceAndNamesItsTest(t *testing.T) {
	known := map[string]pages.Names{}
	seen := map[string]bool{}
	for _, m := range mutants {
		if seen[m.name] {
			t.Errorf("two mutants are named %q", m.name)
		}
		seen[m.name] = true
		text, err := m.source()
		if err == nil && strings.HasSuffix(m.file, ".go") {
			_, err = parser.ParseFile(token.NewFileSet(), m.file, text, 0)
		}
		if err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if known[m.pkg()].Funcs == nil {
			known[m.pkg()] = testsOf(t, m.pkg())
		}
		for i, part := range m.path() {
			if part != "*" && !known[m.pkg()].Has(part) || i == 0 && !strings.HasPrefix(part, "Test") {
				t.Errorf("%s: package %s has no test %q", m.name, m.pkg(), part)
			}
		}
	}
}

// TestWithoutMutationsAllPass runs what the mutants' tests are in the sources as
// they are, one package at a time.
func TestWithoutMutationsAllPass(t *testing.T) {
	needFlag(t)
	patterns := map[string][]string{}
	for _, m := range mutants {
		if p := m.pattern(); !slices.Contains(patterns[m.pkg()], p) {
			patterns[m.pkg()] = append(patterns[m.pkg()], p)
		}
	}
	for pkg, list := range patterns {
		t.Run(pkg, func(t *testing.T) {
			t.Parallel()
			r := run(t, pkg, strings.Join(list, "|"))
			if r.err != nil {
				t.Fatalf("%v\n%s", r.err, r.output)
			}
			for _, m := range mutants {
				depth := len(m.path())
				if m.pkg() == pkg && !slices.ContainsFunc(r.passed, func(name string) bool { return len(strings.Split(name, "/")) == depth && m.matches(name) }) {
					t.Errorf("the test of %q did not run: %s", m.name, m.test)
				}
			}
		})
	}
}

// matches tells whether a test that ran is the mutant's.
func (m mutant) matches(name string) bool {
	parts := strings.Split(name, "/")
	for i, part := range strings.Split(m.pattern(), "/") {
		if i >= len(parts) || !regexp.MustCompile(part).MatchString(parts[i]) {
			return false
		}
	}
	return true
}

func TestEachMutantFails(t *testing.T) {
	needFlag(t)
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			text, err := m.source()
			if err != nil {
				t.Fatal(err)
			}
			r := run(t, m.pkg(), m.pattern(), "-failfast", "-overlay="+overlay(t, m.file, text))
			switch {
			case r.unbuilt:
				t.Errorf("it cannot be built:\n%s", r.output)
			case r.err == nil:
				t.Errorf("nothing fails without that mend: %s", m.test)
			case r.hung:
				t.Log("as it should be: it hangs")
			case !slices.ContainsFunc(r.failed, m.matches):
				t.Errorf("something else failed:\n%s", r.output)
			default:
				t.Logf("as it should be:\n%s", r.output)
			}
		})
	}
}

func needFlag(t *testing.T) {
	t.Helper()
	if !*runAll {
		t.Skip("not run: this takes minutes (make mutants)")
	}
}

// overlay tells the go command to read a text instead of a file.
func overlay(t *testing.T, file string, text []byte) string {
	t.Helper()
	dir := t.TempDir()
	instead, list := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	path, err := filepath.Abs(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: instead}})
	if err := errors.Join(err, os.WriteFile(instead, text, 0o644), os.WriteFile(list, replace, 0o644)); err != nil {
		t.Fatal(err)
	}
	return list
}

// result is what came of a run of go test.
type result struct {
	err            error // it did not pass
	unbuilt, hung  bool
	passed, failed []string // tests
	output         string
}

// run runs tests of a package. Without the race detector, which would only
// make it slower, and without vet, which finds more in mutants than it should.
func run(t *testing.T, pkg, pattern string, args ...string) result {
	t.Helper()
	args = append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=" + patience, "-run=" + pattern}, args...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "./"+pkg)...)
	cmd.Dir = root
	out, err := cmd.Output()
	r := result{err: err}
	var text strings.Builder
	for line := range bytes.Lines(out) {
		var event struct{ Action, Test, Output string }
		if json.Unmarshal(line, &event) != nil {
			text.Write(line) // not of a test
			continue
		}
		switch event.Action {
		case "build-fail":
			r.unbuilt = true
		case "pass":
			r.passed = append(r.passed, event.Test)
		case "fail":
			r.failed = append(r.failed, event.Test)
		}
		r.hung = r.hung || strings.HasPrefix(event.Output, "panic: test timed out after")
		if !strings.HasPrefix(event.Output, "=== ") {
			text.WriteString(event.Output)
		}
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		text.Write(exit.Stderr)
	}
	r.output = shortened(text.String())
	return r
}

// shortened cuts what tests say when they fail in ways that nobody foresaw.
func shortened(text string) string {
	const wide, long = 300, 40
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > long {
		lines = append(lines[:long], fmt.Sprintf("and %d lines more", len(lines)-long))
	}
	for i, line := range lines {
		if len(line) > wide {
			lines[i] = line[:wide] + "..."
		}
	}
	return strings.Join(lines, "\n")
}
