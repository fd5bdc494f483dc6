package monitoring

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// dashboard is what these tests read of Grafana's format.
type dashboard struct {
	UID           string
	Title         string
	SchemaVersion int
	Templating    struct{ List []variable }
	Annotations   struct{ List []annotation }
	Links         []struct{ Title, URL string }
	Panels        []panel
}

type variable struct {
	Name, Type string
	Query      query
}

type annotation struct{ Name, Expr, TitleFormat string }

// query is an object with a query, or for some variables just a text.
type query struct{ Query string }

func (q *query) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &q.Query) == nil {
		return nil
	}
	type object query
	return json.Unmarshal(text, (*object)(q))
}

type panel struct {
	ID                       int
	Type, Title, Description string
	GridPos                  struct{ X, Y, W, H int }
	Datasource               struct{ UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []target
}

type target struct{ RefID, Expr, LegendFormat string }

func dashboardText(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, "grafana.json"))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(dashboardText(t), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || d.SchemaVersion == 0 || len(d.Panels) == 0 {
		t.Fatalf("the dashboard is %+v", d)
	}
	return d
}

func TestEveryPanelSaysWhatItShowsAndInWhichUnit(t *testing.T) {
	ids := map[int]bool{}
	for _, p := range readDashboard(t).Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s has no id of its own", p.Title)
		}
		ids[p.ID] = true
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" {
			t.Errorf("panel %d lacks a title, a description, a unit, or its data source: %+v", p.ID, p)
		}
		if len(p.Targets) == 0 {
			t.Errorf("%s shows nothing", p.Title)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.Expr == "" || target.LegendFormat == "" {
				t.Errorf("%s: the query %q lacks a reference of its own, an expression, or a legend", p.Title, target.RefID)
			}
			refs[target.RefID] = true
		}
	}
}

var inLegend = regexp.MustCompile(`\{\{(\w+)\}\}`)

func TestLegendsNameLabelsThatTheResultHas(t *testing.T) {
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			known := labelsOfResult(t, target.Expr)
			for _, label := range inLegend.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(known, label[1]) {
					t.Errorf("%s: the legend names %s, which the result does not have", p.Title, label[1])
				}
			}
		}
	}
}

func TestAnnotationsNameLabelsThatTheResultHas(t *testing.T) {
	list := readDashboard(t).Annotations.List
	if len(list) == 0 {
		t.Error("there are none")
	}
	for _, a := range list {
		known := labelsOfResult(t, a.Expr)
		for _, label := range inLegend.FindAllStringSubmatch(a.TitleFormat, -1) {
			if !slices.Contains(known, label[1]) {
				t.Errorf("%s names %s, which the result does not have", a.Name, label[1])
			}
		}
	}
}

// Links lead to pages of this project that are there.
func TestLinksLeadToPages(t *testing.T) {
	links := readDashboard(t).Links
	if len(links) == 0 {
		t.Error("there are none")
	}
	for _, link := range links {
		page, ours := strings.CutPrefix(link.URL, "https://github.com/stint-go/stint/blob/main/docs/")
		if _, err := os.Stat(filepath.Join(docs, "..", page)); !ours || err != nil {
			t.Errorf("%s leads to %s: %v", link.Title, link.URL, err)
		}
	}
}

func TestPanelsFitTheGridAndLieBesideEachOther(t *testing.T) {
	taken := map[[2]int]string{}
	for _, p := range readDashboard(t).Panels {
		at := p.GridPos
		if at.X < 0 || at.W < 1 || at.H < 1 || at.X+at.W > 24 {
			t.Errorf("%s stands out: %+v", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("%s lies over %s", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}

var useOfVariable = regexp.MustCompile(`\$\{?([a-z]\w*)\}?`)

func TestVariablesAreDefinedAndUsed(t *testing.T) {
	d := readDashboard(t)
	used := map[string]bool{}
	for _, use := range useOfVariable.FindAllStringSubmatch(string(dashboardText(t)), -1) {
		used[use[1]] = true
	}
	for _, v := range d.Templating.List {
		if !used[v.Name] {
			t.Errorf("nothing uses the variable %s", v.Name)
		}
		delete(used, v.Name)
	}
	for name := range used {
		t.Errorf("there is no variable %s", name)
	}
}
