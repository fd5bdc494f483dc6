package load

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

// MixOptions say how [Mix] loads. N is required, and Shares, Work and Args where
// they shall be anything; other zero fields mean their defaults.
type MixOptions struct {
	N    int    // jobs
	Seed uint64 // what is drawn depends on it and on the job's number alone

	Failing   float64       // the share of attempts that fail: 0 to 1
	Scheduled float64       // the share of jobs that are not due at once: 0 to 1
	Ahead     time.Duration // how far ahead these are due at most
	Work      Range[time.Duration]
	Args      Range[int] // bytes of arguments

	Producers int // that enqueue side by side: 2
	Backlog   int // jobs that are due and have not started, at which producers wait: 4 for each slot
	Engines   int // 1
	Slots     int // of each engine: the engine's default

	Open  Opener // a store for each engine but the first; nil: all share one
	Meter *Meter
}

// Range is what a figure is drawn from, evenly; both ends belong to it.
type Range[T int | time.Duration] struct{ From, To T }

// MixResult is what [Mix] measured. Times are in milliseconds by the store's
// clock: from when a job was due to its first start.
type MixResult struct {
	N             int     `json:"n"`
	Seconds       float64 `json:"s"` // until the last job ended
	JobsPerSecond float64 `json:"jobs_per_s"`
	Attempts      int64   `json:"attempts"`
	Retries       int64   `json:"retries"`
	Completed     int64   `json:"completed"`
	Failed        int64   `json:"failed"` // for good

	// Utilization is the share of the slots' time that handlers ran for, while
	// producers kept the backlog full; 0 when it never was.
	Utilization float64 `json:"slot_utilization,omitempty"`

	Start    []PriorityQuantiles `json:"due_to_start_ms"` // of jobs that were due at once, by rising priority
	Lateness CountedQuantiles    `json:"lateness_ms"`     // of jobs that were scheduled
	Verified bool                `json:"verified"`        // the store says that each job ended as it was to, in as many attempts
}

// PriorityQuantiles are of the jobs of a priority.
type PriorityQuantiles struct {
	Priority int `json:"priority"`
	CountedQuantiles
}

// CountedQuantiles are of so many jobs.
type CountedQuantiles struct {
	N int `json:"n"`
	Quantiles
}

// Mix enqueues jobs as programs have them, with engines at work meanwhile:
// several queues and priorities, some fail and are tried again, some are
// scheduled, and each takes its time and has arguments of its own size. It
// returns when each has ended.
func Mix(ctx context.Context, store stint.Store, o MixOptions) (MixResult, error) {
	o.Producers, o.Engines, o.Slots = cmp.Or(o.Producers, 2), cmp.Or(o.Engines, 1), cmp.Or(o.Slots, engine.DefaultSlots())
	o.Backlog = cmp.Or(o.Backlog, 4*o.Engines*o.Slots)
	m := &mix{MixOptions: o, meter: o.Meter.or(), waits: map[int][]time.Duration{}, done: make(chan struct{})}
	m.blank = make([]byte, max(0, o.Args.To))
	for i := range m.blank {
		m.blank[i] = byte('a' + i%26)
	}
	f, err := startFleet(ctx, store, o.Open, o.Engines, m.mux(), engine.Config{Slots: o.Slots})
	if err != nil {
		return MixResult{}, err
	}
	r, err := m.run(ctx, f, stint.NewClient(store))
	if stopped := f.stop(); err == nil {
		err = stopped
	}
	if err == nil {
		err = m.verify(ctx, store, &r)
	}
	return r, err
}

// mixed is the kind of all jobs of a mix. Retries come soon: what is measured is
// not how long a policy waits.
var mixed = stint.Declaration{Name: "load_mixed", Retry: retry.Fixed(mixRetries, 200*time.Millisecond)}

const mixRetries = 3

// mix is a load that runs.
type mix struct {
	MixOptions
	meter *Meter
	blank []byte // what arguments are filled up with

	next    atomic.Int64 // job to be enqueued
	ready   atomic.Int64 // jobs that were enqueued to run at once, less those of them that have started
	slots   usage
	attempt atomic.Int64
	ended   atomic.Int64
	done    chan struct{} // closed when the last job has ended

	mu    sync.Mutex // guards the following
	waits map[int][]time.Duration
	late  []time.Duration
}

