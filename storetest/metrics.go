package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// metricsTests are about what is kept of what engines count.
var metricsTests = []test{
	{"The newest figures of an engine are kept, and come back exactly", func(t *T) {
		m := figures("ann", 1)
		t.keeps(m)
		t.kept(m)
		m.Engine, m.Claimer.Claims, m.Kinds["other"] = 2, 1<<60, report.Durations{Count: 1, Last: 1, Fastest: 1, Longest: 1, Total: 1}
		t.keeps(m)
		t.kept(m)
	}},
	{"Engines are kept apart, and so is one that counts anew under its old name", func(t *T) {
		ann, ben, anew := figures("ann", 1), figures("ben", 2), figures("ann", 3)
		anew.Since = anew.Since.Add(time.Microsecond)
		for _, m := range []report.Metrics{ann, ben, anew} {
			t.keeps(m)
		}
		t.kept(anew, ben, ann)
		ann.Workers.Run++
		t.keeps(ann)
		t.kept(ann, anew, ben)
	}},
	{"What is kept says when it came, by the store's clock", func(t *T) {
		k, m := as[report.MetricsKeeper](t), figures("ann", 1)
		m.At = time.Now().Add(1000 * time.Hour)
		before := t.now()
		t.keeps(m)
		after := t.now()
		list := must(k.EngineMetrics(t.ctx))(t)
		expect(t, len(list) == 1 && between(list[0].At, before, after),
			"between %v and %v came %+v", before, after, list)
	}},
}

// figures are some metrics that are nowhere zero.
func figures(instance string, token store.EngineID) report.Metrics {
	n := int64(token)
	took := report.Durations{Count: n, Last: 5, Fastest: 3, Longest: 1 << 50, Total: 1 << 55}
	return report.Metrics{
		Instance: instance, Engine: token, Since: time.Date(2026, 1, 2, 3, 4, 5, 678000, time.UTC), At: time.Now().UTC(),
		Listener: report.ListenerMetrics{Notifications: n, Reconnects: n + 1, Timeouts: n + 2},
		Claimer:  report.ClaimerMetrics{Claims: n, Empty: n + 1, Claimed: n + 2, SlotWaits: n + 3, Returned: n + 4, Took: took},
		Workers:  report.WorkerMetrics{Slots: n + 5, Running: n, Run: n + 1, Succeeded: n + 2, Failed: n + 3, Cancelled: n + 4, Working: time.Hour},
		Finisher: report.FinisherMetrics{Outcomes: n, Flushes: n + 1, Retries: n + 2, Took: took},
		Prefetch: report.PrefetchMetrics{Max: n, Min: n + 1, Full: n + 2, Empty: n + 3},
		Writer:   report.WriterMetrics{Reports: n, Writes: n + 1, Retries: n + 2, Took: took},
		Kinds:    map[string]report.Durations{"k": took, "ü 'x": {Count: 1}},
	}
}

func (t *T) keeps(m report.Metrics) {
	t.Helper()
	t.must(as[report.MetricsKeeper](t).WriteMetrics(t.ctx, m))
}

// kept compares what is kept, but for the times at which it came.
func (t *T) kept(want ...report.Metrics) {
	t.Helper()
	got := must(as[report.MetricsKeeper](t).EngineMetrics(t.ctx))(t)
	noDiff(t, cmp.Diff(want, got, cmpopts.IgnoreFields(report.Metrics{}, "At")), "what is kept (-want +got)")
}
