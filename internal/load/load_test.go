package load

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/contest"
	"github.com/stint-go/stint/sqlite"
)

func open(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), t.TempDir()+"/load.db")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestBurnCompletesEveryJob(t *testing.T) {
	s := open(t)
	var m Meter
	r, err := Burn(t.Context(), s, BurnOptions{N: 1234, Batch: 100, Engines: 2, Slots: 3, Meter: &m})
	if err != nil {
		t.Fatal(err)
	}
	if !r.Verified || r.N != 1234 || r.EnqueuePerSecond <= 0 || r.WorkPerSecond <= 0 {
		t.Errorf("the figures are odd: %+v", r)
	}
	if m.Enqueued.Load() != 1234 || m.Started.Load() != 1234 {
		t.Errorf("the meter shows %d and %d", m.Enqueued.Load(), m.Started.Load())
	}
	if engines, err := s.Engines(t.Context()); err != nil || len(engines) != 0 {
		t.Errorf("engines were left behind: %v, %v", engines, err)
	}
}

func TestBurnDoesNotBelieveAStoreWithOtherJobs(t *testing.T) {
	s := open(t)
	if _, err := stint.NewClient(s).Enqueue(t.Context(), stint.NewJob{Kind: "other"}); err != nil {
		t.Fatal(err)
	}
	if _, err := Burn(t.Context(), s, BurnOptions{N: 10}); err == nil || !strings.Contains(err.Error(), "the store holds 1 other jobs that are available") {
		t.Errorf("got %v", err)
	}
}

func TestLatencyMeasuresEachJob(t *testing.T) {
	r, err := Latency(t.Context(), open(t), LatencyOptions{Rate: 200, Duration: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	q := r.FromCall
	if r.N != 40 || q.P50 <= 0 || q.P50 > q.P95 || q.P95 > q.P99 || q.P99 > q.Max {
		t.Errorf("the figures are odd: %+v", r)
	}
}

func TestAWorkloadEndsWithItsContext(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Latency(ctx, s, LatencyOptions{Rate: 10, Duration: time.Hour}); err == nil {
		t.Error("an hour went by in a tenth of a second")
	}
	if engines, err := s.Engines(t.Context()); err != nil || len(engines) != 0 {
		t.Errorf("engines were left behind: %v, %v", engines, err)
	}
}

func TestQuantilesAreMeasuredValues(t *testing.T) {
	var all []time.Duration
	for i := 100; i > 0; i-- {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	if got, want := QuantilesOf(all), (Quantiles{50, 95, 99, 100}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got, want := QuantilesOf(all[:1]), (Quantiles{1, 1, 1, 1}); got != want {
		t.Errorf("of one: got %+v, want %+v", got, want)
	}
	if got, want := (Quantiles{2, 4, 9, 0}).over(Quantiles{1, 8, 3, 0}), (Quantiles{2, 0.5, 3, 0}); got != want {
		t.Errorf("over another one: got %+v, want %+v", got, want)
	}
	if got := QuantilesOf(nil); got != (Quantiles{}) {
		t.Errorf("of none: got %+v", got)
	}
}

func TestTheQueueOfAContestWorksEachJobOnceHoweverItClaims(t *testing.T) {
	for name, o := range map[string]QueueOptions{
		"engines":    {Engines: 2, Slots: 3},
		"one by one": {Engines: 2, OneByOne: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := NewQueue(open(t), o, func() error { return nil })
			if _, err := contest.Burn(t.Context(), q, 321, contest.Bulk{Batch: 50}); err != nil {
				t.Error(err)
			}
		})
	}
}
