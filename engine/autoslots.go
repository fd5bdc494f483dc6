package engine

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
)

// tuneEvery is how often an engine that finds its number of slots by itself looks at how it goes, while it
// has anything to do.
const tuneEvery = 50 * time.Millisecond

// autoSlots are how many of a pool's slots are in use, as a tuner decides: those with the lowest numbers.
// The others wait. A slot that is no more in use ends the task that it has.
type autoSlots struct {
	tuner  *tuner // of the loop tuneSlots
	wake   *wakeup
	now    atomic.Pointer[slotsInUse]
	over   chan struct{} // closed when no more tasks come
	busied time.Duration // the processor time of this process at the last sample; of the loop too
	last   report.FinisherMetrics

	mu    sync.Mutex // guards the rest
	since time.Time  // attempts that began before do not count
	kinds map[string]spent
}

// slotsInUse is one number of slots.
type slotsInUse struct {
	n    int
	kept int           // the number that the engine goes back to, if this one is a trial that fails
	past chan struct{} // closed when there is another number
}

// tunedBy has a tuner decide how many slots of the pool are in use.
func (p *pool) tunedBy(t *tuner) {
	a := &autoSlots{tuner: t, wake: newWakeup(), over: make(chan struct{}), kinds: map[string]spent{}}
	a.now.Store(&slotsInUse{n: t.n, kept: t.n, past: make(chan struct{})})
	t.trial, t.now, t.base = t.n, window{}, window{}
	p.auto, p.filled = a, append(p.filled, a.wake)
}

func (a *autoSlots) inUse() int { return a.now.Load().n }

// next returns the next task for a slot, which waits while it is not in use; nil means that none will come.
func (a *autoSlots) next(ready <-chan *task, number int) *task {
	for {
		now := a.now.Load()
		from := ready
		if number > now.n {
			from = nil
		}
		select {
		case t := <-from:
			return t
		case <-now.past:
		case <-a.over:
			return <-ready // it is closed
		}
	}
}

// end lets all slots see that no more tasks come. It is called once.
func (a *autoSlots) end() {
	if a != nil {
		close(a.over)
	}
}

// ran counts an attempt or a batch, by how many of its jobs did not fail.
func (a *autoSlots) ran(kind string, began time.Time, good int) {
	held := time.Since(began).Seconds()
	a.mu.Lock()
	defer a.mu.Unlock()
	if began.Before(a.since) {
		return
	}
	c := a.kinds[kind]
	c.add(spent{1, good, held, held * held})
	a.kinds[kind] = c
}

// goodJobs is 1 for a task that did not fail.
func goodJobs(t *task) int {
	if t.done.Outcome == stint.OutcomeFailed {
		return 0
	}
	return 1
}

// slotsNow returns how many jobs the engine runs at once. A trial does not count, so that what is computed
// from the roster does not swing.
func (s *session) slotsNow() int {
	if s.tuner == nil {
		return s.config.Slots
	}
	return s.pools.all[0].auto.now.Load().kept
}

// tuneSlots changes the number of slots until ctx ends. It rests while there is nothing to do.
func (s *session) tuneSlots(ctx context.Context) {
	p := s.pools.all[0]
	s.tellSlots(p.auto)
	for {
		select {
		case <-p.auto.wake.c:
		case <-ctx.Done():
			return
		}
		p.auto.last, p.auto.busied = s.finished(), processTime()
		last := time.Now()
		everyWhile(ctx, tuneEvery, func() bool {
			now := time.Now()
			s.tune(p, now.Sub(last))
			last = now
			return p.holds()
		})
	}
}

// tune takes a sample and does what the tuner decides.
func (s *session) tune(p *pool, elapsed time.Duration) {
	a := p.auto
	in := sample{elapsed: elapsed, idle: !p.holds(), backlog: p.load(p.busy.Load()) >= int64(a.inUse()) && p.pace.fills()}
	in.full = s.noRoomForMore(a, elapsed)
	now, before := s.finished(), a.last
	in.flushes, in.flushing, in.retried = now.Took.Count-before.Took.Count, now.Took.Total-before.Took.Total, now.Retries-before.Retries
	a.last = now
	a.mu.Lock()
	in.kinds, a.kinds = a.kinds, map[string]spent{}
	n, fresh := a.tuner.decide(in)
	if fresh {
		a.since = time.Now()
	}
	a.mu.Unlock()
	if now := a.now.Load(); now.n != n || now.kept != a.tuner.n {
		a.now.Store(&slotsInUse{n: n, kept: a.tuner.n, past: make(chan struct{})})
		close(now.past)
		s.capacity.notify()
		s.tellSlots(a)
		if now.n != n {
			s.emit(event.Event{Type: event.EventSlots, Engine: s.token, Count: n, Why: a.tuner.why})
		}
	}
}

// finished returns what was counted of recording outcomes.
func (s *session) finished() (f report.FinisherMetrics) {
	s.meters.with(func(m *report.Metrics) { f = m.Finisher })
	return f
}

// tellSlots notes the number of slots for the metrics.
func (s *session) tellSlots(a *autoSlots) {
	s.meters.with(func(m *report.Metrics) {
		m.Workers.Slots, m.Workers.MaxSlots, m.Workers.SlotsWhy = int64(a.inUse()), int64(a.tuner.max), a.tuner.why
	})
}

// Of more than these shares in use there is no room for more jobs.
const (
	processorFull = 0.9
	memoryFull    = 0.75
)

// noRoomForMore reports whether the process has used nearly all of the processors since the last sample, or
// so much of Config.MemoryLimit that more jobs could bring it to its end.
func (s *session) noRoomForMore(a *autoSlots, elapsed time.Duration) bool {
	busied := processTime()
	used := busied - a.busied
	a.busied = busied
	if used.Seconds() > processorFull*elapsed.Seconds()*float64(runtime.GOMAXPROCS(0)) {
		return true
	}
	limit := s.config.MemoryLimit
	return limit > 0 && float64(residentMemory()) > memoryFull*float64(limit)
}
