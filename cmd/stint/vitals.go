package main

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/observe/prom"
)

// vitals are what a process tells of itself: whether its engine lives and works,
// and figures. Whoever asks at the address of --health or of the dashboard is told
// the same.
type vitals struct {
	figures *prometheus.Registry
	engine  atomic.Pointer[engine.Engine] // nil before there is one
}

// newVitals are those of the process, and what is collected besides.
func newVitals(besides ...prometheus.Collector) *vitals {
	v := &vitals{figures: prometheus.NewRegistry()}
	v.figures.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	v.figures.MustRegister(besides...)
	return v
}

// metrics serves the figures, and others beside them.
func (v *vitals) metrics(others ...prometheus.Gatherer) http.Handler {
	all := append(prometheus.Gatherers{v.figures}, others...)
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{Timeout: healthAnswer, MaxRequestsInFlight: 4})
}

// watch says which engine is asked about.
func (v *vitals) watch(e *engine.Engine) { v.engine.Store(e) }

// count adds the figures of an engine that has some.
func (v *vitals) count(e any) error {
	counts, ok := e.(interface{ Metrics() stint.Metrics })
	if !ok {
		return nil
	}
	return v.figures.Register(prom.Figures(counts.Metrics))
}

// Alive implements [probes.Engine]: a process that waits for its database is
// alive.
func (v *vitals) Alive() error {
	if e := v.engine.Load(); e != nil {
		return e.Alive()
	}
	return nil
}

// Ready implements [probes.Engine].
func (v *vitals) Ready(ctx context.Context) error {
	if e := v.engine.Load(); e != nil {
		return e.Ready(ctx)
	}
	return &stint.UnreadyError{Condition: stint.ConditionDatabase, Problem: "it was not reached yet"}
}
