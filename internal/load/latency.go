package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

// LatencyOptions say how [Latency] measures. Rate and Duration are required.
type LatencyOptions struct {
	Rate      float64 // jobs per second, low enough to leave the engine idle
	Duration  time.Duration
	Slots     int     // of the engine: its default
	Scheduled float64 // the part of the jobs that are due later, from 0 to below 1
	Floor     Round   // to compare with, one for each job; nil for none
	Meter     *Meter
}

// LatencyResult is what [Latency] measured, in milliseconds on the monotonic
// clock of one process.
type LatencyResult struct {
	N           int        `json:"n"`                   // jobs that were ready at once
	Rate        float64    `json:"rate"`                // that was really reached, of all jobs
	FromCall    Quantiles  `json:"enqueue_to_start_ms"` // from when Enqueue was called
	FromReturn  Quantiles  `json:"return_to_start_ms"`  // from when it returned; negative when the handler was first
	EnqueueTook Quantiles  `json:"enqueue_ms"`          // the call itself
	FloorN      int        `json:"floor_n,omitempty"`   // rounds of the floor between them
	Floor       *Quantiles `json:"floor_ms,omitempty"`
	Ratio       *Quantiles `json:"ratio,omitempty"` // of FromCall to Floor: no times
	Lateness    *Lateness  `json:"lateness,omitempty"`
}

// warmUp is how many jobs go ahead unmeasured: they find the engine joined,
// statements prepared and connections open.
const warmUp = 20

// patience bounds the wait for the last job to start, from when it is due.
const patience = 10 * time.Second

// sample is one job's moments, by the clock of this process.
type sample struct {
	called, returned time.Time
	due              time.Time    // zero when it was ready at once
	started          atomic.Int64 // nanoseconds after the base that all samples share
}

// Latency enqueues jobs one at a time at a low rate and measures how long each
// takes to start. Gaps vary by half, so that no poll keeps step with them. In the
// middle of each gap the floor has its turn.
func Latency(ctx context.Context, store stint.Store, o LatencyOptions) (LatencyResult, error) {
	l := &latency{LatencyOptions: o, meter: o.Meter.or(), base: time.Now(), done: make(chan struct{})}
	l.samples = make([]sample, warmUp+max(1, int(o.Rate*o.Duration.Seconds())))
	mux := stint.NewMux()
	mux.Add(timed, l.start)
	f, err := startFleet(ctx, store, nil, 1, mux, engine.Config{Slots: o.Slots})
	if err != nil {
		return LatencyResult{}, err
	}
	r, err := l.run(ctx, f, store)
	if stopped := f.stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return LatencyResult{}, err
	}
	return r, nil
}

var timed = stint.Declaration{Name: "load_timed", Retry: retry.None()}

// latency is a measurement under way.
type latency struct {
	LatencyOptions
	meter   *Meter
	base    time.Time
	samples []sample
	floor   []time.Duration
	done    chan struct{} // closed when every job has started
}

// start is the handler: it notes when a job started.
func (l *latency) start(_ context.Context, job *stint.Job) (json.RawMessage, error) {
	now := int64(time.Since(l.base))
	var i int
	if err := json.Unmarshal(job.Args, &i); err != nil {
		return nil, err
	}
	l.samples[i].started.Store(now)
	if l.meter.Started.Add(1) == int64(len(l.samples)) {
		close(l.done)
	}
	return nil, nil
}

// run enqueues the jobs and waits for the last to start.
func (l *latency) run(ctx context.Context, f *fleet, store stint.Store) (LatencyResult, error) {
	before, err := readClock(ctx, store)
	if err != nil {
		return LatencyResult{}, err
	}
	began, err := l.trickle(ctx, f, store, before)
	if err != nil {
		return LatencyResult{}, err
	}
	took := time.Since(began)
	if err := l.wait(ctx, f); err != nil {
		return LatencyResult{}, err
	}
	after, err := readClock(ctx, store)
	if err != nil {
		return LatencyResult{}, err
	}
	r := l.summarize()
	r.Rate = float64(len(l.samples)-warmUp) / took.Seconds()
	r.Lateness = l.lateness(before, after)
	return r, nil
}

// trickle enqueues the jobs and returns when the measured part began.
func (l *latency) trickle(ctx context.Context, f *fleet, store stint.Enqueuer, clock clock) (began time.Time, err error) {
	client := stint.NewClient(store)
	gap := float64(time.Second) / l.Rate
	next := time.Now()
	for i := range l.samples {
		if i == warmUp {
			began = time.Now()
		}
		wait := time.Duration(gap * (0.5 + rand.Float64()))
		if err := l.round(ctx, f, next.Add(wait/2), i >= warmUp); err != nil {
			return began, err
		}
		next = next.Add(wait)
		if err := f.until(ctx, next); err != nil {
			return began, err
		}
		s, job := &l.samples[i], timed.Job(json.RawMessage(fmt.Sprint(i)))
		if l.isScheduled(i) {
			s.due = time.Now().Add(l.soon())
			job.RunAt = clock.there(s.due)
		}
		s.called = time.Now()
		if _, err := client.Enqueue(ctx, job); err != nil {
			return began, err
		}
		s.returned = time.Now()
		l.meter.Enqueued.Add(1)
	}
	return began, nil
}

// round gives the floor its turn at an instant.
func (l *latency) round(ctx context.Context, f *fleet, at time.Time, counts bool) error {
	if l.Floor == nil {
		return nil
	}
	if err := f.until(ctx, at); err != nil {
		return err
	}
	began := time.Now()
	if err := l.Floor(ctx); err != nil {
		return fmt.Errorf("the floor: %w", err)
	}
	if took := time.Since(began); counts {
		l.floor = append(l.floor, took)
	}
	return nil
}

var errLate = errors.New("jobs did not start")

// wait waits for the last job to start.
func (l *latency) wait(ctx context.Context, f *fleet) error {
	last := time.Now()
	for i := range l.samples {
		if due := l.samples[i].due; due.After(last) {
			last = due
		}
	}
	limit, cancel := context.WithDeadlineCause(ctx, last.Add(patience), errLate)
	defer cancel()
	if err := f.wait(limit, l.done); err != errLate {
		return err
	}
	return fmt.Errorf("only %d of %d jobs started within %v", l.meter.Started.Load(), len(l.samples), patience)
}

func (l *latency) summarize() LatencyResult {
	var fromCall, fromReturn, call []time.Duration
	for i := range l.samples[warmUp:] {
		s := &l.samples[warmUp+i]
		if !s.due.IsZero() {
			continue
		}
		started := time.Duration(s.started.Load())
		fromCall = append(fromCall, started-s.called.Sub(l.base))
		fromReturn = append(fromReturn, started-s.returned.Sub(l.base))
		call = append(call, s.returned.Sub(s.called))
	}
	r := LatencyResult{N: len(call), FromCall: QuantilesOf(fromCall), FromReturn: QuantilesOf(fromReturn), EnqueueTook: QuantilesOf(call)}
	if len(l.floor) > 0 {
		r.FloorN, r.Floor = len(l.floor), new(QuantilesOf(l.floor))
		r.Ratio = new(r.FromCall.over(*r.Floor))
	}
	return r
}
