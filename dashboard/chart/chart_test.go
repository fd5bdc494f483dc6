package chart_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint/dashboard/chart"
)

// wellFormed fails unless a text is XML, and with it the SVG and HTML that parsers agree upon. It returns the texts of
// elements with a name.
func wellFormed(t *testing.T, text, name string) (texts []string) {
	t.Helper()
	d, within := xml.NewDecoder(strings.NewReader("<page>"+text+"</page>")), 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		switch token := token.(type) {
		case xml.StartElement:
			if token.Name.Local == name {
				within++
				texts = append(texts, "")
			}
			for _, a := range token.Attr {
				if a.Name.Local == "style" || strings.HasPrefix(a.Name.Local, "on") {
					t.Errorf("an element has the attribute %s, which pages forbid", a.Name.Local)
				}
			}
			if token.Name.Local == "script" || token.Name.Local == "style" {
				t.Errorf("there is an element %s", token.Name.Local)
			}
		case xml.EndElement:
			if token.Name.Local == name {
				within--
			}
		case xml.CharData:
			if within > 0 {
				texts[len(texts)-1] += string(token)
			}
		}
	}
}

func TestEverythingThatIsDrawnIsWellFormed(t *testing.T) {
	for name, c := range figures {
		t.Run(name, func(t *testing.T) { wellFormed(t, c.Figure(), "") })
	}
}

// FuzzNamesAreTexts puts names that come from anywhere at all places where names are.
func FuzzNamesAreTexts(f *testing.F) {
	for _, name := range []string{"mail", `"><script>alert(1)</script>`, "' onload='x", "&lt;", "]]>", "\x00\x1f\x7f\u0085", "\xff\xfe", "\uffff", "a\nb", "\u202eevil"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		series := chart.Series{Name: name, Class: chart.Class(name), Values: []float64{1, math.NaN(), 2}}
		for _, style := range []chart.Style{chart.Bars, chart.Lines} {
			wellFormed(t, chart.TimeSeries{Title: name, Style: style, From: noon, Step: time.Minute, Series: []chart.Series{series}}.Figure(), "")
		}
		wellFormed(t, chart.Sparkline{Title: name, Class: chart.Class(name), Values: series.Values}.SVG(), "")
		wellFormed(t, chart.Ranking{Title: name, Rows: []chart.Row{{Name: name, Class: chart.Class(name), Value: 1}}}.Figure(), "")
		segment := chart.Segment{Name: name, Class: chart.Class(name), From: noon, Note: name}
		wellFormed(t, chart.Timeline{Title: name, Now: noon, Lanes: []chart.Lane{{Name: name, Segments: []chart.Segment{segment}}}}.Figure(), "")
	})
}

// values are some of each sort that a chart may be given.
func values(random *rand.Rand) []float64 {
	sorts := []func() float64{
		func() float64 { return 0 },
		random.Float64,
		func() float64 { return float64(random.IntN(1000)) },
		func() float64 { return math.Ldexp(random.Float64(), random.IntN(2000)-1000) },
		func() float64 { return -random.Float64() },
		math.NaN,
		func() float64 { return math.Inf(1) },
		func() float64 { return math.MaxFloat64 },
		func() float64 { return math.SmallestNonzeroFloat64 },
	}
	all := make([]float64, random.IntN(20))
	for i := range all {
		all[i] = sorts[random.IntN(len(sorts))]()
	}
	return all
}

var (
	placed = regexp.MustCompile(` (?:x|y|width|height|x1|x2|y1|y2)="([^"%]*)%?"`)
	drawn  = regexp.MustCompile(` d="([^"]*)"`)
)

// coordinates are all of a picture.
func coordinates(svg string) (all []string) {
	for _, found := range placed.FindAllStringSubmatch(svg, -1) {
		all = append(all, found[1])
	}
	for _, found := range drawn.FindAllStringSubmatch(svg, -1) {
		all = append(all, strings.FieldsFunc(found[1], func(r rune) bool { return strings.ContainsRune("MLZ ", r) })...)
	}
	return all
}

func TestNoValueIsDrawnOutsideOfThePicture(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	looked := 0
	for range 3000 {
		c := chart.TimeSeries{Title: "any", From: noon, Step: time.Minute, Unit: chart.Unit(random.IntN(4)), Style: chart.Style(random.IntN(3))}
		for range random.IntN(4) {
			c.Series = append(c.Series, chart.Series{Name: "s", Values: values(random)})
		}
		for _, svg := range []string{c.SVG(), chart.Sparkline{Values: values(random)}.SVG()} {
			for _, text := range coordinates(svg) {
				looked++
				if at, err := strconv.ParseFloat(text, 64); err != nil || math.IsNaN(at) || at < -70 || at > 1070 {
					t.Fatalf("seed %d: %q lies outside in\n%+v\n%s", seed, text, c, svg)
				}
			}
		}
	}
	if looked < 100_000 {
		t.Errorf("only %d coordinates were found", looked)
	}
}