// mixArgs are a job's arguments: what its handler is to do.
type mixArgs struct {
	Work  time.Duration `json:"work"`            // nanoseconds
	Fails int           `json:"fails,omitempty"` // attempts that fail, the first ones
	Later bool          `json:"later,omitempty"` // it was scheduled
	Blank string        `json:"blank"`
}

var errMixed = errors.New("this attempt was to fail")

// mux performs the jobs. An engine that died would have its attempts counted by
// the store, and be found by verify.
func (m *mix) mux() *stint.Mux {
	mux := stint.NewMux()
	mux.Add(mixed, func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		m.slots.enter()
		defer m.slots.leave()
		m.attempt.Add(1)
		var a mixArgs
		if err := json.Unmarshal(job.Args, &a); err != nil {
			return nil, err
		}
		if job.Attempt == 1 {
			m.started(job, a.Later)
		}
		pause(ctx, a.Work)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		failed := job.Attempt <= a.Fails
		if (!failed || job.Attempt > mixRetries) && m.ended.Add(1) == int64(m.N) {
			close(m.done)
		}
		if failed {
			return nil, errMixed
		}
		return nil, nil
	})
	return mux
}

// started notes down how long a job waited.
func (m *mix) started(job *stint.Job, later bool) {
	m.meter.Started.Add(1)
	wait := job.Started.Sub(job.Due)
	if !later {
		m.ready.Add(-1)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if later {
		m.late = append(m.late, wait)
	} else {
		m.waits[job.Priority] = append(m.waits[job.Priority], wait)
	}
}

// run enqueues all jobs and waits until each has ended.
func (m *mix) run(ctx context.Context, f *fleet, client *stint.Client) (MixResult, error) {
	begin := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var full sync.Once // the first time that producers wait
	var from, to reading
	for range m.Producers {
		wg.Go(func() {
			if err := m.produce(ctx, client, func() { full.Do(func() { from = m.slots.read() }) }); err != nil {
				cancel(err)
			}
		})
	}
	produced := make(chan struct{})
	go func() {
		defer close(produced)
		wg.Wait()
		to = m.slots.read()
	}()
	err := f.wait(ctx, produced)
	if err == nil {
		err = m.rest(ctx, f)
	} else {
		cancel(err)
		<-produced
	}
	r := MixResult{N: m.N, Seconds: time.Since(begin).Seconds(), Attempts: m.attempt.Load()}
	r.JobsPerSecond = float64(m.N) / r.Seconds
	r.Retries = r.Attempts - m.meter.Started.Load()
	if !from.at.IsZero() {
		r.Utilization = from.until(to, m.Engines*m.Slots)
	}
	m.quantiles(&r)
	return r, err
}

// rest waits for the last job, unless nothing has ended for a long time.
func (m *mix) rest(ctx context.Context, f *fleet) error {
	patience := stalled + m.Ahead + m.Work.To
	for last := int64(-1); ; {
		now := m.ended.Load()
		if now == last {
			return fmt.Errorf("of %d jobs %d ended, and no other one for %v", m.N, now, patience)
		}
		last = now
		limit, cancel := context.WithTimeoutCause(ctx, patience, errLate)
		err := f.wait(limit, m.done)
		cancel()
		if err != errLate {
			return err
		}
	}
}

// produce enqueues as many as the backlog lacks, again and again.
func (m *mix) produce(ctx context.Context, client *stint.Client, full func()) error {
	for ctx.Err() == nil {
		lacks := int64(m.Backlog) - m.ready.Load()
		if lacks <= 0 {
			full()
			pause(ctx, time.Millisecond)
			continue
		}
		n := min(lacks, 1000)
		first := m.next.Add(n) - n
		if n = min(n, int64(m.N)-first); n <= 0 {
			return nil
		}
		jobs := make([]stint.NewJob, n)
		now := int64(0)
		for i := range jobs {
			jobs[i] = m.job(first + int64(i))
			if jobs[i].Delay == 0 {
				now++
			}
		}
		m.ready.Add(now)
		if _, err := client.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
		m.meter.Enqueued.Add(n)
	}
	return nil
}

func (m *mix) quantiles(r *MixResult) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for priority, waits := range m.waits {
		r.Start = append(r.Start, PriorityQuantiles{priority, CountedQuantiles{len(waits), QuantilesOf(waits)}})
	}
	slices.SortFunc(r.Start, func(a, b PriorityQuantiles) int { return cmp.Compare(a.Priority, b.Priority) })
	r.Lateness = CountedQuantiles{len(m.late), QuantilesOf(m.late)}
}
