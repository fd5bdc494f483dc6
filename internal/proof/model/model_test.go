package model

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

var (
	searchAll = flag.Bool("model", false, "have Spin search the model, instead of only reading it")
	thorough  = flag.Bool("thorough", false, "with -model: also search what takes minutes")
	stories   = flag.Bool("stories", false, "with -model: tell the shortest way to break each mutant")
)

// TestMain ends with a table of what was searched.
func TestMain(m *testing.M) {
	flag.Parse()
	began := time.Now()
	code := m.Run()
	if len(results) > 0 {
		for _, list := range [][]search{configurations, secondLines, mutants} {
			for _, s := range list {
				if r, ok := results[s.name]; ok {
					fmt.Printf("%-48s %-20s %9s states, depth %3s, %5.1f s\n", s.name, r.verdict(), r.states, r.depth, r.took.Seconds())
				}
			}
		}
		fmt.Printf("%d searches, %.0f s\n", len(results), time.Since(began).Seconds())
	}
	os.Exit(code)
}

var (
	resultsMu sync.Mutex
	results   = map[string]result{}
)

// TestModelIsWellFormed has Spin read every configuration, where there is Spin.
func TestModelIsWellFormed(t *testing.T) {
	if *searchAll {
		t.Skip("each search reads its configuration itself")
	}
	if _, err := exec.LookPath("spin"); err != nil {
		t.Skip("spin is not installed: the model was not read (make model installs it)")
	}
	for _, list := range [][]search{configurations, secondLines, mutants} {
		for _, s := range list {
			generate(t, t.TempDir(), s)
		}
	}
}

// TestEachPropertyHasAMutant guards the suite itself: a property that nothing
// breaks may be one that cannot be broken.
func TestEachPropertyHasAMutant(t *testing.T) {
	broken, used := map[string]bool{}, map[string]bool{} // with the names of the models before them
	for _, list := range [][]search{secondLines, mutants} {
		for _, s := range list {
			broken[s.source()+s.want] = true
			for flag := range strings.FieldsSeq(s.flags) {
				used[s.source()+flag] = true
			}
		}
	}
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`assert\(!(\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			if !broken[source+match[1]] {
				t.Errorf("%s: no mutant breaks %q", source, match[1])
			}
		}
		for _, match := range regexp.MustCompile(`MUTANT_\w+`).FindAllString(string(text), -1) {
			if !used[source+match] {
				t.Errorf("%s: %s is in no search", source, match)
			}
		}
	}
}

func TestModelHolds(t *testing.T) {
	needTools(t)
	for _, list := range [][]search{configurations, secondLines} {
		for _, s := range list {
			t.Run(s.name, func(t *testing.T) {
				if s.long && !*thorough {
					t.Skip("takes minutes: only with -thorough")
				}
				t.Parallel()
				dir := t.TempDir()
				r := run(t, dir, s, "-O1", "-DSAFETY", "-DCOLLAPSE")
				if r.broken != "" {
					t.Errorf("%s: %s is broken:\n%s", s.what, r.broken, story(t, dir, s))
				}
			})
		}
	}
}

func TestMutantsFail(t *testing.T) {
	needTools(t)
	for _, s := range mutants {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s.flags += " BREADTH"
			r := run(t, dir, s, "-O0", "-DSAFETY", "-DBFS")
			switch {
			case r.broken == "":
				t.Errorf("nothing is broken: either the model does not see it, or it does not matter")
			case r.broken != s.want:
				t.Errorf("breaks %s, want %s:\n%s", r.broken, s.want, story(t, dir, s))
			case *stories:
				t.Log("\n" + story(t, dir, s))
			}
		})
	}
}

func needTools(t *testing.T) {
	t.Helper()
	if !*searchAll {
		t.Skip("not searched: this takes minutes and needs spin and gcc (make model)")
	}
	for _, tool := range []string{"spin", "gcc"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is not installed: apt-get install spin gcc, or brew install spin", tool)
		}
	}
}

// result is what Spin says of a search.
type result struct {
	broken        string // a property, or "the end of a process"; empty when nothing is
	states, depth string
	took          time.Duration
}

func (r result) verdict() string {
	if r.broken != "" {
		return "breaks " + r.broken
	}
	return "errors: 0"
}

var (
	brokenText = regexp.MustCompile(`pan:1: (?:assertion violated +!\((\w+)\)|(.*) \(at depth)`)
	statesText = regexp.MustCompile(`(\S+) states, stored`)
	depthText  = regexp.MustCompile(`depth reached (\d+), errors: (\d+)`)
	cutText    = regexp.MustCompile(`(?i)max search depth too small|search not completed|out of memory|reached -DMEMLIM|error:.*`)
)

// run has Spin make a program of the model, and runs it.
func run(t *testing.T, dir string, s search, compile ...string) result {
	t.Helper()
	generate(t, dir, s)
	// Two of them at a time stay below 4 GB.
	args := append(compile, "-w", "-DMEMLIM=1800", "-o", "pan", "pan.c")
	if *thorough {
		args = append(compile, "-w", "-DMEMLIM=12000", "-o", "pan", "pan.c")
	}
	command(t, dir, "gcc", args...)
	began := time.Now()
	out := command(t, dir, "./pan", "-m20000", "-w20")
	r := result{took: time.Since(began)}
	depth, states := depthText.FindStringSubmatch(out), statesText.FindStringSubmatch(out)
	if depth == nil || states == nil {
		t.Fatalf("the search did not end:\n%s", out)
	}
	r.depth, r.states = depth[1], states[1]
	if found := brokenText.FindStringSubmatch(out); found != nil {
		r.broken = found[1] + found[2]
	}
	if (r.broken == "") != (depth[2] == "0") || r.broken == "" && cutText.MatchString(out) {
		t.Fatalf("the search was not complete:\n%s", out)
	}
	resultsMu.Lock()
	defer resultsMu.Unlock()
	results[s.name] = r
	return r
}

func generate(t *testing.T, dir string, s search) {
	t.Helper()
	source := s.source()
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, source), text, 0o644); err != nil {
		t.Fatal(err)
	}
	command(t, dir, "spin", append(definitions(s), "-a", source)...)
}

func definitions(s search) []string {
	var list []string
	for flag := range strings.FieldsSeq(s.flags) {
		list = append(list, "-D"+flag)
	}
	return list
}

// story replays the way to an error, in the words that the model prints.
func story(t *testing.T, dir string, s search) string {
	t.Helper()
	out := command(t, dir, "spin", append(definitions(s), "-t", s.source())...)
	var lines []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.Contains(line, "text of failed assertion") {
			break
		} else if !strings.HasPrefix(line, "spin:") && !strings.HasPrefix(line, "#processes") {
			lines = append(lines, "    "+line)
		}
	}
	return strings.Join(lines, "\n")
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}
