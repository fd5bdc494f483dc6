package load

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
)

func TestSteadyTellsEachIntervalAndEndsEveryJob(t *testing.T) {
	var m Meter
	r, err := Steady(t.Context(), open(t), SteadyOptions{
		Duration: 2500 * time.Millisecond, Every: time.Second, Batch: 50, Backlog: 200, Engines: 2, Slots: 3, Meter: &m,
	})
	if err != nil {
		t.Fatal(err)
	}
	var all float64
	for _, x := range r.Intervals {
		all += x.Seconds
	}
	if len(r.Intervals) != 3 || math.Abs(all-r.Seconds) > 1e-6 {
		t.Errorf("two seconds and a half have other parts than two seconds and a half of one: %+v", r.Intervals)
	}
	if !r.Verified || r.Enqueued == 0 || r.Enqueued != m.Started.Load() || r.Seconds < 2.5 {
		t.Errorf("the figures are odd: %+v", r)
	}
	if r.Least > r.Median || r.Least > r.First || r.Least > r.Last {
		t.Errorf("the least is not: %+v", r)
	}
}

func TestProducersWaitForTheBacklog(t *testing.T) {
	s := steady{SteadyOptions: SteadyOptions{Batch: 40, Backlog: 100}, meter: &Meter{}}
	for _, want := range []int64{40, 40, 0} { // a third batch is not whole
		if n := s.take(0); n != want {
			t.Fatalf("with %d promised it takes %d, want %d", s.promise.Load(), n, want)
		}
	}
	s.meter.Started.Add(20)
	if n := s.take(0); n != 40 {
		t.Errorf("when 20 of 80 have started it takes %d, want 40", n)
	}
}

func TestARateIsWhatHasBecomeDue(t *testing.T) {
	s := steady{SteadyOptions: SteadyOptions{Batch: 40, Backlog: 100, Rate: 10}, meter: &Meter{}}
	for _, c := range []struct {
		elapsed time.Duration
		want    int64
	}{{99 * time.Millisecond, 0}, {time.Second, 10}, {time.Second, 0}, {10 * time.Second, 40}, {10 * time.Second, 40}, {10 * time.Second, 10}, {100 * time.Second, 0}} {
		if n := s.take(c.elapsed); n != c.want {
			t.Errorf("after %v it takes %d, want %d", c.elapsed, n, c.want)
		}
	}
}

func TestTheWholeIsMadeOfItsIntervals(t *testing.T) {
	r := conclude([]Interval{
		{At: 5, Seconds: 5, EnqueuedPerSecond: 20, WorkedPerSecond: 10},
		{At: 10, Seconds: 5, EnqueuedPerSecond: 20, WorkedPerSecond: 40},
		{At: 12, Seconds: 2, EnqueuedPerSecond: 50, WorkedPerSecond: 25},
	})
	if r.WorkedPerSecond != 25 || r.EnqueuedPerSecond != 25 || r.First != 10 || r.Last != 25 || r.Median != 25 || r.Least != 10 {
		t.Errorf("got %+v", r)
	}
}

func TestSteadyDoesNotBelieveAStoreWithOtherJobs(t *testing.T) {
	s := open(t)
	if _, err := stint.NewClient(s).Enqueue(t.Context(), stint.NewJob{Kind: "other"}); err != nil {
		t.Fatal(err)
	}
	_, err := Steady(t.Context(), s, SteadyOptions{Duration: 10 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "the store counts") {
		t.Errorf("got %v", err)
	}
}

func TestSteadyAndMixEndWithTheirContext(t *testing.T) {
	s := open(t)
	for name, run := range map[string]func(ctx context.Context) error{
		"steady": func(ctx context.Context) error {
			_, err := Steady(ctx, s, SteadyOptions{Duration: time.Hour, Batch: 10, Backlog: 20})
			return err
		},
		"mix": func(ctx context.Context) error {
			_, err := Mix(ctx, s, MixOptions{N: 1e9, Work: Range[time.Duration]{time.Millisecond, time.Millisecond}})
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if err := run(ctx); err == nil {
			t.Errorf("%s: an hour went by in a tenth of a second", name)
		}
		cancel()
		if engines, err := s.Engines(t.Context()); err != nil || len(engines) != 0 {
			t.Errorf("%s: engines were left behind: %v, %v", name, engines, err)
		}
	}
}
