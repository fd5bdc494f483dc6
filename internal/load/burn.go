package load

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

// BurnOptions say how [Burn] burns. N is required; other zero fields mean
// their defaults.
type BurnOptions struct {
	N         int // jobs
	Batch     int // jobs per enqueue: 5,000
	Producers int // that enqueue side by side: 2
	Engines   int // 1
	Slots     int // of each engine: the engine's default

	Open  Opener // a store for each engine but the first; nil: all share one
	Meter *Meter
}

// BurnResult is what [Burn] measured.
type BurnResult struct {
	N                int     `json:"n"`
	EnqueueSeconds   float64 `json:"enqueue_s"`
	EnqueuePerSecond float64 `json:"enqueue_per_s"`
	WorkSeconds      float64 `json:"work_s"`
	WorkPerSecond    float64 `json:"work_per_s"`
	Verified         bool    `json:"verified"` // the store says that each job completed
}

// Burn enqueues N jobs that do nothing, in bulk, and then has engines work them
// off. The two are measured one after the other: enqueuing until every batch
// has been committed, working from the start of the engines until the last
// outcome is recorded and they have left the roster.
func Burn(ctx context.Context, store stint.Store, o BurnOptions) (BurnResult, error) {
	o.Batch, o.Producers, o.Engines = cmp.Or(o.Batch, 5000), cmp.Or(o.Producers, 2), cmp.Or(o.Engines, 1)
	r := BurnResult{N: o.N}
	meter := o.Meter.or()
	begin := time.Now()
	err := enqueueAll(ctx, store, o, meter)
	if err != nil {
		return r, fmt.Errorf("enqueue: %w", err)
	}
	r.EnqueueSeconds = time.Since(begin).Seconds()
	r.EnqueuePerSecond = float64(o.N) / r.EnqueueSeconds

	begin = time.Now()
	if err = workAll(ctx, store, o, meter); err != nil {
		return r, fmt.Errorf("work: %w", err)
	}
	r.WorkSeconds = time.Since(begin).Seconds()
	r.WorkPerSecond = float64(o.N) / r.WorkSeconds
	r.Verified, err = completed(ctx, store, o.N)
	return r, err
}

// noop is the kind that measures everything but the work itself.
var noop = stint.Declaration{Name: "load_noop", Retry: retry.None()}

func enqueueAll(ctx context.Context, store stint.Enqueuer, o BurnOptions, meter *Meter) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := stint.NewClient(store)
	batch := slices.Repeat([]stint.NewJob{noop.Job(nil)}, min(o.Batch, o.N))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range o.Producers {
		wg.Go(func() {
			for ctx.Err() == nil {
				from := next.Add(int64(o.Batch)) - int64(o.Batch)
				n := min(int64(o.N)-from, int64(o.Batch))
				if n <= 0 {
					return
				}
				if _, err := client.EnqueueMany(ctx, batch[:n]); err != nil {
					cancel(err)
					return
				}
				meter.Enqueued.Add(n)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

func workAll(ctx context.Context, store stint.Store, o BurnOptions, meter *Meter) error {
	done := make(chan struct{})
	mux := stint.NewMux()
	mux.Add(noop, func(context.Context, *stint.Job) (json.RawMessage, error) {
		if meter.Started.Add(1) == int64(o.N) {
			close(done)
		}
		return nil, nil
	})
	f, err := startFleet(ctx, store, o.Open, o.Engines, mux, engine.Config{Slots: o.Slots})
	if err != nil {
		return err
	}
	waited := f.wait(ctx, done)
	if err := f.stop(); waited == nil {
		return err
	}
	return waited
}
