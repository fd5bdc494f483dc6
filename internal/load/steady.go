package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
)

// SteadyOptions say how [Steady] loads. Duration is required; other zero fields
// mean their defaults.
type SteadyOptions struct {
	Duration time.Duration // for how long jobs are enqueued
	Every    time.Duration // of an interval: 5 s
	Rate     float64       // jobs enqueued per second; 0 is as many as the backlog allows

	Batch     int // jobs per enqueue: 1,000
	Producers int // that enqueue side by side: 2
	Backlog   int // jobs that have not started, at which producers wait: 20,000
	Engines   int // 1
	Slots     int // of each engine: the engine's default

	Open  Opener // a store for each engine but the first; nil: all share one
	Meter *Meter
}

// Interval is a part of the time, in which as much happened as in any other if
// the load is steady.
type Interval struct {
	At                float64 `json:"at_s"` // its end, after the beginning of the load
	Seconds           float64 `json:"s"`
	EnqueuedPerSecond float64 `json:"enqueued_per_s"`
	WorkedPerSecond   float64 `json:"worked_per_s"`
	Backlog           int64   `json:"backlog"`         // enqueued and not started, at its end
	LongestWait       float64 `json:"longest_wait_ms"` // of the jobs that started in it, from when each was due
}

// SteadyResult is what [Steady] measured.
type SteadyResult struct {
	Seconds           float64    `json:"s"`
	Enqueued          int64      `json:"enqueued"`
	EnqueuedPerSecond float64    `json:"enqueued_per_s"`
	WorkedPerSecond   float64    `json:"worked_per_s"` // while jobs were enqueued
	Intervals         []Interval `json:"intervals"`

	// Jobs worked per second in single intervals.
	First  float64 `json:"first_per_s"`
	Last   float64 `json:"last_per_s"`
	Median float64 `json:"median_per_s"`
	Least  float64 `json:"least_per_s"`

	DrainSeconds float64 `json:"drain_s"`  // behind the last enqueue, until nothing was left
	Verified     bool    `json:"verified"` // the store says that each job completed
}

// Steady enqueues jobs that do nothing and has engines work them off at the same
// time. Producers wait while there is a backlog, so that the slower side sets the
// pace for both. At the end what is left is worked off.
func Steady(ctx context.Context, store stint.Store, o SteadyOptions) (SteadyResult, error) {
	o.Every = cmp.Or(o.Every, 5*time.Second)
	o.Batch, o.Producers, o.Backlog = cmp.Or(o.Batch, 1000), cmp.Or(o.Producers, 2), cmp.Or(o.Backlog, 20_000)
	s := &steady{SteadyOptions: o, meter: o.Meter.or()}
	f, err := startFleet(ctx, store, o.Open, max(1, o.Engines), s.mux(), engine.Config{Slots: o.Slots})
	if err != nil {
		return SteadyResult{}, err
	}
	r, err := s.run(ctx, f, stint.NewClient(store))
	if stopped := f.stop(); err == nil {
		err = stopped
	}
	if err == nil {
		r.Verified, err = completed(ctx, store, int(r.Enqueued))
	}
	return r, err
}

// steady is a load that runs.
type steady struct {
	SteadyOptions
	meter   *Meter
	promise atomic.Int64 // jobs that producers have set out to enqueue
	longest atomic.Int64 // nanoseconds that a job of this interval waited
}

func (s *steady) mux() *stint.Mux {
	mux := stint.NewMux()
	mux.Add(noop, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		s.meter.Started.Add(1)
		raise(&s.longest, int64(job.Started.Sub(job.Due)))
		return nil, nil
	})
	return mux
}

// raise makes a figure at least v.
func raise(figure *atomic.Int64, v int64) {
	for {
		old := figure.Load()
		if v <= old || figure.CompareAndSwap(old, v) {
			return
		}
	}
}

// run enqueues for as long as it was told to, and waits for the last job.
func (s *steady) run(ctx context.Context, f *fleet, client *stint.Client) (SteadyResult, error) {
	begin := time.Now()
	g, loading := errgroup.WithContext(ctx)
	for range s.Producers {
		g.Go(func() error { return s.produce(loading, client, begin) })
	}
	var intervals []Interval
	g.Go(func() (err error) {
		intervals, err = s.observe(loading, f, begin)
		return err
	})
	if err := g.Wait(); err != nil {
		return SteadyResult{}, err
	}
	r := conclude(intervals)
	r.Enqueued = s.meter.Enqueued.Load()
	begin = time.Now()
	err := f.waitFor(ctx, s.meter, r.Enqueued)
	r.DrainSeconds = time.Since(begin).Seconds()
	return r, err
}

