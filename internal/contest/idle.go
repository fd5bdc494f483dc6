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

// IdleFigures are what [Idle] measures, in milliseconds.
var IdleFigures = []Figure{{Name: "p50 ms", LessIsMore: true}, {Name: "p99 ms", LessIsMore: true}}

const (
	// warmUp is how many jobs go ahead unmeasured: they find connections open
	// and statements prepared.
	warmUp = 20

	// lateness is how long the last jobs may take.
	lateness = 30 * time.Second
)

// Idle enqueues single jobs at a rate that leaves the workers idle, and measures
// how long after the call of Enqueue each began. Gaps vary by half, so that no
// poll keeps step with them.
func Idle(ctx context.Context, q Queue, rate float64, duration time.Duration) (Figures, error) {
	n := warmUp + max(1, int(rate*duration.Seconds()))
	called, began := make([]time.Duration, n), make([]atomic.Int64, n)
	base := time.Now()
	var ran atomic.Int64
	done := make(chan struct{})
	stop, err := q.Work(ctx, func(job int) {
		began[job].Store(int64(time.Since(base)))
		if ran.Add(1) == int64(n) {
			close(done)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	gap := float64(time.Second) / rate
	for i := range n {
		if err := pause(ctx, time.Duration(gap*(0.5+rand.Float64()))); err != nil {
			return nil, errors.Join(err, stop())
		}
		called[i] = time.Since(base)
		if err := q.Enqueue(ctx, i, 1); err != nil {
			return nil, errors.Join(fmt.Errorf("enqueue: %w", err), stop())
		}
	}
	limit, cancel := context.WithTimeoutCause(ctx, lateness, fmt.Errorf("not all of %d jobs began within %v", n, lateness))
	defer cancel()
	select {
	case <-done:
	case <-limit.Done():
		return nil, errors.Join(context.Cause(limit), stop())
	}
	all := make([]float64, 0, n-warmUp)
	for i := warmUp; i < n; i++ {
		all = append(all, (time.Duration(began[i].Load())-called[i]).Seconds()*1000)
	}
	return Figures{"p50 ms": quantile(all, 0.50), "p99 ms": quantile(all, 0.99)}, stop()
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

// quantile is the one of nearest rank, which was measured.
func quantile(all []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max(0, int(math.Ceil(q*float64(len(sorted))))-1)]
}
