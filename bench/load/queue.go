package load

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/bench/contest"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/seal"
	"github.com/stint-go/stint/store"
)

// Options say how a [Queue] works. The zero value is one engine with its
// defaults.
type Options struct {
	Engines int      // 1
	Slots   int      // of each engine: the engine's default
	Queues  []string // of the engines: all
	To      string   // the queue that numbered jobs go to: the default one
	Open    Opener   // a store for each engine but the first; nil: all share one

	// OneByOne says that each claim takes one job, as those of engines do whose
	// jobs take their time.
	OneByOne bool

	// Keep is for how long engines keep jobs that ended: their default. Completed then goes by the
	// statistics, which have what was deleted.
	Keep time.Duration

	// Plain says that jobs have no numbers.
	Plain bool

	Args int       // how many bytes of arguments plain jobs have: none
	Seal seal.Keys // what these are sealed with: nothing

	Limit stint.LimitRule // that jobs wait for: none
	Keys  int             // how many keys it has: 1, for all of them together

	Lanes int // over how many queues jobs are spread: 1, which is To

	Unique bool // numbered jobs are unique by their number until they have ended
}

// Queue is stint in a contest with other queues.
type Queue struct {
	store  store.Store
	client *stint.Client
	o      Options
	kind   stint.KindInfo // of plain jobs
	plain  []stint.NewJob // as many as are enqueued at once, all equal
	close  func() error
}

var _ contest.Queue = (*Queue)(nil)

// New makes a queue of a store. Close closes the store with it.
func New(store store.Store, o Options, closeStore func() error) *Queue {
	o.Engines = max(1, o.Engines)
	q := &Queue{store: store, client: stint.NewClient(store), o: o, kind: plain, close: closeStore}
	if o.Seal != nil {
		q.client, q.kind.Sealed = q.client.Seal(o.Seal), []string{""}
	}
	if o.Plain {
		var args json.RawMessage
		if o.Args > 0 {
			args = json.RawMessage(`"` + strings.Repeat("x", max(0, o.Args-2)) + `"`)
		}
		q.plain = slices.Repeat([]stint.NewJob{q.kind.Job(args)}, MostPlain)
		for i := range q.plain {
			q.plain[i].Queue, q.plain[i].Limits = q.queueOf(i), q.limitsOf(i)
		}
	}
	return q
}

// limit is the name of the limit that jobs wait for.
const limit = "load"

// limitsOf are the limits of a job.
func (q *Queue) limitsOf(n int) []string {
	switch {
	case q.o.Limit == stint.LimitRule{}:
		return nil
	case q.o.Keys > 1:
		return []string{fmt.Sprintf("%s=%d", limit, n%q.o.Keys)}
	}
	return []string{limit}
}

// queueOf is the queue of a job.
func (q *Queue) queueOf(n int) string {
	if q.o.Lanes > 1 {
		return fmt.Sprintf("lane-%d", n%q.o.Lanes)
	}
	return q.o.To
}

// MostPlain is how many plain jobs can be enqueued at once.
const MostPlain = 20_000

// EnqueueOne stores one plain job.
func (q *Queue) EnqueueOne(ctx context.Context) error {
	_, err := q.client.Enqueue(ctx, q.plain[0])
	return err
}

// numbered is a job as a contest knows it.
type numbered struct {
	N int `json:"n"`
}

var (
	numberedKind = stint.NewKind[numbered]("load_numbered")
	plain        = stint.KindInfo{Name: "load_noop", Retry: retry.None()}
)

// Enqueue implements [contest.Queue].
func (q *Queue) Enqueue(ctx context.Context, first, n int) error {
	jobs, err := q.jobs(first, n)
	if err != nil {
		return err
	}
	if n == 1 {
		_, err := q.client.Enqueue(ctx, jobs[0])
		return err
	}
	_, err = q.client.EnqueueMany(ctx, jobs)
	return err
}

