package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// Metrics are what the engine has counted since it was made, in all of its
// times in the roster: also while it does not run. It may be called at any time,
// and costs next to nothing.
//
// Each group of figures is of one moment. Attempts are counted when they are
// recorded, so that what an engine counted is what it wrote.
func (e *Engine) Metrics() stint.Metrics {
	return e.meters.read(e.config.Instance)
}

// meters count what an engine does. Each group belongs to one stage and has a
// lock of its own, which is taken once for each batch: stages do not meet here.
type meters struct {
	since  time.Time
	engine atomic.Int64 // the token of the last session

	listener guarded[stint.ListenerMetrics]
	claimer  guarded[stint.ClaimerMetrics]
	ended    guarded[endings]
	prefetch guarded[prefetching]
	writer   guarded[stint.WriterMetrics]

	running atomic.Int64 // attempts that go on
	starved atomic.Int64 // how often a slot found nothing
}

// endings are what the last stage counts.
type endings struct {
	workers  stint.WorkerMetrics
	finisher stint.FinisherMetrics
	kinds    map[string]*stint.Durations
}

// guarded is a group of figures with its lock.
type guarded[T any] struct {
	mu sync.Mutex
	v  T
}

// with changes or reads the figures.
func (g *guarded[T]) with(f func(v *T)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(&g.v)
}

func newMeters(slots int) *meters {
	m := &meters{since: time.Now()}
	m.ended.v.workers.Slots = int64(slots)
	m.ended.v.kinds = map[string]*stint.Durations{}
	return m
}

func (m *meters) read(instance string) stint.Metrics {
	x := stint.Metrics{Instance: instance, Engine: stint.Token(m.engine.Load()), Since: m.since, At: time.Now()}
	m.listener.with(func(l *stint.ListenerMetrics) { x.Listener = *l })
	m.claimer.with(func(c *stint.ClaimerMetrics) { x.Claimer = *c })
	m.prefetch.with(func(p *prefetching) { x.Prefetch = p.PrefetchMetrics })
	m.writer.with(func(w *stint.WriterMetrics) { x.Writer = *w })
	m.ended.with(func(e *endings) {
		x.Workers, x.Finisher = e.workers, e.finisher
		x.Kinds = make(map[string]stint.Durations, len(e.kinds))
		for kind, d := range e.kinds {
			x.Kinds[kind] = *d
		}
	})
	x.Workers.Running, x.Prefetch.Empty = m.running.Load(), m.starved.Load()
	return x
}

// heard counts a ring of the store's. The first of each connection says that
// listening began, which it may have done before.
func (m *meters) heard(first, again bool) {
	m.listener.with(func(l *stint.ListenerMetrics) {
		switch {
		case !first:
			l.Notifications++
		case again:
			l.Reconnects++
		}
	})
}

// asked counts a request for entries that was answered.
func (m *meters) asked(began time.Time, entries int) {
	took := time.Since(began)
	m.claimer.with(func(c *stint.ClaimerMetrics) {
		c.Claims++
		if c.Took.Add(took); entries == 0 {
			c.Empty++
		}
	})
}

// got counts entries that came into the engine's hands, and of these the ones
// that it hands back at once.
func (m *meters) got(entries, returned int) {
	m.claimer.with(func(c *stint.ClaimerMetrics) {
		c.Claimed += int64(entries)
		c.Returned += int64(returned)
	})
}

// noRoom counts a wait of the claim stage for slots.
func (m *meters) noRoom() { m.claimer.with(func(c *stint.ClaimerMetrics) { c.SlotWaits++ }) }

// flushed counts a batch that is recorded.
func (m *meters) flushed(began time.Time) {
	took := time.Since(began)
	m.ended.with(func(e *endings) {
		e.finisher.Flushes++
		e.finisher.Took.Add(took)
	})
}

// flushAgain counts a flush that has to be tried again.
func (m *meters) flushAgain() { m.ended.with(func(e *endings) { e.finisher.Retries++ }) }

// recorded counts the outcomes of a batch: of attempts, and of entries that were
// not begun.
func (m *meters) recorded(batch []*task) {
	returned := int64(0)
	m.ended.with(func(e *endings) {
		kind, of := "", (*stint.Durations)(nil)
		for _, t := range batch {
			if t.drop {
				continue
			}
			e.finisher.Outcomes++
			switch x := &t.done; {
			case x.Slot > 0:
				if of == nil || t.entry.Kind != kind {
					kind, of = t.entry.Kind, e.of(t.entry.Kind)
				}
				of.Add(e.count(x))
			case x.Outcome == stint.OutcomeReturned:
				returned++
			}
		}
	})
	if returned > 0 {
		m.got(0, int(returned))
	}
}

// count counts an attempt, and tells how long it took.
func (e *endings) count(x *stint.Execution) time.Duration {
	took := x.Ended.Sub(x.Started)
	e.workers.Run++
	e.workers.Working += took
	switch x.Outcome {
	case stint.OutcomeCompleted:
		e.workers.Succeeded++
	case stint.OutcomeFailed:
		e.workers.Failed++
	case stint.OutcomeCancelled:
		e.workers.Cancelled++
	}
	return took
}

// of are the durations of a kind.
func (e *endings) of(kind string) *stint.Durations {
	d := e.kinds[kind]
	if d == nil {
		d = &stint.Durations{}
		e.kinds[kind] = d
	}
	return d
}

// prefetching is what the claim stage counts of what waits for slots.
type prefetching struct {
	stint.PrefetchMetrics
	sampled bool // Min is one that was seen
}

// more counts how many entries wait for slots when more is about to be claimed:
// the least of that is how close the slots came to starving.
func (p *prefetching) more(waiting int) {
	if n := int64(waiting); !p.sampled || n < p.Min {
		p.sampled, p.Min = true, n
	}
}

// filled counts how many wait behind a claim, and whether that brought all that
// there was room for.
func (p *prefetching) filled(waiting int, full bool) {
	if p.Max = max(p.Max, int64(waiting)); full && waiting > 0 {
		p.Full++
	}
}