// produce enqueues batches until the time is over.
func (s *steady) produce(ctx context.Context, client *stint.Client, begin time.Time) error {
	batch := slices.Repeat([]stint.NewJob{noop.Job(nil)}, s.Batch)
	for time.Since(begin) < s.Duration && ctx.Err() == nil {
		n := s.take(time.Since(begin))
		if n == 0 {
			pause(ctx, time.Millisecond)
			continue
		}
		if _, err := client.EnqueueMany(ctx, batch[:n]); err != nil {
			return err
		}
		s.meter.Enqueued.Add(n)
	}
	return nil
}

// take promises the next jobs: a batch, or what the rate has made due by now,
// and none while the backlog is full.
func (s *steady) take(elapsed time.Duration) int64 {
	for {
		promised := s.promise.Load()
		n := min(int64(s.Batch), int64(s.Backlog)-promised+s.meter.Started.Load())
		if s.Rate > 0 {
			n = min(n, int64(s.Rate*elapsed.Seconds())-promised)
		} else if n < min(int64(s.Batch), int64(s.Backlog)) {
			n = 0 // whole batches: small ones cost more
		}
		if n <= 0 {
			return 0
		}
		if s.promise.CompareAndSwap(promised, promised+n) {
			return n
		}
	}
}

// observe notes down each interval until the time is over.
func (s *steady) observe(ctx context.Context, f *fleet, begin time.Time) (all []Interval, err error) {
	var was, enqueued, started = time.Duration(0), int64(0), int64(0)
	for was < s.Duration {
		due := begin.Add(min(time.Duration(len(all)+1)*s.Every, s.Duration))
		if err := f.until(ctx, due); err != nil {
			return all, err
		}
		now, e, w := time.Since(begin), s.meter.Enqueued.Load(), s.meter.Started.Load()
		seconds := (now - was).Seconds()
		all = append(all, Interval{
			At: now.Seconds(), Seconds: seconds,
			EnqueuedPerSecond: float64(e-enqueued) / seconds, WorkedPerSecond: float64(w-started) / seconds,
			// A job can have started before its enqueue returned.
			Backlog: max(0, e-w), LongestWait: float64(s.longest.Swap(0)) / 1e6,
		})
		was, enqueued, started = now, e, w
	}
	return all, nil
}

// conclude makes the figures of the whole of those of the intervals.
func conclude(all []Interval) SteadyResult {
	last := all[len(all)-1]
	r := SteadyResult{Seconds: last.At, Intervals: all, First: all[0].WorkedPerSecond, Last: last.WorkedPerSecond}
	rates := make([]float64, len(all))
	for i, x := range all {
		rates[i] = x.WorkedPerSecond
		r.EnqueuedPerSecond += x.EnqueuedPerSecond * x.Seconds
		r.WorkedPerSecond += x.WorkedPerSecond * x.Seconds
	}
	r.EnqueuedPerSecond /= last.At
	r.WorkedPerSecond /= last.At
	slices.Sort(rates)
	r.Least = rates[0]
	r.Median = (rates[(len(rates)-1)/2] + rates[len(rates)/2]) / 2
	return r
}

// pause waits, or returns early when the context ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// stalled is after how long without progress the rest is not waited for. It is
// longer than any recovery takes.
const stalled = time.Minute

// waitFor returns when so many jobs have started, or with why they never will.
func (f *fleet) waitFor(ctx context.Context, meter *Meter, n int64) error {
	last, since := int64(-1), time.Now()
	for {
		now := meter.Started.Load()
		switch {
		case now >= n:
			return nil
		case now != last:
			last, since = now, time.Now()
		case time.Since(since) > stalled:
			return fmt.Errorf("of %d jobs %d started, and no other one for %v", n, now, stalled)
		}
		if err := f.until(ctx, time.Now().Add(5*time.Millisecond)); err != nil {
			return err
		}
	}
}
