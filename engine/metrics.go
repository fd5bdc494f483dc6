package engine

import (
	"context"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// Metrics returns what the engine has counted since it was made, over all of its sessions, and also
// while it does not run. It may be called at any time, and is cheap. All figures but those of slots
// are of one moment. Attempts are counted when they are recorded.
func (e *Engine) Metrics() report.Metrics { return e.meters.read() }

// meters count what an engine does. The stages take the lock once for each batch.
type meters struct {
	running atomic.Int64 // attempts that run now
	starved atomic.Int64 // how often a slot found nothing

	mu      sync.Mutex // guards the rest
	counts  report.Metrics
	kinds   map[string]*report.Durations
	called  map[[2]string]bool // the steps that runs called: their kinds and names
	sampled bool               // the least prefetch was measured
}

func newMeters(instance string, slots int) *meters {
	m := &meters{kinds: map[string]*report.Durations{}, called: map[[2]string]bool{}}
	m.counts = report.Metrics{Instance: instance, Since: time.Now(), Workers: report.WorkerMetrics{Slots: int64(slots)}}
	return m
}

// with changes figures.
func (m *meters) with(f func(*report.Metrics)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(&m.counts)
}

func (m *meters) read() report.Metrics {
	m.mu.Lock()
	defer m.mu.Unlock()
	x := m.counts
	x.At, x.Workers.Running, x.Prefetch.Empty = time.Now(), m.running.Load(), m.starved.Load()
	x.Kinds = make(map[string]report.Durations, len(m.kinds))
	for kind, d := range m.kinds {
		x.Kinds[kind] = *d
	}
	return x
}

// claimAnswered counts a claim that was answered.
func (m *meters) claimAnswered(began time.Time, entries int) {
	took := time.Since(began)
	m.with(func(m *report.Metrics) {
		m.Claimer.Claims++
		if m.Claimer.Took.Add(took); entries == 0 {
			m.Claimer.Empty++
		}
	})
}

// gotEntries counts entries that were claimed, and those of them that are returned at once.
func (m *meters) gotEntries(entries, returned int) {
	m.with(func(m *report.Metrics) {
		m.Claimer.Claimed += int64(entries)
		m.Claimer.Returned += int64(returned)
	})
}

func (m *meters) noRoom() { m.with(func(m *report.Metrics) { m.Claimer.SlotWaits++ }) }

func (m *meters) flushed(began time.Time) {
	took := time.Since(began)
	m.with(func(m *report.Metrics) {
		m.Finisher.Flushes++
		m.Finisher.Took.Add(took)
	})
}

func (m *meters) flushAgain() { m.with(func(m *report.Metrics) { m.Finisher.Retries++ }) }

// recorded counts the outcomes of a batch: of attempts, and of entries that did not start.
func (m *meters) recorded(batch []*task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, t := range batch {
		if t.drop {
			continue
		}
		m.counts.Finisher.Outcomes++
		switch x := &t.done; {
		case x.Slot > 0:
			m.ended(t.entry.Kind, x)
		case x.Outcome == stint.OutcomeReturned:
			m.counts.Claimer.Returned++
		}
	}
}

// ended counts an attempt.
func (m *meters) ended(kind string, x *store.Completion) {
	took, workers := x.Ended.Sub(x.Started), &m.counts.Workers
	workers.Run++
	workers.Working += took
	switch x.Outcome {
	case stint.OutcomeCompleted:
		workers.Succeeded++
	case stint.OutcomeFailed:
		workers.Failed++
	case stint.OutcomeCancelled:
		workers.Cancelled++
	}
	d := m.kinds[kind]
	if d == nil {
		d = &report.Durations{}
		m.kinds[kind] = d
	}
	d.Add(took)
}

// steps keeps which steps runs of a kind call, and counts a job that completed without coming to steps that it had
// recorded. It returns those that no run has called: the others belong to a way that it did not take, or are parts
// of another step. Numbers in names are as one, as those of a loop.
func (m *meters) steps(kind string, called, missed []string) (unknown []string) {
	known := make([][2]string, len(called))
	for i, name := range called {
		known[i] = stepOf(kind, name)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	fresh := false
	for _, step := range known {
		if !m.called[step] && len(m.called) < maxStepNames {
			m.called[step], fresh = true, true
		}
	}
	all := slices.Clone(m.counts.Missed) // others read what was
	if fresh {
		all = slices.DeleteFunc(all, func(s report.MissedStep) bool { return m.called[[2]string{s.Kind, s.Step}] })
	}
	now, counted := time.Now().UTC().Round(0), map[int]bool{}
	for _, name := range missed {
		step := stepOf(kind, name)
		if m.called[step] || len(m.called) == maxStepNames {
			continue
		}
		unknown = append(unknown, name)
		i := slices.IndexFunc(all, func(s report.MissedStep) bool { return [2]string{s.Kind, s.Step} == step })
		if i < 0 {
			if i = len(all); i == maxMissed {
				continue
			}
			all = append(all, report.MissedStep{Kind: kind, Step: step[1]})
		}
		if !counted[i] {
			counted[i] = true
			all[i].Jobs++
			all[i].Last = now
		}
	}
	m.counts.Missed = all
	return unknown
}

// How many names of steps an engine knows, over all kinds, and how many of them it tells that were not come to.
const (
	maxStepNames = 10_000
	maxMissed    = 100
)

// stepOf is a kind and the name of a step, with # for each number.
func stepOf(kind, name string) [2]string { return [2]string{kind, digits.ReplaceAllString(name, "#")} }

var digits = regexp.MustCompile(`[0-9]+`)

// retains counts jobs that retention deleted, and keeps how far it has come.
func (m *meters) retains(deleted int, clean time.Time, kept time.Duration) {
	m.with(func(m *report.Metrics) {
		m.Retention.Deleted += int64(deleted)
		m.Retention.Clean, m.Retention.Kept = clean, kept
	})
}

// beforeClaim counts the tasks that wait when more is about to be claimed: the minimum says how
// close the slots came to having nothing to do.
func (m *meters) beforeClaim(waiting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if p := &m.counts.Prefetch; !m.sampled || int64(waiting) < p.Min {
		m.sampled, p.Min = true, int64(waiting)
	}
}

// afterClaim counts what was claimed, and the tasks that wait after it, and whether that filled all
// room.
func (m *meters) afterClaim(entries, waiting int, full bool) {
	m.with(func(m *report.Metrics) {
		m.Claimer.Claimed += int64(entries)
		if m.Prefetch.Max = max(m.Prefetch.Max, int64(waiting)); full && waiting > 0 {
			m.Prefetch.Full++
		}
	})
}

// lastMetricsFor bounds how long a stop waits for the last metrics to be written.
const lastMetricsFor = 2 * time.Second

// startMetrics writes the engine's metrics to the store and to other writers from now on. The
// function that it returns ends that with a last write. It goes on while the engine joins again.
//
// Each writer has its own goroutine, in which it may fail, panic or hang: that delays neither work
// nor another writer, and a stop only for a moment.
func (e *Engine) startMetrics(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var last sync.WaitGroup
	for _, w := range e.metricsWriters() {
		last.Go(func() { e.metricsLoop(ctx, w) })
	}
	return func() {
		cancel()
		within(ended(&last), lastMetricsFor)
	}
}

// metricsWriters returns the store, if it keeps metrics, and the configured writers.
func (e *Engine) metricsWriters() []report.MetricsWriter {
	if e.config.MetricsEvery < 0 {
		return nil
	}
	all := e.config.MetricsWriters
	if w, ok := e.store.(report.MetricsWriter); ok && !e.config.MetricsNotStored {
		all = append([]report.MetricsWriter{w}, all...)
	}
	return all
}

// metricsLoop writes at every tick, and once more when ctx has ended.
func (e *Engine) metricsLoop(ctx context.Context, w report.MetricsWriter) {
	every := e.config.MetricsEvery
	tick := time.NewTicker(spread(every))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			limit, cancel := context.WithTimeout(ctx, every)
			e.writeMetrics(limit, w)
			cancel()
		case <-ctx.Done():
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastMetricsFor)
			e.writeMetrics(limit, w)
			cancel()
			return
		}
	}
}

// writeMetrics writes once, and tries again until ctx ends: then the next report is due.
func (e *Engine) writeMetrics(ctx context.Context, w report.MetricsWriter) {
	e.meters.with(func(m *report.Metrics) { m.Writer.Reports++ })
	wait := new(backoff)
	for told := false; ; {
		limit, cancel := context.WithTimeout(ctx, e.config.TimeToLive)
		began := time.Now()
		err := tryWrite(limit, w, e.Metrics())
		took := time.Since(began)
		cancel()
		if err == nil {
			e.meters.with(func(m *report.Metrics) { m.Writer.Writes++; m.Writer.Took.Add(took) })
			return
		}
		e.meters.with(func(m *report.Metrics) { m.Writer.Retries++ })
		if !told && ctx.Err() == nil {
			told = true
			e.emit(event.Event{Type: event.EventTrouble, Engine: e.Metrics().Engine, Doing: "write metrics", Err: err})
		}
		if !wait.sleep(ctx) {
			return
		}
	}
}

// tryWrite turns a panic of a writer into an error.
func tryWrite(ctx context.Context, w report.MetricsWriter, m report.Metrics) (err error) {
	defer recovered(&err)
	return w.WriteMetrics(ctx, m)
}
