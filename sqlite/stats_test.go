package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// What is read for statistics and for the last minute does not grow with the
// history, however old the claim of what ended just now is.
func TestWhatIsReadForStatisticsIsWhatCameBehindTheLastMark(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "jobs.db"))
	token, serial := join(t, s), int64(0)
	lane := store.LaneOf(stint.DefaultQueue, 0, store.PartNormal, "").ID
	// One that is claimed first and ends last.
	enqueue(t, s, someJobs(1))
	serial++
	slow, err := s.Claim(t.Context(), store.ClaimRequest{Engine: token, Serial: serial, Nonce: 1, Lane: lane, Max: 1})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		enqueue(t, s, someJobs(200))
		work(t, s, 50, &serial, token)
		if _, err := s.SumUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	behind := func() (n int) {
		t.Helper()
		err := s.read(t.Context(), func(c *conn) error {
			m, err := c.newestMark()
			if err != nil {
				return err
			}
			n = 0
			return c.attempts(m, func(*attempt) error { n++; return nil })
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := behind(); n != 0 {
		t.Errorf("behind the mark are %d attempts that are summed up", n)
	}
	x := store.Conclude(&slow.Entries[0], store.Result{Outcome: stint.OutcomeCompleted}, time.Now(), 0)
	x.Nonce, x.Slot, x.Started, x.Ended = 1, 1, time.Now().Add(-time.Second), time.Now()
	if _, err := s.Finish(t.Context(), token, []store.ClaimRef{slow.ClaimRef}, []store.Completion{x}); err != nil {
		t.Fatal(err)
	}
	if n := behind(); n != 1 {
		t.Errorf("behind the mark are %d attempts, want the one that was claimed long ago", n)
	}
	all, err := s.Stats(t.Context(), report.StatsFilter{})
	if err != nil || len(all) != 1 || all[0].Attempts != 601 || all[0].Took.Longest < time.Second {
		t.Errorf("the sums are %+v, error %v", all, err)
	}
	if a, err := s.Analyze(t.Context(), report.AnalyticsFilter{}); err != nil || a.Ended != 601 || a.Running != 0 {
		t.Errorf("it says %+v, error %v", a, err)
	}
}

func TestMinutesThatAreNotToldGoSomeAtATimeAndHoursStay(t *testing.T) {
	s := open(t, Memory)
	const n = forgottenAtOnce + 500
	last := report.FirstMinute(time.Now()).Add(-10 * time.Minute)
	err := s.write(t.Context(), func(c *conn) (bool, error) {
		for i := range n {
			row := report.Stats{Start: last.Add(-time.Duration(i) * time.Minute), Kind: "k", Queue: "q", Outcome: stint.OutcomeCompleted}
			row.Lost()
			for _, span := range []time.Duration{time.Minute, time.Hour} {
				if err := c.upsertSums(span, row); err != nil {
					return false, err
				}
			}
		}
		return false, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{500, 0} {
		more, err := s.SumUp(t.Context())
		if err != nil || more != (want > 0) {
			t.Errorf("there is more to do: %v, error %v", more, err)
		}
		for span, want := range map[int]int{1: want, 60: n} {
			left := 0
			err := s.read(t.Context(), func(c *conn) error {
				return c.query(`select count(*) from stint_stats where minutes = ?`, []any{span}, func(q *stmt) error { left = q.ColumnInt(0); return nil })
			})
			if err != nil || left != want {
				t.Errorf("%d sums of %d minutes are left, want %d, error %v", left, span, want, err)
			}
		}
	}
}

func TestOldMarksGo(t *testing.T) {
	s := open(t, Memory)
	for i := range 10 {
		err := s.write(t.Context(), func(c *conn) (bool, error) {
			m, err := c.here()
			if err != nil {
				return false, err
			}
			return false, c.addMark(m, time.Now().Add(time.Duration(i)*time.Minute))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	err := s.read(t.Context(), func(c *conn) error {
		return c.query(`select count(*) from stint_marks`, nil, func(q *stmt) error { n = q.ColumnInt(0); return nil })
	})
	if err != nil || n != 3 {
		t.Errorf("%d marks are left, error %v; want those of two minutes", n, err)
	}
}
