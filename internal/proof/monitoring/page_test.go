package monitoring

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of metrics into docs/monitoring.md")

const page = "../../../docs/monitoring.md"

// The marks between which the page has its table.
const (
	tableBegins = "<!-- metrics: make monitoring-page writes what follows -->\n"
	tableEnds   = "<!-- end of metrics -->\n"
)

func TestThePageExplainsEveryMetricThatIsExported(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), tableBegins)
	got, after, ends := strings.Cut(rest, tableEnds)
	if !begins || !ends {
		t.Fatalf("%s has no place for the table", page)
	}
	var want strings.Builder
	want.WriteString("| metric | type | labels | what it says |\n|---|---|---|---|\n")
	for _, m := range families(t, watched(t)) {
		if strings.HasPrefix(m.Name, "stint_") {
			fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
		}
	}
	switch {
	case got == want.String():
	case *update:
		if err := os.WriteFile(page, []byte(before+tableBegins+want.String()+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("the table of %s is not of what is exported (make monitoring-page writes it); it should be\n%s", page, want.String())
	}
}

var (
	asMetric   = regexp.MustCompile(`name: \{as: (stint_\w+)\}`)
	scaledBy   = regexp.MustCompile(`metric: \{name: (stint_\w+)\}`)
	adapterAsk = regexp.MustCompile(`metricsQuery: '(.+)'`)
)

// What the guide and the manifests scale by is made of a metric that is exported, and of the same one.
func TestAutoscalersScaleByTheWantedSlots(t *testing.T) {
	all := map[string]bool{}
	for _, m := range families(t, watched(t)) {
		all[m.Name] = true
	}
	for _, file := range []string{"../../../docs/guide/scaling.md", "../../../deploy/kubernetes/scaling/hpa.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		made, by, ask := asMetric.FindSubmatch(text), scaledBy.FindSubmatch(text), adapterAsk.FindSubmatch(text)
		if made == nil || by == nil || ask == nil {
			t.Fatalf("%s has no rule of the adapter, or scales by nothing", file)
		}
		if string(made[1]) != string(by[1]) {
			t.Errorf("%s makes %s, and scales by %s", file, made[1], by[1])
		}
		if q, err := Read(string(ask[1])); err != nil || len(q.Metrics) != 1 || q.Metrics[0] != "stint_wanted_slots" || !all[q.Metrics[0]] {
			t.Errorf("%s scales by %v, %v", file, q.Metrics, err)
		}
	}
}

var named = regexp.MustCompile("`(stint_\\w+)[`{]")

func TestThePageNamesEveryAlertAndNoMetricThatIsNone(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range readRules(t) {
		if !strings.Contains(string(text), "`"+r.name+"`") {
			t.Errorf("the page does not say what %s is about", r.name)
		}
	}
	all := map[string]bool{}
	for _, m := range families(t, watched(t)) {
		all[m.Name] = true
	}
	for _, name := range named.FindAllStringSubmatch(string(text), -1) {
		if !all[name[1]] {
			t.Errorf("nothing exports %s", name[1])
		}
	}
}
