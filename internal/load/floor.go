package load

import (
	"context"
	"fmt"
	"time"
)

// A floor is the least that anybody must do who keeps the same promises with
// the same database. Packages pgload and sqliteload have them; here they are
// measured.

// Log is a queue stripped to what cannot be left out: n equal jobs are stored,
// and then read in order, and of each a row of history is stored. Both tell
// done of each batch that is durable, from any goroutine.
type Log interface {
	Append(ctx context.Context, n int, done func(int)) error
	Work(ctx context.Context, n int, done func(int)) error
}

// Insert stores one row durably. Each producer, numbered from 0, has one call
// under way at a time.
type Insert func(ctx context.Context, producer int) error

// Round stores one row durably, has a listener told of it where the database
// can, and reads it. It is called one at a time.
type Round func(ctx context.Context) error

// LimitResult is what [Limit] measured.
type LimitResult struct {
	N                int     `json:"n"`
	EnqueueSeconds   float64 `json:"enqueue_s"`
	EnqueuePerSecond float64 `json:"enqueue_per_s"`
	WorkSeconds      float64 `json:"work_s"`
	WorkPerSecond    float64 `json:"work_per_s"`
	JobsPerSecond    float64 `json:"jobs_per_s"` // taken in and worked off
}

// Limit measures how fast a log takes n jobs in, and how fast it works them off,
// one after the other: what [Burn] could reach at most, and both together what
// could be reached by a workload that does both at once.
func Limit(ctx context.Context, log Log, n int, meter *Meter) (LimitResult, error) {
	meter = meter.or()
	r := LimitResult{N: n}
	begin := time.Now()
	if err := log.Append(ctx, n, func(n int) { meter.Enqueued.Add(int64(n)) }); err != nil {
		return r, fmt.Errorf("limit: %w", err)
	}
	r.EnqueueSeconds, r.EnqueuePerSecond = rate(n, begin)
	begin = time.Now()
	if err := log.Work(ctx, n, func(n int) { meter.Started.Add(int64(n)) }); err != nil {
		return r, fmt.Errorf("limit: %w", err)
	}
	r.WorkSeconds, r.WorkPerSecond = rate(n, begin)
	r.JobsPerSecond = float64(n) / (r.EnqueueSeconds + r.WorkSeconds)
	return r, nil
}

// rate is how long n took since an instant, in seconds, and how many that is
// per second.
func rate(n int, begin time.Time) (seconds, perSecond float64) {
	seconds = time.Since(begin).Seconds()
	return seconds, float64(n) / seconds
}
