package report_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
)

func TestStatisticsOfAKindAreThoseOfItsQueuesAndOutcomes(t *testing.T) {
	const us = time.Microsecond
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 3, minute, 0, 0, time.UTC) }
	sums := func(took ...time.Duration) (s report.Totals) {
		for i, d := range took {
			s.Ran(d, time.Second, at(10*len(took)+i))
		}
		return s
	}
	lost := report.Totals{}
	lost.Lost()
	got := report.StatsByKind([]report.Stats{
		{Kind: "b", Queue: "q", Outcome: stint.OutcomeCompleted, Totals: sums(5)},
		{Kind: "a", Queue: "q", Outcome: stint.OutcomeFailed, Totals: sums(3, 9, 1)},
		{Kind: "a", Queue: "p", Outcome: stint.OutcomeCompleted, Totals: sums(2, 4)},
		{Kind: "a", Queue: "p", Outcome: stint.OutcomeLost, Totals: lost},
	})
	want := []report.KindStats{
		{
			Kind: "a", Outcomes: map[stint.Outcome]int64{stint.OutcomeCompleted: 2, stint.OutcomeFailed: 3, stint.OutcomeLost: 1},
			Totals: report.Totals{Attempts: 6, Took: report.Durations{Count: 5, Last: 1, Fastest: 1, Longest: 9, Total: 19}, LastAt: at(32), Waited: 5 * time.Second,
				TookBy: report.Histogram{5}, WaitedBy: append(make(report.Histogram, 41), 5)},
			Execution: &report.Percentiles{Mean: 3, P50: 9, P95: 9, P99: 9}, Latency: &report.Percentiles{Mean: time.Second, P50: 1122018 * us, P95: 1230268 * us, P99: 1230268 * us},
		},
		{
			Kind: "b", Outcomes: map[stint.Outcome]int64{stint.OutcomeCompleted: 1},
			Totals: report.Totals{Attempts: 1, Took: report.Durations{Count: 1, Last: 5, Fastest: 5, Longest: 5, Total: 5}, LastAt: at(10), Waited: time.Second,
				TookBy: report.Histogram{1}, WaitedBy: append(make(report.Histogram, 41), 1)},
			Execution: &report.Percentiles{Mean: 5, P50: 5, P95: 5, P99: 5}, Latency: &report.Percentiles{Mean: time.Second, P50: 1122018 * us, P95: 1122018 * us, P99: 1122018 * us},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if a := got[0]; a.Succeeded() != 2 || a.Failed() != 3 || a.Took.Mean() != 3 {
		t.Errorf("it says %+v", a)
	}
}

func TestMetricsComeBackFromJSONAndTellTheMean(t *testing.T) {
	m := report.Metrics{Kinds: map[string]report.Durations{"k": {Count: 2, Last: 3, Fastest: 1, Longest: 3, Total: 4}}}
	text, err := json.Marshal(m)
	if err != nil || !strings.Contains(string(text), `"mean":2`) {
		t.Errorf("it is %s, error %v", text, err)
	}
	var back report.Metrics
	if err := json.Unmarshal(text, &back); err != nil || back.Kinds["k"] != m.Kinds["k"] {
		t.Errorf("it comes back as %+v, error %v", back, err)
	}
}

func TestFieldsAreNamesOrPathsIntoJSON(t *testing.T) {
	if in, keys := report.Field("args.a.b").Path(); in != "args" || len(keys) != 2 || keys[1] != "b" {
		t.Errorf("the path is %s %q", in, keys)
	}
	for _, f := range append([]report.Field{"metadata.x"}, report.Fields...) {
		if err := f.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, f := range []report.Field{"", "args", "argsx", "state.a"} {
		if err := f.Check(); err == nil {
			t.Errorf("%q is a field", f)
		}
	}
}
