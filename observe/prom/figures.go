package prom

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stint-go/stint/report"
)

// Figures returns a collector of the metrics of one engine, but for those of its attempts, which
// [Events] counts by kind and queue. read is called at each scrape; pass the engine's method
// Metrics. The label engine has the engine's name.
func Figures(read func() report.Metrics) prometheus.Collector {
	f := &figures{read: read}
	// A label of the collector and not of each value, so that a program may register
	// the collectors of several engines.
	name := prometheus.Labels{"engine": read().Instance}
	for _, n := range numbers {
		f.numbers = append(f.numbers, prometheus.NewDesc("stint_engine_"+n.name, n.help, nil, name))
	}
	return f
}

type figures struct {
	read    func() report.Metrics
	numbers []*prometheus.Desc
}

// numbers are the metrics of an engine. Those whose name ends with _total are counters.
var numbers = []struct {
	name, help string
	of         func(m *report.Metrics) any
}{
	{"notifications_total", "Notifications that came from the store.", func(m *report.Metrics) any { return m.Listener.Notifications }},
	{"reconnects_total", "How often listening began again.", func(m *report.Metrics) any { return m.Listener.Reconnects }},
	{"listen_timeouts_total", "How often the engine looked because nothing was heard.", func(m *report.Metrics) any { return m.Listener.Timeouts }},
	{"claims_empty_total", "Claims that found nothing.", func(m *report.Metrics) any { return m.Claimer.Empty }},
	{"claimed_total", "Entries that were taken.", func(m *report.Metrics) any { return m.Claimer.Claimed }},
	{"slot_waits_total", "How often there was no room to take more.", func(m *report.Metrics) any { return m.Claimer.SlotWaits }},
	{"claim_seconds", "How long claims took.", func(m *report.Metrics) any { return m.Claimer.Took }},
	{"slots", "How many attempts may go on at once.", func(m *report.Metrics) any { return m.Workers.Slots }},
	{"outcomes_total", "Outcomes that were recorded.", func(m *report.Metrics) any { return m.Finisher.Outcomes }},
	{"flush_retries_total", "Flushes that had to be tried again.", func(m *report.Metrics) any { return m.Finisher.Retries }},
	{"flush_seconds", "How long flushes took.", func(m *report.Metrics) any { return m.Finisher.Took }},
	{"prefetch_max", "The most that ever waited for a slot.", func(m *report.Metrics) any { return m.Prefetch.Max }},
	{"prefetch_min", "The least that waited for a slot while there was more to take.", func(m *report.Metrics) any { return m.Prefetch.Min }},
	{"prefetch_full_total", "How often no more could wait for a slot.", func(m *report.Metrics) any { return m.Prefetch.Full }},
	{"prefetch_empty_total", "How often a slot found nothing.", func(m *report.Metrics) any { return m.Prefetch.Empty }},
	{"reports_total", "Figures that were to be stored.", func(m *report.Metrics) any { return m.Writer.Reports }},
	{"report_retries_total", "Writes of figures that had to be tried again.", func(m *report.Metrics) any { return m.Writer.Retries }},
	{"report_seconds", "How long writes of figures took.", func(m *report.Metrics) any { return m.Writer.Took }},
	{"retained_total", "Jobs that retention deleted.", func(m *report.Metrics) any { return m.Retention.Deleted }},
	{"retention_late_seconds", "How much longer than they are kept jobs may be there, by the engine that deletes them; otherwise 0.", func(m *report.Metrics) any { return m.Late() }},
	{"since_timestamp_seconds", "When the counting began.", func(m *report.Metrics) any { return m.Since }},
}

// Describe implements [prometheus.Collector].
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range f.numbers {
		out <- desc
	}
}

// Collect implements [prometheus.Collector].
func (f *figures) Collect(out chan<- prometheus.Metric) {
	m := f.read()
	for i, n := range numbers {
		kind, value := prometheus.GaugeValue, 0.0
		if strings.HasSuffix(n.name, "_total") {
			kind = prometheus.CounterValue
		}
		switch v := n.of(&m).(type) {
		case report.Durations:
			out <- summary(f.numbers[i], v)
			continue
		case int64:
			value = float64(v)
		case time.Duration:
			value = v.Seconds()
		case time.Time:
			value = float64(v.UnixMilli()) / 1000
		}
		out <- prometheus.MustNewConstMetric(f.numbers[i], kind, value)
	}
}

func summary(desc *prometheus.Desc, d report.Durations) prometheus.Metric {
	return prometheus.MustNewConstSummary(desc, uint64(max(0, d.Count)), max(0, d.Total).Seconds(), nil)
}
