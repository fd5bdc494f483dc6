package prom

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

// Config bounds the number of series. The zero value suits most programs.
type Config struct {
	// MaxKinds, MaxQueues, MaxLimits and MaxSchedules are how many values the labels kind, queue,
	// limit and schedule have, by default 100 each. Further ones are counted as "other".
	MaxKinds, MaxQueues, MaxLimits, MaxSchedules int

	// Target is in what time the wanted engines clear a backlog. The default is [report.ScaleTarget].
	Target time.Duration

	// Buckets are the upper bounds of the histograms, in seconds. The default is [DefaultBuckets].
	Buckets []float64
}

// DefaultBuckets suit jobs that take from a millisecond to an hour, in seconds.
var DefaultBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}

const (
	defaultMax  = 100
	maxTroubles = 50
)

func configOf(given []Config) Config { return append(slices.Clip(given), Config{})[0] }

// Events counts the events of engines. It is a [prometheus.Collector]. Make
// one with [NewEvents]; its methods may be called concurrently.
type Events struct {
	attempts, failed, taken, trouble *prometheus.CounterVec
	returned, fenced, burials        prometheus.Counter
	duration, latency                *prometheus.HistogramVec
	running, roster                  *prometheus.Desc

	kinds, queues, troubles bounded

	mu   sync.Mutex // guards the rest
	busy map[store.EngineID]map[class]int
}

// class is what attempts are counted by.
type class struct{ kind, queue string }

// NewEvents returns a collector whose counters are zero.
func NewEvents(config ...Config) *Events {
	c := configOf(config)
	if c.Buckets == nil {
		c.Buckets = DefaultBuckets
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stint_" + name, Help: help}, labels)
	}
	single := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "stint_" + name, Help: help})
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "stint_" + name, Help: help, Buckets: c.Buckets}, []string{"kind", "queue"})
	}
	m := &Events{
		attempts: counter("attempts_total", "Attempts that ended and are recorded, by outcome.", "kind", "queue", "outcome"),
		failed:   counter("jobs_failed_total", "Jobs that failed for good.", "kind", "queue"),
		returned: single("jobs_returned_total", "Jobs that were handed back unstarted."),
		fenced:   single("fenced_total", "How often an engine found that it had been buried."),
		burials:  single("burials_total", "Engines that died and were buried by these."),
		taken:    counter("burial_jobs_total", "Jobs taken over from engines that died, by whether they had begun.", "begun"),
		trouble:  counter("trouble_total", "What failed and is tried again, by what was tried.", "doing"),
		duration: histogram("attempt_duration_seconds", "How long attempts took."),
		latency:  histogram("attempt_latency_seconds", "How long jobs that were due waited for their attempt to begin."),
		running:  prometheus.NewDesc("stint_attempts_running", "Attempts that go on now.", []string{"kind", "queue"}, nil),
		roster:   prometheus.NewDesc("stint_engines", "Engines of this program that stand in the roster.", nil, nil),
		kinds:    bounded{max: cmp.Or(c.MaxKinds, defaultMax)}, queues: bounded{max: cmp.Or(c.MaxQueues, defaultMax)},
		troubles: bounded{max: maxTroubles},
		busy:     map[store.EngineID]map[class]int{},
	}
	// A series that begins with its first event has a rate only from the second on.
	m.taken.WithLabelValues("true")
	m.taken.WithLabelValues("false")
	return m
}

// On counts an event. Use it as engine.Config.OnEvent, or as one of the listeners of [observe.Fan].
//
// [observe.Fan]: https://pkg.go.dev/github.com/stint-go/stint/observe#Fan
func (m *Events) On(e event.Event) {
	switch e.Type {
	case event.EventJoined:
		m.locked(func() { m.busy[e.Engine] = map[class]int{} })
	case event.EventLeft:
		m.locked(func() { delete(m.busy, e.Engine) })
	case event.EventBuried: // how the attempts end that run is not told
		m.locked(func() { delete(m.busy, e.Engine) })
		if e.Err == nil { // otherwise the program let go of it
			m.fenced.Inc()
		}
	case event.EventStarted:
		c := m.class(e.Job)
		m.run(e.Engine, c, 1)
		if !e.Ready.IsZero() {
			m.latency.WithLabelValues(c.kind, c.queue).Observe(seconds(e.Job.Started.Sub(e.Ready)))
		}
	case event.EventEnded:
		c, x := m.class(e.Job), e.Attempt
		m.attempts.WithLabelValues(c.kind, c.queue, x.Outcome.String()).Inc()
		if !x.Started.IsZero() { // else nothing had started here
			m.duration.WithLabelValues(c.kind, c.queue).Observe(seconds(x.Ended.Sub(x.Started)))
			m.run(e.Engine, c, -1)
		}
	case event.EventFailed:
		c := m.class(e.Job)
		m.failed.WithLabelValues(c.kind, c.queue).Inc()
	case event.EventReturned:
		m.returned.Add(float64(e.Count))
	case event.EventBurial:
		if e.Other != nil {
			m.burials.Inc()
		}
		m.taken.WithLabelValues("true").Add(float64(e.Begun))
		m.taken.WithLabelValues("false").Add(float64(e.Count - e.Begun))
	case event.EventTrouble:
		tried := strings.TrimSpace(strings.TrimSuffix(e.Doing, e.About)) // any number of names would be series
		m.trouble.WithLabelValues(m.troubles.of(tried)).Inc()
	}
}

// seconds is never negative, whatever a clock did meanwhile.
func seconds(d time.Duration) float64 { return max(0, d).Seconds() }

func (m *Events) class(job *stint.Job) class {
	return class{m.kinds.of(job.Kind), m.queues.of(job.Queue)}
}

func (m *Events) locked(do func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	do()
}

func (m *Events) run(engine store.EngineID, c class, n int) {
	m.locked(func() {
		if busy := m.busy[engine]; busy != nil {
			busy[c] = max(0, busy[c]+n)
		}
	})
}

func (m *Events) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.attempts, m.failed, m.returned, m.fenced, m.burials, m.taken, m.trouble, m.duration, m.latency}
}

// Describe implements [prometheus.Collector].
func (m *Events) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(out)
	}
	out <- m.running
	out <- m.roster
}

// Collect implements [prometheus.Collector].
func (m *Events) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(out)
	}
	engines, running := 0, map[class]int{}
	m.locked(func() {
		engines = len(m.busy)
		for _, busy := range m.busy {
			for c, n := range busy {
				running[c] += n
			}
		}
	})
	out <- prometheus.MustNewConstMetric(m.roster, prometheus.GaugeValue, float64(engines))
	for c, n := range running {
		out <- prometheus.MustNewConstMetric(m.running, prometheus.GaugeValue, float64(n), c.kind, c.queue)
	}
}
