package dashboard

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// A kind that takes three times as long as it did is told apart from one that takes as long as ever.
func TestAKindThatBecameSlowerIsPointedAt(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := storetest.Join(t, s, "slowing", "steady", "new", "seldom")
	ended := func(kind string, n int, ago, took time.Duration) {
		t.Helper()
		jobs := slices.Repeat([]stint.NewJob{{Kind: kind, Args: json.RawMessage("{}")}}, n)
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		var done []store.Completion
		for _, e := range w.ClaimAll() {
			x := w.Conclude(e, store.Result{Outcome: stint.OutcomeCompleted})
			x.Ended = time.Now().Add(-ago)
			x.Started = x.Ended.Add(-took)
			done = append(done, x)
		}
		if n, err := w.TryFinish(t.Context(), done...); err != nil || n != len(done) {
			t.Fatalf("%d of %d are recorded, error %v", n, len(done), err)
		}
	}
	const yesterday, lastWeek = day + 20*time.Minute, 7*day + 30*time.Minute
	ended("slowing", 30, time.Minute, 300*time.Millisecond)
	ended("slowing", 30, yesterday, 100*time.Millisecond)
	ended("slowing", 30, lastWeek, 50*time.Millisecond)
	ended("slowing", 30, day+3*time.Hour, time.Hour) // of none of these hours, as the next
	ended("slowing", 30, 7*day-3*time.Hour, time.Hour)
	ended("steady", 30, time.Minute, 200*time.Millisecond)
	ended("steady", 30, yesterday, 200*time.Millisecond)
	ended("new", 30, time.Minute, time.Second)
	ended("seldom", enoughToSay-1, time.Minute, time.Minute)
	ended("seldom", 30, yesterday, time.Second)

	f := newFigures(s, nil)
	for more := true; more; { // what ended long ago counts where it is in the sums
		if more, err = s.SumUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	all, err := f.trendsOf(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]string{"slowing": "3.0× slower 6.0× slower", "steady": "", "new": "", "seldom": "", "none": ""} {
		tr := all[kind]
		if got := strings.TrimSpace(tr.SlowerInWords(tr.Yesterday) + " " + tr.SlowerInWords(tr.LastWeek)); got != want {
			t.Errorf("of %s it says %q, want %q: %+v", kind, got, want, tr)
		}
	}
	if tr := all["slowing"]; tr.Now.Count != 30 || tr.Yesterday.Count != 30 || tr.LastWeek.Count != 30 || tr.Now.P50 != 300*time.Millisecond {
		t.Errorf("the figures are %+v", tr)
	}
	h, err := f.historyOf(t.Context(), part{kind: "slowing"})
	if charts := h.figures(nil, ""); err != nil || len(charts) != 3 || !strings.Contains(string(charts[1]), "Run time") || !strings.Contains(string(charts[1]), "p99") {
		t.Errorf("there are %d charts, error %v", len(charts), err)
	}
}

func TestKindsAreSortedByAColumnAndThenByName(t *testing.T) {
	row := func(name string, ended int64, p95 time.Duration, failed int64) kindRow {
		r := kindRow{KindStats: report.KindStats{Kind: name, Totals: report.Totals{Attempts: 100}, Outcomes: map[stint.Outcome]int64{stint.OutcomeFailed: failed}}, Ended: ended}
		r.Trend.Now = pastTimes{report.Percentiles{P95: p95}, 100}
		r.Trend.Yesterday = pastTimes{report.Percentiles{P95: time.Second}, 100}
		return r
	}
	rows := []kindRow{row("d", 5, time.Second, 1), row("c", 5, 3*time.Second, 0), row("b", 7, time.Second, 50), row("a", 1, time.Second, 4)}
	for column, want := range map[string]string{"": "bcad", "ended": "bcda", "failed": "badc", "p95": "cabd", "slower": "cabd"} {
		sortKinds(rows, column)
		var got strings.Builder
		for _, r := range rows {
			got.WriteString(r.Kind)
		}
		if got.String() != want {
			t.Errorf("by %q they come as %s, want %s", column, got.String(), want)
		}
	}
}
