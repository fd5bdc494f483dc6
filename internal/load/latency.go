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
	Rate     float64 // jobs per second, low enough to leave the engine idle
	Duration time.Duration
	Slots    int // of the engine: its default
	Meter    *Meter
}

// LatencyResult is what [Latency] measured, in milliseconds on the monotonic
// clock of one process.
type LatencyResult struct {
	N           int       `json:"n"`
	Rate        float64   `json:"rate"`                // that was really reached
	FromCall    Quantiles `json:"enqueue_to_start_ms"` // from when Enqueue was called
	FromReturn  Quantiles `json:"return_to_start_ms"`  // from when it returned; negative when the handler was first
	EnqueueTook Quantiles `json:"enqueue_ms"`          // the call itself
}

// warmUp is how many jobs go ahead unmeasured: they find the engine joined,
// statements prepared and connections open.
const warmUp = 20

// patience bounds the wait for the last job to start.
const patience = 10 * time.Second

// sample is one job's three moments.
type sample struct {
	called, returned time.Time
	started          atomic.Int64 // nanoseconds after the base that all samples share
}

// Latency enqueues jobs one at a time at a low rate and measures how long each
// takes to start. Gaps vary by half, so that no poll keeps step with them.
func Latency(ctx context.Context, store stint.Store, o LatencyOptions) (LatencyResult, error) {
	n := warmUp + max(1, int(o.Rate*o.Duration.Seconds()))
	samples := make([]sample, n)
	meter := o.Meter.or()
	base := time.Now()
	done := make(chan struct{})
	mux := stint.NewMux()
	mux.Add(timed, func(_ context.Context, job *stint.Job) (json.RawMessage, error) {
		now := int64(time.Since(base))
		var i int
		if err := json.Unmarshal(job.Args, &i); err != nil {
			return nil, err
		}
		samples[i].started.Store(now)
		if meter.Started.Add(1) == int64(n) {
			close(done)
		}
		return nil, nil
	})
	f, err := startFleet(ctx, store, nil, 1, mux, engine.Config{Slots: o.Slots})
	if err != nil {
		return LatencyResult{}, err
	}
	began, err := trickle(ctx, f, store, o, samples, meter)
	took := time.Since(began)
	if err == nil {
		limit, cancel := context.WithTimeoutCause(ctx, patience, errLate)
		if err = f.wait(limit, done); err == errLate {
			err = fmt.Errorf("only %d of %d jobs started within %v", meter.Started.Load(), n, patience)
		}
		cancel()
	}
	if stopped := f.stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return LatencyResult{}, err
	}
	return summarize(samples[warmUp:], base, took), nil
}

var timed = stint.Declaration{Name: "load_timed", Retry: retry.None()}

// trickle enqueues the jobs and returns when the measured part began.
func trickle(ctx context.Context, f *fleet, store stint.Enqueuer, o LatencyOptions, samples []sample, meter *Meter) (began time.Time, err error) {
	client := stint.NewClient(store)
	gap := float64(time.Second) / o.Rate
	due := time.Now()
	for i := range samples {
		if i == warmUp {
			began = time.Now()
		}
		due = due.Add(time.Duration(gap * (0.5 + rand.Float64())))
		if err := f.until(ctx, due); err != nil {
			return began, err
		}
		s := &samples[i]
		s.called = time.Now()
		if _, err := client.Enqueue(ctx, timed.Job(json.RawMessage(fmt.Sprint(i)))); err != nil {
			return began, err
		}
		s.returned = time.Now()
		meter.Enqueued.Add(1)
	}
	return began, nil
}

var errLate = errors.New("jobs did not start")

func summarize(samples []sample, base time.Time, took time.Duration) LatencyResult {
	var fromCall, fromReturn, call []time.Duration
	for i := range samples {
		s := &samples[i]
		started := time.Duration(s.started.Load())
		fromCall = append(fromCall, started-s.called.Sub(base))
		fromReturn = append(fromReturn, started-s.returned.Sub(base))
		call = append(call, s.returned.Sub(s.called))
	}
	return LatencyResult{
		N: len(samples), Rate: float64(len(samples)) / took.Seconds(),
		FromCall: quantiles(fromCall), FromReturn: quantiles(fromReturn), EnqueueTook: quantiles(call),
	}
}
