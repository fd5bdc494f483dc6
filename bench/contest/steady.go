package contest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Steadily says how [Steady] keeps a queue busy. Duration and Slice are
// required.
type Steadily struct {
	Duration time.Duration
	Slice    time.Duration // one figure for each
	Backlog  int           // jobs that wait meanwhile, about: 50,000
	Bulk     Bulk
}

// Steady has jobs enqueued and worked at once, and returns how many began per
// second in each slice. It starts with a backlog and keeps that up: producers
// wait while there is as much, so that they take from the machine no more than
// the work needs. What is left is not worked off. It fails unless the history has
// every job that began.
func Steady(ctx context.Context, q Queue, o Steadily) ([]float64, error) {
	if o.Backlog == 0 {
		o.Backlog = 50_000
	}
	if err := o.Bulk.Enqueue(ctx, q, o.Backlog); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	if err := o.Bulk.ready(ctx); err != nil {
		return nil, err
	}
	before, err := q.Completed(ctx)
	if err != nil {
		return nil, err
	}
	var begun atomic.Int64
	stop, err := q.Work(ctx, func(int) { begun.Add(1) })
	if err != nil {
		return nil, fmt.Errorf("work: %w", err)
	}
	feeding, enough := context.WithCancelCause(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { enough(o.feed(feeding, q, &begun)) })
	series, err := o.watch(feeding, &begun)
	enough(nil)
	wg.Wait()
	if err := errors.Join(err, stop()); err != nil {
		return nil, err
	}
	after, err := q.Completed(ctx)
	if err == nil && int64(after-before) != begun.Load() {
		err = fmt.Errorf("of %d jobs that began the history has %d", begun.Load(), after-before)
	}
	return series, err
}

// feed keeps the backlog up until its context ends, or it fails.
func (o Steadily) feed(ctx context.Context, q Queue, begun *atomic.Int64) error {
	bulk := o.Bulk.or()
	var enqueued atomic.Int64
	enqueued.Store(int64(o.Backlog))
	g, ctx := errgroup.WithContext(ctx)
	for range bulk.Producers {
		g.Go(func() error { return o.produce(ctx, q, bulk.Batch, &enqueued, begun) })
	}
	return g.Wait()
}

// produce enqueues batches while there is room for them.
func (o Steadily) produce(ctx context.Context, q Queue, batch int, enqueued, begun *atomic.Int64) error {
	for ctx.Err() == nil {
		if enqueued.Load()-begun.Load() >= int64(o.Backlog) {
			time.Sleep(time.Millisecond)
			continue
		}
		first := int(enqueued.Add(int64(batch))) - batch
		// Not the context of the feeding: to cut a batch off in the middle would
		// make the end of the measurement an error.
		if err := q.Enqueue(context.WithoutCancel(ctx), first, batch); err != nil {
			return fmt.Errorf("enqueue: %w", err)
		}
	}
	return nil
}

// watch counts by slices.
func (o Steadily) watch(ctx context.Context, begun *atomic.Int64) (series []float64, err error) {
	tick := time.NewTicker(o.Slice)
	defer tick.Stop()
	last, at := begun.Load(), time.Now()
	for range max(1, int(o.Duration/o.Slice)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return series, context.Cause(ctx)
		}
		now, t := begun.Load(), time.Now()
		series = append(series, float64(now-last)/t.Sub(at).Seconds())
		last, at = now, t
	}
	return series, nil
}

// Mean of some numbers; of none it is 0.
func Mean(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sum := 0.0
	for _, v := range all {
		sum += v
	}
	return sum / float64(len(all))
}
