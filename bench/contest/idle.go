package contest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

// IdleFigures are what [Idle] measures of each kind of time, in milliseconds.
var IdleFigures = []Figure{{Name: "p50 ms", LessIsMore: true}, {Name: "p99 ms", LessIsMore: true}}

const (
	// warmUp is how many jobs go ahead unmeasured: they find connections open
	// and statements prepared.
	warmUp = 20

	// lateness is how long the last jobs may take.
	lateness = 30 * time.Second

	// A scheduled job is due after its enqueue by a random time between these.
	soonest, latest = 50 * time.Millisecond, 2 * time.Second
)

// Idly says how [Idle] measures. Rate and Duration are required.
type Idly struct {
	Rate     float64 // jobs per second, low enough to leave the workers idle
	Duration time.Duration

	// Floor is what has a turn in the middle of each gap, to compare with. Nil
	// is nothing.
	Floor func(ctx context.Context) error

	// Later enqueues a job that is due at an instant of this process's clock,
	// for each share of the jobs that is Scheduled, from 0 to below 1.
	Later     func(ctx context.Context, job int, due time.Time) error
	Scheduled float64
}

// Times are what [Idle] measured, one of each job or turn.
type Times struct {
	Start  []time.Duration // from the call of Enqueue to the start of the job
	Return []time.Duration // from the return of Enqueue; negative when the job was first
	Call   []time.Duration // of Enqueue itself
	Floor  []time.Duration
	Late   []time.Duration // of scheduled jobs: from when they were due
}

// Idle enqueues single jobs at a rate that leaves the workers idle, and measures
// how long after the call of Enqueue each began. Gaps vary by half, so that no
// poll keeps step with them.
func Idle(ctx context.Context, q Queue, o Idly) (Times, error) {
	n := warmUp + max(1, int(o.Rate*o.Duration.Seconds()))
	r := &idle{Idly: o, base: time.Now(), jobs: make([]idleJob, n)}
	done := make(chan struct{})
	var ran atomic.Int64
	stop, err := q.Work(ctx, func(job int) {
		r.jobs[job].began.Store(int64(time.Since(r.base)))
		if ran.Add(1) == int64(n) {
			close(done)
		}
	})
	if err != nil {
		return Times{}, fmt.Errorf("work: %w", err)
	}
	if err := r.trickle(ctx, q); err != nil {
		return Times{}, errors.Join(err, stop())
	}
	patience := lateness
	if o.Scheduled > 0 {
		patience += latest
	}
	limit, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not all of %d jobs began within %v", n, patience))
	defer cancel()
	select {
	case <-done:
	case <-limit.Done():
		return Times{}, errors.Join(context.Cause(limit), stop())
	}
	return r.times(), stop()
}

// idle is a measurement under way.
type idle struct {
	Idly
	base  time.Time
	jobs  []idleJob
	floor []time.Duration
}

// idleJob is one job's moments, after the base.
type idleJob struct {
	called, returned time.Duration
	due              time.Duration // 0 when it was ready at once
	began            atomic.Int64
}

// trickle enqueues the jobs, each at the end of a gap, and gives the floor its
// turn in the middle of it.
func (r *idle) trickle(ctx context.Context, q Queue) error {
	gap := float64(time.Second) / r.Rate
	next := time.Now()
	for i := range r.jobs {
		wait := time.Duration(gap * (0.5 + rand.Float64()))
		if r.Floor != nil {
			if err := pause(ctx, time.Until(next.Add(wait/2))); err != nil {
				return err
			}
			began := time.Now()
			if err := r.Floor(ctx); err != nil {
				return fmt.Errorf("the floor: %w", err)
			}
			r.floor = append(r.floor, time.Since(began))
		}
		next = next.Add(wait)
		if err := pause(ctx, time.Until(next)); err != nil {
			return err
		}
		if err := r.enqueue(ctx, q, i); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
	}
	return nil
}

func (r *idle) enqueue(ctx context.Context, q Queue, i int) (err error) {
	job := &r.jobs[i]
	due := time.Now()
	job.called = due.Sub(r.base)
	if math.Floor(float64(i+1)*r.Scheduled) > math.Floor(float64(i)*r.Scheduled) { // spread evenly
		// A short measurement waits no longer than it measures.
		due = due.Add(soonest + rand.N(max(1, min(latest, r.Duration)-soonest)))
		job.due = due.Sub(r.base)
		err = r.Later(ctx, i, due)
	} else {
		err = q.Enqueue(ctx, i, 1)
	}
	job.returned = time.Since(r.base)
	return err
}

func (r *idle) times() (t Times) {
	for i := range r.jobs[warmUp:] {
		job := &r.jobs[warmUp+i]
		began := time.Duration(job.began.Load())
		if job.due > 0 {
			t.Late = append(t.Late, began-job.due)
			continue
		}
		t.Start = append(t.Start, began-job.called)
		t.Return = append(t.Return, began-job.returned)
		t.Call = append(t.Call, job.returned-job.called)
	}
	if len(r.floor) > warmUp {
		t.Floor = r.floor[warmUp:]
	}
	return t
}

// Quantiles tells the figures of some times by their names, such as "p50 ms":
// of nearest rank, so that each is one that was measured. Of no times there are
// none.
func Quantiles(all []time.Duration) Figures {
	f := Figures{}
	if len(all) == 0 {
		return f
	}
	sorted := slices.Sorted(slices.Values(all))
	for name, q := range map[string]float64{"p50 ms": 0.50, "p99 ms": 0.99, "max ms": 1} {
		f[name] = sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)].Seconds() * 1000
	}
	return f
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
