package contest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Queue is a job queue as a contest knows it, with a database of its own that
// was empty when it was opened. A job is a number, which travels as the
// arguments {"n":7}; its work is to call a function.
//
// Whatever it is, it keeps the history of what it did, and a job that it took
// in or completed survives a power cut: otherwise the figures say nothing.
type Queue interface {
	// Enqueue stores n jobs, numbered from the first, at once. They are durable
	// when it returns. It may be called concurrently.
	Enqueue(ctx context.Context, first, n int) error

	// Work starts to work. Handle is called once for each job, concurrently,
	// with its number, or with Unnumbered. Stop lets the work end, and returns
	// when every outcome is recorded durably.
	Work(ctx context.Context, handle func(n int)) (stop func() error, err error)

	// Completed counts the history.
	Completed(ctx context.Context) (int, error)

	// Close lets the database go.
	Close() error
}

// Unnumbered is what a queue calls every job whose jobs carry no arguments.
const Unnumbered = -1

// Bulk says how a queue likes to take in many jobs. Zero fields mean defaults.
type Bulk struct {
	Batch     int // jobs at once: 5,000
	Producers int // side by side: 2

	// Ready is called between the first load and the work, off the clock, for
	// what a database that has been in use for a while has: statistics that its
	// planner goes by. Nil does nothing.
	Ready func(ctx context.Context) error

	// Job is what each job of a burn does. Nil does nothing.
	Job func()
}

// The figures of [Burn]. The processor time of this process is one where the
// system tells it: unlike the rates it hardly depends on what else the machine
// does.
const (
	EnqueueRate = "enqueue/s"
	WorkRate    = "work/s"
	ClientCPU   = "CPU µs/job"
)

// BurnFigures are what [Burn] measures.
var BurnFigures = []Figure{{Name: EnqueueRate}, {Name: WorkRate}, {Name: ClientCPU, LessIsMore: true}}

// Burn enqueues n jobs that do nothing and has them worked off, one after the
// other: enqueuing until the last batch is durable, working from the start of
// the workers until the last outcome is. It fails unless every job ran once; use
// [Recorded] to have the history looked at, too.
func Burn(ctx context.Context, q Queue, n int, bulk Bulk) (Figures, error) {
	usedBefore, _ := ProcessTime()
	begin := time.Now()
	if err := bulk.Enqueue(ctx, q, n); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	enqueued := time.Since(begin)
	if err := bulk.ready(ctx); err != nil {
		return nil, err
	}
	begin = time.Now()
	if err := bulk.workOff(ctx, q, n); err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	worked := time.Since(begin)
	f := Figures{EnqueueRate: float64(n) / enqueued.Seconds(), WorkRate: float64(n) / worked.Seconds()}
	if used, ok := ProcessTime(); ok {
		f[ClientCPU] = float64((used - usedBefore).Microseconds()) / float64(n)
	}
	return f, nil
}

// Recorded fails unless the history has n more jobs after do than before. It
// counts outside of what do measures.
func Recorded(ctx context.Context, q Queue, n int, do func() error) error {
	before, err := q.Completed(ctx)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := q.Completed(ctx)
	if err == nil && after-before != n {
		err = fmt.Errorf("of %d jobs the history has %d", n, after-before)
	}
	return err
}

// Enqueue stores jobs 0 to n-1 in batches.
func (b Bulk) Enqueue(ctx context.Context, q Queue, n int) error {
	b = b.or()
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range b.Producers {
		g.Go(func() error {
			for ctx.Err() == nil {
				first := int(next.Add(int64(b.Batch))) - b.Batch
				if first >= n {
					return nil
				}
				if err := q.Enqueue(ctx, first, min(b.Batch, n-first)); err != nil {
					return err
				}
			}
			return context.Cause(ctx)
		})
	}
	return g.Wait()
}

func (b Bulk) ready(ctx context.Context) error {
	if b.Ready == nil {
		return nil
	}
	return b.Ready(ctx)
}

func (b Bulk) or() Bulk {
	if b.Batch == 0 {
		b.Batch = 5000
	}
	if b.Producers == 0 {
		b.Producers = 2
	}
	return b
}

// workOff works until n jobs ran, and stops.
func (b Bulk) workOff(ctx context.Context, q Queue, n int) error {
	var ran, twice atomic.Int64
	seen := make([]atomic.Bool, n)
	done := make(chan struct{})
	stop, err := q.Work(ctx, func(job int) {
		if b.Job != nil {
			b.Job()
		}
		if job != Unnumbered && (job < 0 || job >= n || seen[job].Swap(true)) {
			twice.Add(1)
			return
		}
		switch now := ran.Add(1); {
		case now == int64(n):
			close(done)
		case now > int64(n):
			twice.Add(1)
		}
	})
	if err != nil {
		return err
	}
	err = errors.Join(await(ctx, done, &ran), stop())
	if again := twice.Load(); err == nil && again > 0 {
		err = fmt.Errorf("%d jobs ran twice, or were never enqueued", again)
	}
	return err
}

// patience is how long a queue that has work may do nothing.
const patience = 30 * time.Second

// await returns when done is closed, or with why it will not be: a queue whose
// workers died says nothing.
func await(ctx context.Context, done <-chan struct{}, ran *atomic.Int64) error {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	for last := int64(-1); ; {
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
			now := ran.Load()
			if now == last {
				return fmt.Errorf("no job ran for %v, after %d had", patience, now)
			}
			last = now
		}
	}
}
