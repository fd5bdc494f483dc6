package chart_test

import (
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint/dashboard/chart"
)

var update = flag.Bool("update", false, "write the golden files")

var (
	noon    = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	unknown = math.NaN()
)

func after(d time.Duration) time.Time { return noon.Add(d) }

// figures are charts as pages have them.
var figures = map[string]interface{ Figure() string }{
	"bars": chart.TimeSeries{
		Title: "Attempts that ended, per 10 minutes", From: noon, Step: 10 * time.Minute,
		Link: func(from, to time.Time) string {
			return "/jobs?a=" + from.Format("15:04") + "&b=" + to.Format("15:04")
		},
		Series: []chart.Series{
			{Name: "completed", Class: chart.OK, Values: []float64{1200, 980, unknown, unknown, 1_040_321, 0}},
			{Name: "failed", Class: chart.Bad, Values: []float64{0, 1, unknown, unknown, 1, 0}},
		},
	},
	"before": chart.TimeSeries{
		Title: "Attempts that ended, per minute", From: noon, Step: time.Minute, Zoom: `/kinds/"mail"`,
		Series: []chart.Series{{Name: "completed", Class: chart.OK, Values: []float64{12, 9, 0}}},
		Before: chart.Series{Name: "the 3m before", Class: "s1", Values: []float64{30, unknown, 7, 100}},
	},
	"lines": chart.TimeSeries{
		Title: "How long attempts took", Unit: chart.Duration, Style: chart.Lines, From: noon.Add(-12 * time.Hour), Step: 3 * time.Hour,
		Series: []chart.Series{
			{Name: "median", Values: []float64{float64(1200 * time.Microsecond), unknown, float64(3 * time.Millisecond), float64(4 * time.Millisecond)}},
			{Name: "95%", Values: []float64{float64(40 * time.Millisecond), unknown, float64(35 * time.Millisecond), float64(90*time.Millisecond + 17*time.Microsecond)}},
		},
	},
	"empty":   chart.TimeSeries{Title: "Nothing yet"},
	"unknown": chart.TimeSeries{Title: "Silence", From: noon, Step: time.Second, Series: []chart.Series{{Name: "claims", Values: []float64{unknown, unknown}}}},
	"one":     chart.TimeSeries{Title: "One", Style: chart.Lines, From: noon, Step: time.Minute, Series: []chart.Series{{Name: "one", Values: []float64{7}}}},
	"hostile": chart.TimeSeries{
		Title: `</title><script>alert("1")</script>`, From: noon, Step: time.Minute,
		Series: []chart.Series{{Name: "\x00\x1b[31m' onload='x' & \xff", Class: `"><script>`, Values: []float64{1, -5, math.Inf(1), 1e300}}},
	},
	"ranking": chart.Ranking{
		Title: "Jobs that wait, by queue",
		Rows: []chart.Row{
			{Name: "default", Value: 1_234_567},
			{Name: "a queue whose name is as long as people make them", Value: 12, Class: chart.Warn},
			{Name: "empty", Value: 0},
			{Name: "unknown", Value: unknown},
		},
	},
	"ranking_empty": chart.Ranking{Title: "Jobs that wait, by queue"},
	"timeline": chart.Timeline{
		Title: "Attempts of job 42", Now: after(10 * time.Minute),
		Lanes: []chart.Lane{
			{Name: "1", Segments: []chart.Segment{
				{Name: "waiting", Class: chart.Muted, From: noon, To: after(2 * time.Second)},
				{Name: "failed", Class: chart.Bad, From: after(2 * time.Second), To: after(2*time.Second + 1234567*time.Microsecond), Note: "no such host: <mail>"},
				{Name: "lost", Class: chart.Warn, From: after(3 * time.Second), To: after(3 * time.Second), Took: "(start unknown)"},
				{Name: "waiting for a retry", From: after(3234567 * time.Microsecond), To: after(9 * time.Minute)},
			}},
			{Name: "2", Segments: []chart.Segment{{Name: "running", Class: chart.OK, From: after(9 * time.Minute)}}},
		},
	},
	"timeline_instant": chart.Timeline{
		Title: "A job that took no time", Now: noon,
		Lanes: []chart.Lane{{Name: "1", Segments: []chart.Segment{{Name: "completed", Class: chart.OK, From: noon, To: noon}}}},
	},
	"timeline_empty": chart.Timeline{Title: "Attempts of job 43", Now: noon},
}

func TestFiguresAreWhatTheyWere(t *testing.T) {
	for name, c := range figures {
		t.Run(name, func(t *testing.T) { golden(t, name+".html", c.Figure()) })
	}
}

func TestASparklineIsWhatItWas(t *testing.T) {
	for name, values := range map[string][]float64{
		"spark":       {1, 5, 3, unknown, 8, unknown, 2, 2},
		"spark_flat":  {0, 0, 0},
		"spark_one":   {3},
		"spark_empty": nil,
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name+".html", chart.Sparkline{Title: "Jobs & more of mail", Values: values}.SVG()+"\n")
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s is another one; if it shall be, run go test ./dashboard/chart -update (- there, + now):\n%s", path, diff)
	}
}
