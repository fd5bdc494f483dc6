package stint

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// Bounds of [Gather].
const (
	MaxGather     = 1000            // jobs of one call
	MaxGatherWait = 5 * time.Second // for more jobs to come
)

// Gathering says how jobs are put together for one call of a handler: see [Gather].
type Gathering struct {
	Jobs int           // at most
	Wait time.Duration // at most, from the first job on
}

// Gather puts up to n jobs, from 1 to [MaxGather], together for one call. A call with
// fewer begins when wait has passed since an engine claimed the first of them; wait is
// from 0 to [MaxGatherWait], and 0 takes what is there.
func Gather(n int, wait time.Duration) Gathering { return Gathering{n, wait} }

func (g Gathering) check() error {
	switch {
	case g.Jobs < 1 || g.Jobs > MaxGather:
		return valid.Invalid("gather", "%d jobs are not between 1 and %d", g.Jobs, MaxGather)
	case g.Wait < 0 || g.Wait > MaxGatherWait:
		return valid.Invalid("gather", "a wait of %v is not between 0 and %v", g.Wait, MaxGatherWait)
	}
	return nil
}

// BatchJob is one job of a call of a [HandleMany] handler.
type BatchJob[A any] struct {
	*Job
	Args A // decoded

	ctx context.Context
}

// Context returns the context of this job alone, inside its middleware. It ends when
// this job is cancelled or its timeout has passed, and with the call's context.
// [SetResult], [SetError] and engine.CompleteTx need it.
func (j BatchJob[A]) Context() context.Context { return j.ctx }

// HandleMany registers a function that performs many jobs of a kind in one call, for
// work that is cheaper for many at once: bulk inserts, calls of an API that takes a list.
// The jobs of a call have one queue, and are in the order of their ids.
//
// Each job keeps an attempt of its own, with its outcome, its retries, its timeout, its
// events and its hooks; middleware is called for each. A nil error completes all jobs,
// and any other error, [Snooze] and [Cancel] too, is that of all jobs. [PerJob] returns
// one error for each. What [SetResult] or [SetError] set with a job's context replaces what
// is returned for that job. A panic fails all jobs of the call.
//
// The context of the call ends when the contexts of all of its jobs have ended: the
// cancellation or the timeout of one job ends only that job's [BatchJob.Context]. A job
// whose arguments cannot be decoded fails by itself, and one that middleware does not
// pass on is not among the jobs. The call waits up to a second for jobs that middleware
// keeps longer than others; they come in another call.
//
// An engine gathers jobs without a slot, and a call takes one slot. Jobs that gather when
// the engine stops go back unstarted, uncharged. The time that a job gathers counts towards
// its [NewJob.StartBy]. A job that may have killed its process comes alone, and so does
// one that is run at once in the process that enqueues it.
func HandleMany[A any](m *Mux, k Kind[A], g Gathering, f func(ctx context.Context, jobs []BatchJob[A]) error) *Registration {
	if f == nil {
		panic(fmt.Sprintf("stint: kind %q: the handler is nil", k.decl.Name))
	}
	if err := g.check(); err != nil {
		panic(fmt.Sprintf("stint: kind %q: %v", k.decl.Name, err))
	}
	do := func(ctx context.Context, members []*batchMember) ([]*Job, error) {
		jobs := make([]BatchJob[A], len(members))
		for i, m := range members {
			args, _ := m.args.(A)
			jobs[i] = BatchJob[A]{Job: m.job, Args: args, ctx: m.ctx}
		}
		err := f(ctx, jobs)
		order := make([]*Job, len(jobs)) // the handler may have sorted them
		for i := range jobs {
			order[i] = jobs[i].Job
		}
		return order, err
	}
	r := handle(m, k, func(ctx context.Context, job *Job, args A) (json.RawMessage, error) {
		run := runFrom(ctx)
		one := &batchMember{ctx: ctx, run: run, job: job, args: args}
		return nil, run.takeBatch().join(one, do)
	})
	r.gathering = g
	return r
}

// Gathering returns how the jobs of a kind are put together; the zero Gathering if each
// is handled by itself.
func (m *Mux) Gathering(kind string) Gathering {
	if r := m.kinds[kind]; r != nil {
		return r.gathering
	}
	return Gathering{}
}

// PerJob is what a [HandleMany] handler returns when its jobs do not end alike: one error
// for each job, at the job's index, nil for those that succeeded. Each counts as if
// the handler of one job had returned it. If there are not as many errors as jobs, all
// jobs fail. It must be returned as it is: inside another error it fails all jobs.
func PerJob(errs []error) error { return perJob(errs) }

type perJob []error

// Error is what a job gets if this was not returned as it is.
func (e perJob) Error() string {
	return fmt.Sprintf("the outcomes of %d jobs (stint.PerJob), which must be returned as they are", len(e))
}

// batchPatience is how long a call waits for jobs that their middleware keeps: perhaps until
// others have ended.
const batchPatience = time.Second

