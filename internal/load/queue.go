package load

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/contest"
)

// QueueOptions say how a [Queue] works. The zero value is one engine with its
// defaults.
type QueueOptions struct {
	Engines int    // 1
	Slots   int    // of each engine: the engine's default
	Open    Opener // a store for each engine but the first; nil: all share one

	// OneByOne says that each claim takes one job, as those of engines do whose
	// jobs take their time.
	OneByOne bool
}

// Queue is stint in a contest with other queues.
type Queue struct {
	store  stint.Store
	client *stint.Client
	o      QueueOptions
	close  func() error
}

var _ contest.Queue = (*Queue)(nil)

// NewQueue makes a queue of an empty store. Close closes the store with it.
func NewQueue(store stint.Store, o QueueOptions, closeStore func() error) *Queue {
	o.Engines = max(1, o.Engines)
	return &Queue{store: store, client: stint.NewClient(store), o: o, close: closeStore}
}

// numbered is a job as a contest knows it.
type numbered struct {
	N int `json:"n"`
}

var numberedKind = stint.NewKind[numbered]("load_numbered")

// Enqueue implements [contest.Queue].
func (q *Queue) Enqueue(ctx context.Context, first, n int) error {
	jobs := make([]stint.NewJob, n)
	for i := range jobs {
		job, err := numberedKind.New(numbered{first + i})
		if err != nil {
			return err
		}
		jobs[i] = job
	}
	_, err := q.client.EnqueueMany(ctx, jobs)
	return err
}

// Work implements [contest.Queue].
func (q *Queue) Work(ctx context.Context, handle func(n int)) (stop func() error, err error) {
	if q.o.OneByOne {
		return q.workOneByOne(ctx, handle)
	}
	mux := stint.NewMux()
	stint.Handle(mux, numberedKind, func(_ context.Context, _ *stint.Job, args numbered) error {
		handle(args.N)
		return nil
	})
	f, err := startFleet(ctx, q.store, q.o.Open, q.o.Engines, mux, engine.Config{Slots: q.o.Slots})
	if err != nil {
		return nil, err
	}
	return f.stop, nil
}

// workOneByOne works as engines of one slot whose claims take one job.
func (q *Queue) workOneByOne(ctx context.Context, handle func(n int)) (stop func() error, err error) {
	var enough atomic.Bool
	work := func(e *stint.Entry) error {
		var a numbered
		err := json.Unmarshal(e.Args, &a)
		handle(a.N)
		return err
	}
	var wg sync.WaitGroup
	errs := make([]error, q.o.Engines)
	stop = func() error {
		enough.Store(true)
		wg.Wait()
		return errors.Join(errs...)
	}
	ctx = context.WithoutCancel(ctx) // only stop ends the work
	for i := range q.o.Engines {
		store, closeStore := q.store, func() {}
		if i > 0 && q.o.Open != nil {
			if store, closeStore, err = q.o.Open(ctx); err != nil {
				return nil, errors.Join(err, stop())
			}
		}
		wg.Go(func() {
			defer closeStore()
			more := func() bool { return !enough.Load() }
			errs[i] = newClaimant(store, numberedKind.Declaration(), more, work).run(ctx, i+1)
		})
	}
	return stop, nil
}

// Completed implements [contest.Queue].
func (q *Queue) Completed(ctx context.Context) (int, error) {
	counts, err := q.store.(stint.Inspector).Counts(ctx)
	return int(counts[stint.Completed]), err
}

// Close implements [contest.Queue].
func (q *Queue) Close() error { return q.close() }
