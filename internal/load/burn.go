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

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

// BurnOptions say how [Burn] burns. N is required; other zero fields mean
// their defaults.
type BurnOptions struct {
	N         int           // jobs
	Batch     int           // jobs per enqueue: 5,000
	Producers int           // that enqueue side by side: 2
	Engines   int           // 1
	Slots     int           // of each engine: the engine's default
	Work      time.Duration // how long each job takes, waiting for nothing: 0
	OneByOne  bool          // see [BurnResult.OneByOne]; Slots and Work are not looked at

	// Around runs what is measured, for a caller that reads something before
	// and behind it.
	Around func(ctx context.Context, run func(context.Context) error) error

	Open  Opener // a store for each engine but the first; nil: all share one
	Meter *Meter
}

func (o BurnOptions) withDefaults() BurnOptions {
	o.Batch, o.Producers, o.Engines = cmp.Or(o.Batch, 5000), cmp.Or(o.Producers, 2), cmp.Or(o.Engines, 1)
	if o.Around == nil {
		o.Around = func(ctx context.Context, run func(context.Context) error) error { return run(ctx) }
	}
	return o
}

// BurnResult is what [Burn] measured.
type BurnResult struct {
	N                int     `json:"n"`
	EnqueueSeconds   float64 `json:"enqueue_s"`
	EnqueuePerSecond float64 `json:"enqueue_per_s"`
	WorkSeconds      float64 `json:"work_s"`
	WorkPerSecond    float64 `json:"work_per_s"`

	// OneByOne says that each claim took one job, as those of engines do whose
	// jobs take long. These engines have nothing to do between two claims.
	OneByOne bool `json:"one_by_one,omitempty"`

	// Utilization is the part of the time that slots had a job in hand,
	// from the first start to the last end; of jobs that take no time it says
	// nothing and is 0.
	Utilization float64 `json:"slot_utilization,omitempty"`

	Verified bool `json:"verified"` // the store says that each job completed
}

// Burn enqueues N jobs that do nothing, in bulk, and then has engines work them
// off. The two are measured one after the other: enqueuing until every batch
// has been committed, working from the start of the engines until the last
// outcome is recorded and they have left the roster. The store may hold jobs
// that have completed and jobs that wait, and no others.
func Burn(ctx context.Context, store stint.Store, o BurnOptions) (BurnResult, error) {
	all, err := Burns(ctx, store, o)
	return all[0], err
}

// Burns burns one time after the other, as [Burn] does, but asks the store only
// before the first and behind the last what it holds: counting millions takes
// longer than working them off. Behind an error the results that there are not
// are zero, and none is verified.
func Burns(ctx context.Context, store stint.Store, turns ...BurnOptions) ([]BurnResult, error) {
	all := make([]BurnResult, len(turns))
	want, err := countBefore(ctx, store)
	if err != nil {
		return all, err
	}
	for i, o := range turns {
		o, r := o.withDefaults(), &all[i]
		r.N, r.OneByOne = o.N, o.OneByOne
		if err := o.Around(ctx, func(ctx context.Context) error { return r.burn(ctx, store, o) }); err != nil {
			return all, err
		}
		want[stint.Completed] += int64(o.N)
	}
	verified, err := ended(ctx, store, want)
	for i := range all {
		all[i].Verified = verified
	}
	return all, err
}

func (r *BurnResult) burn(ctx context.Context, store stint.Store, o BurnOptions) error {
	meter := o.Meter.or()
	batch := slices.Repeat([]stint.NewJob{noop.Job(nil)}, min(o.N, o.Batch))
	begin := time.Now()
	if err := enqueueAll(ctx, store, o.N, o, func(from, to int) []stint.NewJob { return batch[:to-from] }, meter); err != nil {
		return fmt.Errorf("enqueue: %w", err)
	}
	r.EnqueueSeconds, r.EnqueuePerSecond = rate(o.N, begin)

	begin = time.Now()
	work := r.workAll
	if o.OneByOne {
		work = workOneByOne
	}
	if err := work(ctx, store, o, meter); err != nil {
		return fmt.Errorf("work: %w", err)
	}
	r.WorkSeconds, r.WorkPerSecond = rate(o.N, begin)
	return nil
}

// noop is the kind that measures everything but the work itself.
var noop = stint.Declaration{Name: "load_noop", Retry: retry.None()}

// enqueueAll enqueues n jobs in batches, by producers side by side. Jobs are
// those from one number up to another.
func enqueueAll(ctx context.Context, store stint.Enqueuer, n int, o BurnOptions, jobs func(from, to int) []stint.NewJob, meter *Meter) error {
	client := stint.NewClient(store)
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range o.Producers {
		g.Go(func() error {
			for ctx.Err() == nil {
				from := int(next.Add(int64(o.Batch))) - o.Batch
				to := min(n, from+o.Batch)
				if from >= to {
					return nil
				}
				if _, err := client.EnqueueMany(ctx, jobs(from, to)); err != nil {
					return err
				}
				meter.Enqueued.Add(int64(to - from))
			}
			return context.Cause(ctx)
		})
	}
	return g.Wait()
}

func (r *BurnResult) workAll(ctx context.Context, store stint.Store, o BurnOptions, meter *Meter) error {
	o.Slots = cmp.Or(o.Slots, engine.DefaultSlots())
	w := &burning{BurnOptions: o, meter: meter, last: meter.Started.Load() + int64(o.N), done: make(chan struct{})}
	mux := stint.NewMux()
	mux.Add(noop, w.handle)
	f, err := startFleet(ctx, store, o.Open, o.Engines, mux, engine.Config{Slots: o.Slots})
	if err != nil {
		return err
	}
	waited := f.wait(ctx, w.done)
	stopped := f.stop()
	r.Utilization = w.from.until(w.to, o.Engines*o.Slots)
	return cmp.Or(waited, stopped)
}

// burning is what the handlers of a burn share.
type burning struct {
	BurnOptions
	meter *Meter        // others may have used it before
	last  int64         // what it counts when every job has started
	done  chan struct{} // closed then

	// Of jobs that take time. From and to are written once each, and read when
	// the engines have stopped.
	ended    atomic.Int64
	slots    usage
	begun    sync.Once
	from, to reading
}

func (w *burning) handle(ctx context.Context, _ *stint.Job) (json.RawMessage, error) {
	if w.meter.Started.Add(1) == w.last {
		close(w.done)
	}
	if w.Work == 0 {
		return nil, nil
	}
	w.begun.Do(func() { w.from = w.slots.read() })
	w.slots.enter()
	pause(ctx, w.Work)
	w.slots.leave()
	if w.ended.Add(1) == int64(w.N) {
		w.to = w.slots.read()
	}
	return nil, nil
}

// countBefore counts what is in a store that is to be burnt in.
func countBefore(ctx context.Context, store stint.Store) (map[stint.State]int64, error) {
	people, ok := store.(stint.Inspector)
	if !ok {
		return map[stint.State]int64{}, nil
	}
	counts, err := people.Counts(ctx)
	if err != nil {
		return nil, err
	}
	for state, n := range counts {
		if n > 0 && !slices.Contains([]stint.State{stint.Completed, stint.Scheduled}, state) {
			return nil, fmt.Errorf("the store holds %d other jobs that are %s", n, state)
		}
	}
	return counts, nil
}
