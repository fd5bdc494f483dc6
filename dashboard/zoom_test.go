package dashboard

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestATimeIsReadAsPeopleEnterIt(t *testing.T) {
	for _, c := range []struct {
		from, to         string
		begins, ends     time.Duration // before noon
		wrong, otherwise string
	}{
		{"6h", "", 6 * time.Hour, 0, "", ""},
		{"", "", time.Hour, 0, "", ""},
		{"", "2h", 3 * time.Hour, 2 * time.Hour, "", ""},
		{"2026-03-01 09:00", "2026-03-01T10:00:00Z", 3 * time.Hour, 2 * time.Hour, "", ""},
		{"2026-03-01T10:00:00+01:00", "2026-03-01T10:00", 3 * time.Hour, 2 * time.Hour, "", ""},
		{"1h", "2026-04-01", time.Hour, 0, "", ""},
		{"31d", "", 31 * day, 0, "", ""},
		{"yesterday", "", 0, 0, "from", ""},
		{"1h", "soon", 0, 0, "to", ""},
		{"1h", "1h", 0, 0, "to", ""},
		{"1h", "2h", 0, 0, "to", ""},
		{"2026-03-01 12:00", "", 0, 0, "from", ""},
		{"32d", "", 0, 0, "from", ""},
		{"0001-01-01", "", 0, 0, "from", ""},
	} {
		z := zoom{From: c.from, To: c.to}
		from, to := z.read(noon)
		if c.wrong != "" {
			if len(z.Wrong) != 1 || z.Wrong[c.wrong] == "" {
				t.Errorf("of %q to %q it says %v, want something of %s", c.from, c.to, z.Wrong, c.wrong)
			}
		} else if len(z.Wrong) > 0 || !from.Equal(noon.Add(-c.begins)) || !to.Equal(noon.Add(-c.ends)) {
			t.Errorf("%q to %q is %v to %v, wrong %v", c.from, c.to, from, to, z.Wrong)
		}
	}
}

// TestAChosenTimeHasItsAttemptsAndThoseOfTheTimeBefore counts attempts that ended at several times.
func TestAChosenTimeHasItsAttemptsAndThoseOfTheTimeBefore(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	w := storetest.Join(t, s, "k", "other")
	now := time.Now()
	anHour := now.Truncate(time.Hour)
	ended := func(kind string, n int, at time.Time) {
		t.Helper()
		for range n {
			if _, err := stint.NewClient(s).Enqueue(t.Context(), stint.NewJob{Kind: kind, Args: json.RawMessage("{}")}); err != nil {
				t.Fatal(err)
			}
		}
		var done []store.Completion
		for _, e := range w.ClaimAll() {
			x := w.Conclude(e, store.Result{Outcome: stint.OutcomeCompleted})
			x.Ended, x.Started = at, at.Add(-time.Second)
			done = append(done, x)
		}
		if n, err := w.TryFinish(t.Context(), done...); err != nil || n != len(done) {
			t.Fatalf("%d of %d are recorded, error %v", n, len(done), err)
		}
	}
	at := func(hours, minutes int) time.Time {
		return anHour.Add(-time.Duration(hours)*time.Hour + time.Duration(minutes)*time.Minute)
	}
	ended("k", 7, at(3, 10))     // in the ten minutes that are chosen below
	ended("k", 5, at(3, 19))     // likewise, at their end
	ended("other", 2, at(3, 12)) // of another kind
	ended("k", 3, at(3, 5))      // in the ten minutes before
	ended("k", 11, at(3, 20))    // just behind them
	ended("k", 13, at(2, 59))
	ended("k", 17, at(5*24, 30)) // which only the hours know
	ended("k", 19, at(5*24+1, 30))
	for more := true; more; {
		if more, err = s.SumUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	f := newFigures(s, nil)
	for _, c := range []struct {
		of           part
		from, to     time.Time
		step         time.Duration
		steps        int
		all, earlier int64
		distributed  bool
	}{
		{part{kind: "k"}, at(3, 10), at(3, 20), time.Minute, 10, 12, 3, true},
		{part{}, at(3, 10), at(3, 20), time.Minute, 10, 14, 3, true},
		{part{}, at(3, 10).Add(20 * time.Second), at(3, 19).Add(time.Second), time.Minute, 10, 14, 3, true},
		{part{queue: "default"}, at(4, 0), at(1, 0), 2 * time.Minute, 90, 7 + 5 + 2 + 3 + 11 + 13, 0, true},
		{part{}, at(8, 0), at(1, 0), 5 * time.Minute, 84, 7 + 5 + 2 + 3 + 11 + 13, 0, false},
		{part{}, at(5*24, 10), at(5*24, 50), time.Hour, 1, 17, 19, true},
		{part{}, at(6*24, 0), anHour, time.Hour, 6 * 24, 17 + 19 + 7 + 5 + 2 + 3 + 11 + 13, 0, true},
		{part{}, at(20*24, 0), anHour, 3 * time.Hour, 20 * 8, 17 + 19 + 7 + 5 + 2 + 3 + 11 + 13, 0, true},
		{part{}, at(3, 10), at(3, 10).Add(time.Second), time.Minute, 1, 7, 0, true},
	} {
		h, _, err := f.historyIn(t.Context(), c.of, c.from, c.to, now)
		p := zoomData{history: h}
		if err != nil || h.Step != c.step || len(h.Steps) != c.steps || h.Distributed != c.distributed {
			t.Errorf("%v to %v of %+v has %d steps of %v, distributed %t, error %v", c.from, c.to, c.of, len(h.Steps), h.Step, h.Distributed, err)
		} else if all, earlier := p.All().Count(), p.Earlier().Count(); all != c.all || earlier != c.earlier || !p.Compared() {
			t.Errorf("%v to %v of %+v has %d, and %d before, want %d and %d", c.from, c.to, c.of, all, earlier, c.all, c.earlier)
		}
	}
	// Of the two days that minutes are kept the second one has nothing to be compared with.
	if h, _, err := f.historyIn(t.Context(), part{}, now.Add(-40*time.Hour), now, now); err != nil || len(h.Before) > 0 || h.Step != 30*time.Minute {
		t.Errorf("40 hours have steps of %v, and %d before, error %v", h.Step, len(h.Before), err)
	}
	// While the last minutes are not in the sums, and are too many to be read, the time ends before them.
	ended("k", 23, now.Add(-time.Minute))
	for _, behind := range []bool{false, true} {
		readable := 24
		if behind {
			readable = 23
		}
		f.readable = readable
		h, _, err := f.historyIn(t.Context(), part{}, now.Add(-10*time.Minute), now, now)
		if end := now.Sub(h.To()); err != nil || h.Behind != behind || (end > report.SummedBy-time.Minute) != behind {
			t.Errorf("where %d are read the chart ends %v ago, behind %t, error %v", readable, end, h.Behind, err)
		}
		if n := (zoomData{history: h}).All().Count(); (n == 23) == behind {
			t.Errorf("where %d are read there are %d", readable, n)
		}
	}
}