func TestWhatIsReadIsExact(t *testing.T) {
	for _, c := range []struct {
		unit  chart.Unit
		value float64
		want  string
	}{
		{chart.Count, 0, "0"},
		{chart.Count, 999, "999"},
		{chart.Count, 1000, "1,000"},
		{chart.Count, 9007199254740991, "9,007,199,254,740,991"},
		{chart.Count, -1234.5, "-1,234.5"},
		{chart.Count, 1e300, "1e+300"},
		{chart.Count, math.NaN(), "not known"},
		{chart.Duration, math.Inf(-1), "not known"},
		{chart.Duration, float64(1234567 * time.Microsecond), "1s234ms567us"},
		{chart.Duration, float64(90 * time.Minute), "1h30m"},
		{chart.Duration, 0, "0s"},
		{chart.Count, math.MaxFloat64, "1.7976931348623157e+308"},
	} {
		if got := c.unit.Exact(c.value); got != c.want {
			t.Errorf("%v of unit %d is %q, want %q", c.value, c.unit, got, c.want)
		}
	}
}

func TestEachStepSaysWhatEachSeriesHas(t *testing.T) {
	c := chart.TimeSeries{Title: "Attempts", From: noon, Step: time.Minute, Series: []chart.Series{
		{Name: "completed", Values: []float64{1234567, 2}},
		{Name: "failed", Values: []float64{3}},
	}}
	got := wellFormed(t, c.SVG(), "title")
	want := []string{
		"2026-11-22 12:00:00 UTC\ncompleted: 1,234,567\nfailed: 3",
		"2026-11-22 12:01:00 UTC\ncompleted: 2\nfailed: not known",
	}
	if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
		t.Errorf("the steps say %q, want %q", got, want)
	}
}

func TestWhatIsThereIsSeenHoweverSmallItIs(t *testing.T) {
	pile := chart.TimeSeries{Title: "any", From: noon, Step: time.Minute, Series: []chart.Series{
		{Name: "completed", Class: chart.OK, Values: []float64{1e6}},
		{Name: "failed", Class: chart.Bad, Values: []float64{1}},
	}}.SVG()
	if !regexp.MustCompile(`class="bad" [^>]*height="10"`).MatchString(pile) {
		t.Errorf("one failure among a million is not 10 high in\n%s", pile)
	}
	bars := chart.Ranking{Rows: []chart.Row{{Name: "a", Value: 1e9}, {Name: "b", Value: 1}, {Name: "c", Value: 0}}}.SVG()
	if n := strings.Count(bars, `class="s1"`); n != 2 {
		t.Errorf("%d bars are drawn for two values above 0 in\n%s", n, bars)
	}
	segment := chart.Timeline{Now: after(time.Hour), Lanes: []chart.Lane{{Segments: []chart.Segment{
		{Name: "waiting", From: noon, To: after(time.Hour)}, {Name: "running", Class: chart.OK, From: after(time.Hour), To: after(time.Hour)},
	}}}}.SVG()
	if !strings.Contains(segment, `class="ok" x="99.6%" y="10" width="0.4%"`) {
		t.Errorf("a moment at the end is not 0.4%% wide in\n%s", segment)
	}
}

func TestALineEndsWhereNothingIsKnown(t *testing.T) {
	svg := chart.TimeSeries{Style: chart.Lines, From: noon, Step: time.Minute, Series: []chart.Series{
		{Name: "a", Values: []float64{1, 2, math.NaN(), 4, math.NaN()}}, {Name: "b", Values: []float64{1, 1, math.NaN(), 1, 1}},
	}}.SVG()
	if n := strings.Count(svg, `class="line s1"`); n != 2 {
		t.Errorf("a series with a gap is drawn in %d pieces", n)
	}
	if n := strings.Count(svg, `class="gap"`); n != 1 {
		t.Errorf("%d gaps are shown; in one step nothing at all is known", n)
	}
}

func TestAPictureSaysInASentenceWhatItShows(t *testing.T) {
	label := regexp.MustCompile(`^<svg [^>]*aria-label="([^"]*)"`)
	var rows []chart.Row
	for i := range 13 {
		rows = append(rows, chart.Row{Name: fmt.Sprint("q", i), Value: float64(i)})
	}
	for _, c := range []struct{ svg, want string }{
		{chart.TimeSeries{Title: "Attempts", From: noon, Step: time.Minute, Series: []chart.Series{
			{Name: "completed", Values: []float64{5, 1200, 7, math.NaN()}}, {Name: "failed", Values: []float64{math.NaN()}},
		}}.SVG(), "Attempts, from 2026-11-22 12:00:00 UTC to 2026-11-22 12:04:00 UTC: completed 7 at last, 1,200 at most; failed not known"},
		{chart.Ranking{Title: "Queues", Rows: rows}.SVG(), "Queues: q0 0; q1 1; q2 2; q3 3; q4 4; q5 5; q6 6; q7 7; q8 8; q9 9; and 3 more"},
		{chart.Sparkline{Title: "Running", Values: []float64{1, 4, 2}}.SVG(), "Running: 2 at last, 4 at most"},
		{chart.Timeline{Title: "Job 1", Now: after(time.Second), Lanes: []chart.Lane{
			{Name: "1", Segments: []chart.Segment{{Name: "waited", From: noon, To: after(time.Millisecond)}, {Name: "running", From: after(time.Millisecond)}}},
		}}.SVG(), "Job 1, from 2026-11-22 12:00:00 UTC to 2026-11-22 12:00:01 UTC: 1 waited for 1ms, running for 999ms so far"},
	} {
		if found := label.FindStringSubmatch(c.svg); found == nil || found[1] != c.want {
			t.Errorf("it says %q, want %q", found, c.want)
		}
	}
}
