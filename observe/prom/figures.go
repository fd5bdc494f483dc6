package prom

import (
	"maps"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stint-go/stint/report"
)

// Figures returns a collector of the metrics of one engine. read is called at each scrape; pass the
// engine's method Metrics. The label instance_name has the engine's name, because Prometheus uses
// instance for the target.
func Figures(read func() report.Metrics, config ...Config) prometheus.Collector {
	kinds := defaultMax
	if len(config) > 0 && config[0].MaxKinds > 0 {
		kinds = config[0].MaxKinds
	}
	// As a label of the collector and not of each value, so that a program may
	// register those of several engines.
	name := prometheus.Labels{"instance_name": read().Instance}
	describe := func(metric, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("stint_engine_"+metric, help, labels, name)
	}
	f := &figures{read: read, kinds: bounded{max: kinds}}
	for _, one := range numbers {
		f.numbers = append(f.numbers, describe(one.name, one.help))
	}
	for _, one := range sums {
		f.sums = append(f.sums, describe(one.name, one.help))
	}
	f.byKind = describe("attempts_of_kind_seconds", "How long attempts of a kind took.", "kind")
	return f
}

type figures struct {
	read          func() report.Metrics
	kinds         bounded
	numbers, sums []*prometheus.Desc
	byKind        *prometheus.Desc
}

// number is one of an engine.
type number struct {
	name, help string
	kind       prometheus.ValueType
	of         func(m *report.Metrics) float64
}

func counter(name, help string, of func(m *report.Metrics) int64) number {
	return number{name, help, prometheus.CounterValue, func(m *report.Metrics) float64 { return float64(of(m)) }}
}

func gauge(name, help string, of func(m *report.Metrics) float64) number {
	return number{name, help, prometheus.GaugeValue, of}
}

var numbers = []number{
	counter("notifications_total", "How often the store rang.", func(m *report.Metrics) int64 { return m.Listener.Notifications }),
	counter("reconnects_total", "How often listening began again.", func(m *report.Metrics) int64 { return m.Listener.Reconnects }),
	counter("listen_timeouts_total", "How often the engine looked because nothing was heard.", func(m *report.Metrics) int64 { return m.Listener.Timeouts }),
	counter("claims_total", "How often entries were asked for.", func(m *report.Metrics) int64 { return m.Claimer.Claims }),
	counter("claims_empty_total", "Claims that found nothing.", func(m *report.Metrics) int64 { return m.Claimer.Empty }),
	counter("claimed_total", "Entries that were taken.", func(m *report.Metrics) int64 { return m.Claimer.Claimed }),
	counter("slot_waits_total", "How often there was no room to take more.", func(m *report.Metrics) int64 { return m.Claimer.SlotWaits }),
	counter("returned_total", "Entries that were handed back unstarted.", func(m *report.Metrics) int64 { return m.Claimer.Returned }),
	gauge("slots", "How many attempts may go on at once.", func(m *report.Metrics) float64 { return float64(m.Workers.Slots) }),
	gauge("running", "Attempts that go on now.", func(m *report.Metrics) float64 { return float64(m.Workers.Running) }),
	counter("run_total", "Attempts that ended.", func(m *report.Metrics) int64 { return m.Workers.Run }),
	counter("succeeded_total", "Attempts that succeeded.", func(m *report.Metrics) int64 { return m.Workers.Succeeded }),
	counter("failed_total", "Attempts that failed.", func(m *report.Metrics) int64 { return m.Workers.Failed }),
	counter("cancelled_total", "Attempts that were cancelled.", func(m *report.Metrics) int64 { return m.Workers.Cancelled }),
	{"working_seconds_total", "How long all attempts took together.", prometheus.CounterValue,
		func(m *report.Metrics) float64 { return m.Workers.Working.Seconds() }},
	counter("outcomes_total", "Outcomes that were recorded.", func(m *report.Metrics) int64 { return m.Finisher.Outcomes }),
	counter("flushes_total", "Batches that outcomes were recorded in.", func(m *report.Metrics) int64 { return m.Finisher.Flushes }),
	counter("flush_retries_total", "Flushes that had to be tried again.", func(m *report.Metrics) int64 { return m.Finisher.Retries }),
	gauge("prefetch_max", "The most that ever waited for a slot.", func(m *report.Metrics) float64 { return float64(m.Prefetch.Max) }),
	gauge("prefetch_min", "The least that waited for a slot while there was more to take.", func(m *report.Metrics) float64 { return float64(m.Prefetch.Min) }),
	counter("prefetch_full_total", "How often no more could wait for a slot.", func(m *report.Metrics) int64 { return m.Prefetch.Full }),
	counter("prefetch_empty_total", "How often a slot found nothing.", func(m *report.Metrics) int64 { return m.Prefetch.Empty }),
	counter("reports_total", "Figures that were to be stored.", func(m *report.Metrics) int64 { return m.Writer.Reports }),
	counter("report_writes_total", "Writes of figures.", func(m *report.Metrics) int64 { return m.Writer.Writes }),
	counter("report_retries_total", "Writes of figures that had to be tried again.", func(m *report.Metrics) int64 { return m.Writer.Retries }),
	gauge("since_timestamp_seconds", "When the counting began.", func(m *report.Metrics) float64 { return float64(m.Since.UnixMilli()) / 1000 }),
}

// sums are of how long something took that happened many times.
var sums = []struct {
	name, help string
	of         func(m *report.Metrics) report.Durations
}{
	{"claim_seconds", "How long claims took.", func(m *report.Metrics) report.Durations { return m.Claimer.Took }},
	{"flush_seconds", "How long flushes took.", func(m *report.Metrics) report.Durations { return m.Finisher.Took }},
	{"report_seconds", "How long writes of figures took.", func(m *report.Metrics) report.Durations { return m.Writer.Took }},
}

// Describe implements [prometheus.Collector].
func (f *figures) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range slices.Concat(f.numbers, f.sums) {
		out <- desc
	}
	out <- f.byKind
}

// Collect implements [prometheus.Collector].
func (f *figures) Collect(out chan<- prometheus.Metric) {
	m := f.read()
	for i, desc := range f.numbers {
		out <- prometheus.MustNewConstMetric(desc, numbers[i].kind, numbers[i].of(&m))
	}
	for i, desc := range f.sums {
		out <- summary(desc, sums[i].of(&m))
	}
	kinds := map[string]report.Durations{}
	for _, kind := range slices.Sorted(maps.Keys(m.Kinds)) {
		label := f.kinds.of(kind)
		sum := kinds[label]
		sum.Count += m.Kinds[kind].Count
		sum.Total += m.Kinds[kind].Total
		kinds[label] = sum
	}
	for kind, d := range kinds {
		out <- summary(f.byKind, d, kind)
	}
}

func summary(desc *prometheus.Desc, d report.Durations, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstSummary(desc, uint64(max(0, d.Count)), max(0, d.Total).Seconds(), nil, labels...)
}
