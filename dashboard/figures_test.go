package dashboard

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"log/slog"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
)

// worked is a store with so many jobs of a queue that completed, none of which is in
// the sums.
func worked(t *testing.T, n int, queue string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	done := make(chan struct{}, n)
	mux := stint.NewMux()
	mux.Add(stint.KindInfo{Name: "k"}, func(context.Context, *stint.Job) (json.RawMessage, error) {
		done <- struct{}{}
		return nil, nil
	})
	e, err := engine.New(s, mux, engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { left <- e.Run(ctx) }()
	if _, err := stint.NewClient(s).EnqueueMany(t.Context(), slices.Repeat([]stint.NewJob{{Kind: "k", Queue: queue, Args: json.RawMessage("{}")}}, n)); err != nil {
		t.Fatal(err)
	}
	for range n {
		<-done
	}
	stop()
	if err := <-left; err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhereMuchEndedFiguresAreThoseOfTheSumsAndOfAShorterTime(t *testing.T) {
	t.Parallel()
	const n = 5
	f := newFigures(worked(t, n, "q"), nil)
	ended := func(h history) (all int64) {
		for _, m := range h.Steps {
			all += m.Ended[0]
		}
		return all
	}
	for _, c := range []struct {
		readable int
		behind   bool
		charted  int64
		span     time.Duration
	}{{n + 1, false, n, time.Minute}, {n, true, 0, shortSpan}} {
		f.readable = c.readable
		h, err := f.historyOf(t.Context(), part{})
		if err != nil || h.Behind != c.behind || ended(h) != c.charted {
			t.Errorf("where %d are read the chart has %d, behind %t, error %v", c.readable, ended(h), h.Behind, err)
		}
		if from := time.Since(h.From) - time.Hour; c.behind != (from > report.SummedBy-time.Minute) {
			t.Errorf("where %d are read the chart begins %v earlier than an hour ago", c.readable, from)
		}
		if all, err := f.stats(t.Context(), report.StatsFilter{}, day); err != nil || (len(all.Stats) == 0) != c.behind {
			t.Errorf("where %d are read the statistics are %+v, error %v", c.readable, all.Stats, err)
		}
		if look, err := f.lately(t.Context(), part{kind: "k"}); err != nil || look.Span != c.span || look.Short() != c.behind || !c.behind && look.Ended != n {
			t.Errorf("where %d are read the figures are %+v of %v, error %v", c.readable, look.Activity, look.Span, err)
		}
	}
}

func TestAQueuesFiguresAreOfItsLastMinutes(t *testing.T) {
	end := time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC)
	back := func(minutes int) time.Time {
		return end.Truncate(time.Minute).Add(-time.Duration(minutes) * time.Minute)
	}
	q := &queueRow{}
	for _, s := range []report.Stats{
		{Start: back(0), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 1}},
		{Start: back(4), Outcome: stint.OutcomeFailed, Totals: report.Totals{Attempts: 10}},
		{Start: back(4), Outcome: stint.OutcomeLost, Totals: report.Totals{Attempts: 100}},
		{Start: back(5), Outcome: stint.OutcomeFailed, Totals: report.Totals{Attempts: 1000}},
		{Start: back(59), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 10_000}},
		{Start: back(60), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 100_000}},
		{Start: back(-2), Outcome: stint.OutcomeCompleted, Totals: report.Totals{Attempts: 1_000_000}},
	} {
		q.count(s, ended{End: end})
	}
	want := queueRow{Ended: 111, Failed: 110, Hour: make([]float64, 60)}
	want.Hour[59], want.Hour[55], want.Hour[54], want.Hour[0] = 1, 110, 1000, 10_000
	if diff := cmp.Diff(want, *q); diff != "" {
		t.Errorf("(-worked out +counted):\n%s", diff)
	}
}

