package engine

import (
	"context"
	"sync"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

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
	count := func(f func(*report.WriterMetrics)) { e.meters.writer.with(f) }
	count(func(m *report.WriterMetrics) { m.Reports++ })
	wait := new(backoff)
	for told := false; ; {
		limit, cancel := context.WithTimeout(ctx, e.config.TimeToLive)
		began := time.Now()
		err := tryWrite(limit, w, e.Metrics())
		took := time.Since(began)
		cancel()
		if err == nil {
			count(func(m *report.WriterMetrics) { m.Writes++; m.Took.Add(took) })
			return
		}
		count(func(m *report.WriterMetrics) { m.Retries++ })
		if !told && ctx.Err() == nil {
			told = true
			e.emit(event.Event{Type: event.EventTrouble, Engine: store.EngineID(e.meters.engine.Load()), Doing: "write metrics", Err: err})
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