func (q *Queue) jobs(first, n int) ([]stint.NewJob, error) {
	if q.o.Plain {
		from := first % (len(q.plain) - n + 1)
		return q.plain[from : from+n], nil
	}
	jobs := make([]stint.NewJob, n)
	var options []stint.Option
	if q.o.Unique {
		options = append(options, stint.UniqueUntilEnded(stint.By("/n")))
	}
	for i := range jobs {
		job, err := numberedKind.New(numbered{first + i}, options...)
		if err != nil {
			return nil, err
		}
		job.Queue, job.Limits = q.queueOf(first+i), q.limitsOf(first+i)
		jobs[i] = job
	}
	return jobs, nil
}

// EnqueueAt stores a job that is due at an instant of the store's clock.
func (q *Queue) EnqueueAt(ctx context.Context, number int, due time.Time) error {
	job, err := numberedKind.New(numbered{number})
	if err != nil {
		return err
	}
	job.Queue, job.RunAt = q.queueOf(number), due
	_, err = q.client.Enqueue(ctx, job)
	return err
}

// EnqueueWaiting stores n jobs that wait for next year, each for an instant of
// its own.
func (q *Queue) EnqueueWaiting(ctx context.Context, n int) error {
	year := time.Now().AddDate(1, 0, 0)
	for from := 0; from < n; from += 5000 {
		jobs := slices.Repeat([]stint.NewJob{plain.Job(nil)}, min(5000, n-from))
		for i := range jobs {
			jobs[i].RunAt = year.Add(time.Duration(from+i) * time.Millisecond)
		}
		if _, err := q.client.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

// Work implements [contest.Queue].
func (q *Queue) Work(ctx context.Context, handle func(n int)) (stop func() error, err error) {
	if q.o.OneByOne {
		return q.workOneByOne(ctx, handle)
	}
	mux := stint.NewMux()
	if q.o.Limit != (stint.LimitRule{}) {
		mux.Limit(limit, q.o.Limit)
	}
	if q.o.Plain {
		mux.Add(q.kind, func(context.Context, *stint.Job) (json.RawMessage, error) {
			handle(contest.Unnumbered)
			return nil, nil
		})
	} else {
		stint.Handle(mux, numberedKind, func(_ context.Context, _ *stint.Job, args numbered) error {
			handle(args.N)
			return nil
		})
	}
	return q.workAll(ctx, mux)
}

// workOneByOne works as engines of one slot whose claims take one job.
func (q *Queue) workOneByOne(ctx context.Context, handle func(n int)) (stop func() error, err error) {
	kind, number := numberedKind.Declaration(), func(e *store.Entry) (int, error) {
		var a numbered
		err := json.Unmarshal(e.Args, &a)
		return a.N, err
	}
	if q.o.Plain {
		kind, number = plain, func(*store.Entry) (int, error) { return contest.Unnumbered, nil }
	}
	work := func(e *store.Entry) error {
		n, err := number(e)
		handle(n)
		return err
	}
	var enough atomic.Bool
	var wg sync.WaitGroup
	errs := make([]error, q.o.Engines)
	stop = func() error {
		enough.Store(true)
		wg.Wait()
		return errors.Join(errs...)
	}
	ctx = context.WithoutCancel(ctx) // only stop ends the work
	for i := range q.o.Engines {
		store, closeStore, err := q.open(ctx, i)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		wg.Go(func() {
			defer closeStore()
			more := func() bool { return !enough.Load() }
			errs[i] = newClaimant(store, kind, more, work).run(ctx, i+1)
		})
	}
	return stop, nil
}

// Completed implements [contest.Queue].
func (q *Queue) Completed(ctx context.Context) (int, error) {
	if q.o.Keep > 0 {
		sums, err := q.store.(report.StatsStore).Stats(ctx, report.StatsFilter{})
		n := 0
		for _, s := range sums {
			if s.Outcome == stint.OutcomeCompleted {
				n += int(s.Attempts)
			}
		}
		return n, err
	}
	counts, err := q.store.(store.Inspector).Counts(ctx)
	return int(counts[stint.Completed]), err
}

// Close implements [contest.Queue].
func (q *Queue) Close() error { return q.close() }
