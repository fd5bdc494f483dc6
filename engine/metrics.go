package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// Metrics returns what the engine has counted since it was made, over all of its sessions, and also
// while it does not run. It may be called at any time, and is cheap. Each group of figures is of
// one moment. Attempts are counted when they are recorded.
func (e *Engine) Metrics() report.Metrics {
	return e.meters.read(e.config.Instance)
}

// meters count what an engine does. Each group belongs to one stage and has its own lock, taken
// once for each batch, so stages do not wait for each other here.
type meters struct {
	since  time.Time
	engine atomic.Int64 // the id of the last session

	listener guarded[report.ListenerMetrics]
	claimer  guarded[report.ClaimerMetrics]
	ended    guarded[endings]
	prefetch guarded[prefetchCounts]
	writer   guarded[report.WriterMetrics]

	running atomic.Int64 // attempts that run now
	starved atomic.Int64 // how often a slot found nothing
}

// endings is what the last stage counts.
type endings struct {
	workers  report.WorkerMetrics
	finisher report.FinisherMetrics
	kinds    map[string]*report.Durations
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
	m.ended.v.kinds = map[string]*report.Durations{}
	return m
}

func (m *meters) read(instance string) report.Metrics {
	x := report.Metrics{Instance: instance, Engine: store.EngineID(m.engine.Load()), Since: m.since, At: time.Now()}
	m.listener.with(func(l *report.ListenerMetrics) { x.Listener = *l })
	m.claimer.with(func(c *report.ClaimerMetrics) { x.Claimer = *c })
	m.prefetch.with(func(p *prefetchCounts) { x.Prefetch = p.PrefetchMetrics })
	m.writer.with(func(w *report.WriterMetrics) { x.Writer = *w })
	m.ended.with(func(e *endings) {
		x.Workers, x.Finisher = e.workers, e.finisher
		x.Kinds = make(map[string]report.Durations, len(e.kinds))
		for kind, d := range e.kinds {
			x.Kinds[kind] = *d
		}
	})
	x.Workers.Running, x.Prefetch.Empty = m.running.Load(), m.starved.Load()
	return x
}

// heard counts a notification. The first of each connection says that listening began, perhaps
// again.
func (m *meters) heard(first, again bool) {
	m.listener.with(func(l *report.ListenerMetrics) {
		switch {
		case !first:
			l.Notifications++
		case again:
			l.Reconnects++
		}
	})
}

// claimAnswered counts a claim that was answered.
func (m *meters) claimAnswered(began time.Time, entries int) {
	took := time.Since(began)
	m.claimer.with(func(c *report.ClaimerMetrics) {
		c.Claims++
		if c.Took.Add(took); entries == 0 {
			c.Empty++
		}
	})
}

// gotEntries counts entries that were claimed, and those of them that are returned at once.
func (m *meters) gotEntries(entries, returned int) {
	m.claimer.with(func(c *report.ClaimerMetrics) {
		c.Claimed += int64(entries)
		c.Returned += int64(returned)
	})
}

func (m *meters) noRoom() { m.claimer.with(func(c *report.ClaimerMetrics) { c.SlotWaits++ }) }

func (m *meters) flushed(began time.Time) {
	took := time.Since(began)
	m.ended.with(func(e *endings) {
		e.finisher.Flushes++
		e.finisher.Took.Add(took)
	})
}

func (m *meters) flushAgain() { m.ended.with(func(e *endings) { e.finisher.Retries++ }) }

// recorded counts the outcomes of a batch: of attempts, and of entries that did not start.
func (m *meters) recorded(batch []*task) {
	returned := int64(0)
	m.ended.with(func(e *endings) {
		kind, of := "", (*report.Durations)(nil)
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
		m.gotEntries(0, int(returned))
	}
}

// count counts an attempt, and returns how long it took.
func (e *endings) count(x *store.Completion) time.Duration {
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

func (e *endings) of(kind string) *report.Durations {
	d := e.kinds[kind]
	if d == nil {
		d = &report.Durations{}
		e.kinds[kind] = d
	}
	return d
}

// prefetchCounts counts the tasks that wait for slots.
type prefetchCounts struct {
	report.PrefetchMetrics
	sampled bool // Min was measured
}

// beforeClaim counts the tasks that wait when more is about to be claimed: the minimum says how
// close the slots came to having nothing to do.
func (p *prefetchCounts) beforeClaim(waiting int) {
	if n := int64(waiting); !p.sampled || n < p.Min {
		p.sampled, p.Min = true, n
	}
}

// afterClaim counts the tasks that wait after a claim, and whether that filled all room.
func (p *prefetchCounts) afterClaim(waiting int, full bool) {
	if p.Max = max(p.Max, int64(waiting)); full && waiting > 0 {
		p.Full++
	}
}
