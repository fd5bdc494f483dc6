package browser_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

const stylePath = "../assets/style.css"

func style(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(stylePath)
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(string(text), "")
}

// colour has a value for light and one for dark.
type colour struct{ light, dark string }

var declaration = regexp.MustCompile(`--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);`)

func colours(t *testing.T) map[string]colour {
	t.Helper()
	all := map[string]colour{}
	for _, found := range declaration.FindAllStringSubmatch(style(t), -1) {
		all[found[1]] = colour{found[2], found[3]}
	}
	return all
}

// luminance is how bright a colour is to the eye, as WCAG 2 defines it.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	rgb, err := strconv.ParseUint(strings.TrimPrefix(hex, "#"), 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	linear := func(shift int) float64 {
		c := float64(rgb>>shift&0xff) / 255
		if c <= .04045 {
			return c / 12.92
		}
		return math.Pow((c+.055)/1.055, 2.4)
	}
	return .2126*linear(16) + .7152*linear(8) + .0722*linear(0)
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	la, lb := luminance(t, a), luminance(t, b)
	return (max(la, lb) + .05) / (min(la, lb) + .05)
}

func TestContrastIsWhatTheDefinitionSays(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#ffffff", "#000000", 21}, {"#777777", "#ffffff", 4.48}, {"#123456", "#123456", 1}} {
		if got := contrast(t, c.a, c.b); math.Abs(got-c.want) > .005 {
			t.Errorf("%s on %s: %.2f, want %.2f", c.a, c.b, got, c.want)
		}
	}
}

// What WCAG AA asks for.
const (
	readable = 4.5 // text
	seen     = 3   // marks of charts, edges of fields
)

// stands says which colours stand on which others.
type stands struct {
	least    float64
	what, on []string
}

var tints = []string{"violet", "amber", "slate", "blue", "cyan", "green", "red", "brown"}

func allStands() []stands {
	all := []stands{
		{readable, []string{"text", "muted", "link", "warning", "wrong"}, []string{"bg", "surface", "code", "hover"}},
		{readable, []string{"json-key", "json-string", "json-number"}, []string{"code"}},
		{readable, []string{"on-primary"}, []string{"primary"}},
		{readable, []string{"on-danger"}, []string{"danger"}},
		{seen, []string{"edge", "focus", "primary", "danger"}, []string{"bg", "surface", "code"}},
		{seen, []string{"mark-1", "mark-2", "mark-3", "mark-4", "mark-5", "mark-6", "mark-7", "mark-8"}, []string{"surface", "hover"}},
		{seen, []string{"mark-ok", "mark-bad", "mark-warn", "mark-muted"}, []string{"surface", "hover"}},
	}
	for _, tint := range tints {
		all = append(all, stands{readable, []string{tint, "text"}, []string{"on-" + tint}})
	}
	return all
}

func TestEverythingThatIsWrittenCanBeRead(t *testing.T) {
	all := colours(t)
	get := func(name string) colour {
		c, ok := all[name]
		if !ok {
			t.Fatalf("%s has no colour --%s with a value for light and one for dark", stylePath, name)
		}
		return c
	}
	for _, s := range allStands() {
		for _, what := range s.what {
			for _, on := range s.on {
				for scheme, ratio := range map[string]float64{
					"light": contrast(t, get(what).light, get(on).light), "dark": contrast(t, get(what).dark, get(on).dark),
				} {
					if ratio < s.least {
						t.Errorf("--%s on --%s has a contrast of %.2f in %s, want %v", what, on, ratio, scheme, s.least)
					}
				}
			}
		}
	}
}

// TestNoColourIsForgotten sees to it that the table above has all that text and lines are made of.
func TestNoColourIsForgotten(t *testing.T) {
	var checked []string
	for _, s := range allStands() {
		checked = append(checked, s.what...)
	}
	text := style(t)
	used := regexp.MustCompile(`[^-]color: var\(--([a-z0-9-]+)\)`).FindAllStringSubmatch(text, -1)
	if len(used) < 20 {
		t.Fatalf("only %d uses of colours were found", len(used))
	}
	for _, use := range used {
		if !slices.Contains(checked, use[1]) {
			t.Errorf("--%s colours text, and nothing checks its contrast", use[1])
		}
	}
	_, rules, _ := strings.Cut(text, `:root[data-theme="light"]`)
	for _, wrong := range regexp.MustCompile(`#[0-9a-f]{3,8}\b|\brgba?\([^0]|\bhsl|\b(?:color|background): (?:white|black|gr[ae]y|red|blue|green)\b`).FindAllString(rules, -1) {
		t.Errorf("%s is a colour without a name, which has no other value in the dark", wrong)
	}
}

func TestWhatTheStyleNamesIsThereAndUsed(t *testing.T) {
	text := style(t)
	defined, used := map[string]bool{}, map[string]bool{}
	for _, found := range regexp.MustCompile(`--([a-z0-9-]+):`).FindAllStringSubmatch(text, -1) {
		defined[found[1]] = true
	}
	for _, found := range regexp.MustCompile(`var\(--([a-z0-9-]+)`).FindAllStringSubmatch(text, -1) {
		used[found[1]] = true
	}
	for name := range defined {
		if !used[name] {
			t.Errorf("--%s is defined and not used", name)
		}
	}
	for name := range used {
		if !defined[name] {
			t.Errorf("--%s is used and not defined", name)
		}
	}
}

func TestEveryStateLooksLikeItself(t *testing.T) {
	text := style(t)
	for _, state := range store.States {
		if !strings.Contains(text, fmt.Sprintf(".state-%s", state)) {
			t.Errorf("there is no badge of the state %s", state)
		}
	}
	for _, condition := range []view.Condition{view.Working, view.Draining, view.Gone, view.Stuck, view.Silent} {
		if !strings.Contains(text, fmt.Sprintf(".cond-%s", condition)) {
			t.Errorf("there is no badge of the condition %s", condition)
		}
	}
	for _, severity := range []report.Severity{report.SeverityProblem, report.SeverityWarning, report.SeverityNote} {
		if !strings.Contains(text, fmt.Sprintf(".level-%s", severity)) {
			t.Errorf("nothing tells apart what is a %s", severity)
		}
	}
}

func TestTheStyleLoadsNothing(t *testing.T) {
	if found := regexp.MustCompile(`url\(|@import|https?:`).FindString(style(t)); found != "" {
		t.Errorf("the style has %q: pages load nothing but what the server itself has", found)
	}
}