// What is refreshed every few seconds, of pages that are left open, must not be much.
func TestARefreshIsSmall(t *testing.T) {
	templates, err := parse("")
	if err != nil {
		t.Fatal(err)
	}
	b := &Dashboard{templates: templates, config: Config{Log: slog.New(slog.NewTextHandler(t.Output(), nil))}}
	h := newHistory(noon.Add(-time.Hour), time.Minute, hour)
	random := rand.New(rand.NewPCG(1, 2))
	for _, steps := range [][]sums{h.Steps, h.Before} {
		for i := range steps {
			m := &steps[i]
			m.Ran, m.Took, m.Waited = 1+random.Int64N(1e6), time.Duration(random.Int64N(1e15)), time.Duration(random.Int64N(1e15))
			m.TookBy, m.WaitedBy = make(report.Histogram, 90), make(report.Histogram, 90)
			for j := range m.TookBy {
				m.TookBy[j], m.WaitedBy[j] = random.Int64N(1e6), random.Int64N(1e6)
			}
			for j := range m.Ended {
				m.Ended[j] = random.Int64N(1e6)
			}
		}
	}
	distributed := h
	distributed.Distributed = true
	for name, data := range map[string]any{
		"overview": overviewPage{History: seen(h), jobs: b.jobsOf(part{}), Zoom: zoom{Path: "/"}},
		"queue":    queuePage{partFigures: partFigures{History: seen(distributed), jobs: b.jobsOf(part{queue: "mail"}), Zoom: zoom{Path: "/queues/mail"}}},
	} {
		w := httptest.NewRecorder()
		b.render(w, httptest.NewRequest("GET", "/", nil), 200, shown{page: &pages[slices.IndexFunc(pages, func(p page) bool { return p.name == name })], Data: data, Now: noon, Sent: noon})
		raw := w.Body.Len()
		var small bytes.Buffer
		z := gzip.NewWriter(&small)
		_, _ = z.Write(w.Body.Bytes())
		_ = z.Close()
		if t.Logf("%s: %d bytes, %d compressed", name, raw, small.Len()); small.Len() > 30_000 || raw < 60_000 {
			t.Errorf("a refresh of the page %s is %d bytes, %d compressed; want at most 30,000", name, raw, small.Len())
		}
	}
}

// To find out that much ended is to read as much as is read at most, so it is not found out again at once.
func TestThatMuchEndedIsBelievedForAWhile(t *testing.T) {
	t.Parallel()
	f := newFigures(worked(t, 5, "q"), nil)
	for _, c := range []struct {
		readable int
		much     bool
	}{{6, false}, {5, true}, {6, true}} {
		f.readable = c.readable
		if much, err := f.much(t.Context()); err != nil || much != c.much {
			t.Errorf("where %d are read it says %t, error %v", c.readable, much, err)
		}
	}
	f.muchAt.Store(time.Now().Add(-seldomLook).UnixNano())
	if much, err := f.much(t.Context()); err != nil || much {
		t.Errorf("after a while it says %t, error %v", much, err)
	}
}

// Who loads a page is told what is there now; an open page is told what was there lately.
func TestWhatChangesSeldomIsReadSeldomForOpenPagesOnly(t *testing.T) {
	t.Parallel()
	st := worked(t, 0, "q")
	f := newFigures(st, nil)
	for _, c := range []struct {
		enqueue, hurried, old, empty bool
	}{{empty: true}, {enqueue: true, hurried: true, empty: true}, {}, {hurried: true, old: true}} {
		if c.enqueue {
			if _, err := stint.NewClient(st).Enqueue(t.Context(), stint.NewJob{Kind: "k", Args: json.RawMessage("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		ctx := t.Context()
		if c.hurried {
			ctx = sample.Hurried(ctx)
		}
		if c.old {
			f.seldom, f.seldomAt = seldom{Empty: true}, f.seldomAt.Add(-seldomLook)
		}
		if got, err := f.seldomOf(ctx); err != nil || got.Empty != c.empty {
			t.Errorf("of %+v it says %+v, error %v", c, got, err)
		}
	}
}
