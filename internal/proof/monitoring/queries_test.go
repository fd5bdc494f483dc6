package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// docs is where the dashboard and the rules are.
const docs = "../../../docs/monitoring"

// Each query asks for metrics that there are, by labels that they have. A name
// that is misspelled would be an empty panel, or an alert that never fires.
func TestEveryQueryAsksForWhatIsExported(t *testing.T) {
	all, source := exported(t, watched(t)), sources(t, "../../../engine")
	check := func(t *testing.T, query string) {
		t.Helper()
		q, err := Read(query)
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, name := range q.Metrics {
			if all[name].Name == "" {
				t.Errorf("nothing exports %s", name)
			}
			labels = slices.Concat(labels, all[name].Labels, ofTarget)
		}
		for _, label := range q.Labels {
			if !slices.Contains(labels, label) {
				t.Errorf("it groups by %s, which none of its metrics has", label)
			}
		}
		for _, m := range q.Matchers {
			if !slices.Contains(slices.Concat(all[m.Metric].Labels, ofTarget), m.Label) {
				t.Errorf("%s has no label %s", m.Metric, m.Label)
			}
			for value := range strings.SplitSeq(m.Value, "|") {
				if !occurs(m.Label, value, source) {
					t.Errorf("%s is never %q", m.Label, value)
				}
			}
		}
	}
	board := readDashboard(t)
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			t.Run(p.Title+" "+target.RefID, func(t *testing.T) { check(t, target.Expr) })
		}
	}
	for _, a := range board.Annotations.List {
		t.Run("annotation "+a.Name, func(t *testing.T) { check(t, a.Expr) })
	}
	for _, r := range readRules(t) {
		t.Run(r.name, func(t *testing.T) { check(t, r.expr) })
	}
	for _, v := range board.Templating.List {
		if v.Type != "query" {
			continue
		}
		t.Run("variable "+v.Name, func(t *testing.T) {
			parts := labelValues.FindStringSubmatch(v.Query.Query)
			if parts == nil {
				t.Fatalf("%q does not ask for the values of a label", v.Query.Query)
			}
			check(t, "sum by ("+parts[2]+") ("+parts[1]+")")
		})
	}
}

// ofTarget are labels that Prometheus gives to whatever it scrapes.
var ofTarget = []string{"job", "instance"}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

var aggregation = regexp.MustCompile(`\b(sum|max|min|avg|count)\b`)

// labelsOfResult are those by which a query groups, or else those of the target.
func labelsOfResult(t *testing.T, query string) []string {
	t.Helper()
	q, err := Read(query)
	if err != nil {
		t.Fatal(err)
	}
	if !aggregation.MatchString(query) {
		return ofTarget
	}
	return q.Labels
}

// occurs reports whether a label can have a value that a query names.
func occurs(label, value, source string) bool {
	switch label {
	case "outcome":
		return new(stint.Outcome).UnmarshalText([]byte(value)) == nil
	case "doing":
		return strings.Contains(source, strconv.Quote(value))
	case "state":
		return slices.Contains(store.States, stint.State(value))
	case "begun":
		return value == "true" || value == "false"
	}
	return strings.HasPrefix(value, "$") || label == "job" // it is somebody else's to say
}

// sources are those of a package.
func sources(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	var all strings.Builder
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