// Batch brings runs together for the calls of a [HandleMany] handler: usually one call,
// and more if some runs come late. Engines make it with [NewBatch]. A [Run] without one is
// a batch by itself.
type Batch struct {
	mu   sync.Mutex
	away int        // runs that have neither joined nor ended
	next *batchCall // gathers those that joined; nil for none
}

// NewBatch returns a Batch of n runs.
func NewBatch(n int) *Batch { return &Batch{away: n} }

// takeBatch returns the batch of the run the first time; after that, and without a run, a batch of
// one.
func (a *Run) takeBatch() *Batch {
	if a == nil {
		return NewBatch(1)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	b := a.Batch
	if a.Batch = nil; b == nil {
		return NewBatch(1)
	}
	return b
}

// leave says that a run has ended without joining.
func (b *Batch) leave() {
	b.mu.Lock()
	b.away--
	c, last := b.next, b.away == 0
	b.mu.Unlock()
	if last && c != nil {
		b.begin(c)
	}
}

// batchMember is a run that has joined.
type batchMember struct {
	ctx  context.Context
	run  *Run
	job  *Job
	args any
	err  error
}

// join adds a run to the next call, and returns how its job ended when the call is over.
func (b *Batch) join(m *batchMember, do func(context.Context, []*batchMember) ([]*Job, error)) error {
	b.mu.Lock()
	c := b.next
	if c == nil {
		c = &batchCall{do: do, over: make(chan struct{})}
		c.late = time.AfterFunc(batchPatience, func() { b.begin(c) })
		b.next = c
	}
	c.members = append(c.members, m)
	b.away--
	last := b.away == 0
	b.mu.Unlock()
	if last {
		b.begin(c)
	}
	<-c.over
	switch {
	case c.panicked != nil:
		panic(c.panicked)
	case c.exited:
		runtime.Goexit()
	}
	return m.err
}

// begin starts a call once.
func (b *Batch) begin(c *batchCall) {
	b.mu.Lock()
	mine := b.next == c
	if mine {
		b.next = nil
	}
	b.mu.Unlock()
	if mine {
		c.late.Stop()
		go c.run()
	}
}

// batchCall is one call of the handler.
type batchCall struct {
	do      func(context.Context, []*batchMember) ([]*Job, error)
	members []*batchMember // guarded by Batch.mu until it begins
	late    *time.Timer
	over    chan struct{} // closed when the rest is set

	panicked *PanicError
	exited   bool // it ended its goroutine
}

// run calls the handler, in a goroutine of its own since it may end that.
func (c *batchCall) run() {
	defer close(c.over)
	slices.SortStableFunc(c.members, func(a, b *batchMember) int { return cmp.Compare(a.job.ID, b.job.ID) })
	ctx, end := c.context()
	defer end()
	c.exited = true
	defer func() {
		if v := recover(); v != nil {
			c.exited, c.panicked = false, &PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	order, err := c.do(ctx, c.members)
	c.deal(order, err)
	c.exited = false
}

// context makes the context of the call. It has no job, and no values that middleware added for one.
func (c *batchCall) context() (_ context.Context, end func()) {
	base, run := c.members[0].ctx, &Run{over: true}
	if first := c.members[0].run; first != nil {
		base, run.Client, run.Reader = first.context.Context, first.Client, first.Reader
	}
	ctx, cancel := context.WithCancelCause(run.Context(context.WithoutCancel(base)))
	stop := func() {}
	if latest := c.deadline(); !latest.IsZero() {
		ctx, stop = context.WithDeadlineCause(ctx, latest, ErrTimeout)
	}
	var left atomic.Int64
	left.Store(int64(len(c.members)))
	forget := make([]func() bool, len(c.members))
	for i, m := range c.members {
		forget[i] = context.AfterFunc(m.ctx, func() {
			if left.Add(-1) == 0 {
				cancel(context.Cause(m.ctx))
			}
		})
	}
	return ctx, func() {
		for _, f := range forget {
			f()
		}
		stop()
		cancel(nil)
	}
}

// deadline returns the last deadline; zero if a job has none.
func (c *batchCall) deadline() (latest time.Time) {
	for _, m := range c.members {
		at, ok := m.ctx.Deadline()
		if !ok {
			return time.Time{}
		}
		if at.After(latest) {
			latest = at
		}
	}
	return latest
}

// deal gives each job its error. The jobs are in the order in which the handler left them.
func (c *batchCall) deal(order []*Job, err error) {
	list, each := err.(perJob)
	of := make(map[*Job]error, len(order))
	if each {
		for i, job := range order[:min(len(order), len(list))] {
			of[job] = list[i]
		}
	}
	for _, m := range c.members {
		_, there := of[m.job]
		switch {
		case !each:
			m.err = err
		case len(list) != len(c.members):
			m.err = fmt.Errorf("the handler returned outcomes of %d jobs for a batch of %d", len(list), len(c.members))
		case !there:
			m.err = fmt.Errorf("the handler returned outcomes of jobs, and replaced the job %d in their list", m.job.ID)
		default:
			m.err = of[m.job]
		}
	}
}
