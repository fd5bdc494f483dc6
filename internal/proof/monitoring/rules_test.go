package monitoring

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// rule is an alert of alerts.yml.
type rule struct {
	name, expr string
	text       string // all of it
}

var (
	alert   = regexp.MustCompile(`(?m)^      - alert: (\w+)\n((?:        .*\n)+)`)
	expr    = regexp.MustCompile(`(?m)^        expr: (.*\n(?:          .*\n)*)`)
	ofLabel = regexp.MustCompile(`\$labels\.(\w+)`)
)

func rulesText(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readRules finds the rules by their layout; that it is YAML is for Prometheus to say.
func readRules(t *testing.T) (rules []rule) {
	t.Helper()
	text := rulesText(t, "alerts.yml")
	for _, found := range alert.FindAllStringSubmatch(text, -1) {
		e := expr.FindStringSubmatch(found[2])
		if e == nil {
			t.Fatalf("%s has no expression", found[1])
		}
		one := strings.Join(strings.Fields(strings.TrimPrefix(e[1], ">-")), " ")
		rules = append(rules, rule{name: found[1], expr: one, text: found[2]})
	}
	if n := strings.Count(text, "- alert:"); n == 0 || len(rules) != n {
		t.Fatalf("%d of %d rules could be read", len(rules), n)
	}
	return rules
}

func TestEveryAlertSaysWhatToDo(t *testing.T) {
	for _, r := range readRules(t) {
		for _, part := range []string{"severity: ", "summary: '", "description: '", "runbook_url: 'https://github.com/stint-go/stint/blob/main/docs/runbooks.md#" + strings.ToLower(r.name) + "'"} {
			if !strings.Contains(r.text, part) {
				t.Errorf("%s has no %s", r.name, part)
			}
		}
		known := labelsOfResult(t, r.expr)
		for _, label := range ofLabel.FindAllStringSubmatch(r.text, -1) {
			if !slices.Contains(known, label[1]) {
				t.Errorf("%s names the label %s, which it does not have", r.name, label[1])
			}
		}
	}
}

// The page that alerts link to has a section for each, which says all that somebody needs who was
// woken by it, and for no other.
func TestEveryAlertHasARunbook(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(docs, "..", "runbooks.md"))
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, part := range strings.Split(string(text), "\n### ")[1:] {
		name, said, _ := strings.Cut(part, "\n")
		sections[name] = said
	}
	for _, r := range readRules(t) {
		for _, part := range []string{"**Means**: ", "**Look**: ", "**Do**: "} {
			if !strings.Contains(sections[r.name], "\n"+part) {
				t.Errorf("the runbook of %s has no %s", r.name, part)
			}
		}
		delete(sections, r.name)
	}
	for name := range sections {
		t.Errorf("there is no alert %s", name)
	}
}

func TestEveryAlertIsSeenToFire(t *testing.T) {
	tests := rulesText(t, "alerts_test.yml")
	for _, r := range readRules(t) {
		if !strings.Contains(tests, `alertname="`+r.name+`"`) {
			t.Errorf("no test has %s fire", r.name)
		}
	}
}

func TestTheRulesPassPromtoolAndTheirTests(t *testing.T) {
	promtool := installed(t, "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		rulesText(t, args[2]) // so that the cache of results knows of it
		cmd := exec.CommandContext(t.Context(), promtool, args...)
		cmd.Dir = docs
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// installed is where a program of Prometheus is: on the path, or where make
// prometheus puts it.
func installed(t *testing.T, program string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	path, err := filepath.Abs(filepath.Join("../../../bin/prometheus/usr/bin", program))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%s is not installed: make prometheus does that", program)
	}
	return path
}
