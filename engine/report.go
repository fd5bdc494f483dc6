package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// lastReport bounds what a stop waits for the last figures to be written.
const lastReport = 2 * time.Second

// report hands the engine's figures to the store and to other writers from now
// on. The function that it returns ends that with the last figures. It goes on
// while the engine joins anew: the figures count on.
//
// Each writer has a goroutine of its own, in which it may fail, panic or hang:
// that holds up neither work nor another writer, and a stop for a moment only.
func (e *Engine) report(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var last sync.WaitGroup
	for _, w := range e.metricsWriters() {
		last.Go(func() { e.reportTo(ctx, w) })
	}
	return func() {
		cancel()
		over := make(chan struct{})
		go func() { last.Wait(); close(over) }()
		late := time.NewTimer(lastReport)
		defer late.Stop()
		select {
		case <-over:
		case <-late.C:
		}
	}
}

// metricsWriters are all who want the figures.
func (e *Engine) metricsWriters() []stint.MetricsWriter {
	if e.config.MetricsEvery < 0 {
		return nil
	}
	all := e.config.MetricsWriters
	if w, ok := e.store.(stint.MetricsWriter); ok && !e.config.MetricsNotStored {
		all = append([]stint.MetricsWriter{w}, all...)
	}
	return all
}

// reportTo writes at every tick, and once more when ctx has ended.
func (e *Engine) reportTo(ctx context.Context, w stint.MetricsWriter) {
	every := e.config.MetricsEvery
	// Engines of a fleet that started together do not all write at once.
	tick := time.NewTicker(max(1, every-rand.N(max(1, every/10))))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			limit, cancel := context.WithTimeout(ctx, every)
			e.writeMetrics(limit, w)
			cancel()
		case <-ctx.Done():
			limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastReport)
			e.writeMetrics(limit, w)
			cancel()
			return
		}
	}
}

// writeMetrics writes once, trying again until ctx ends: by then there is a new
// report.
func (e *Engine) writeMetrics(ctx context.Context, w stint.MetricsWriter) {
	count := func(f func(*stint.WriterMetrics)) { e.meters.writer.with(f) }
	count(func(m *stint.WriterMetrics) { m.Reports++ })
	wait := newBackoff()
	for told := false; ; {
		limit, cancel := context.WithTimeout(ctx, e.config.TimeToLive)
		began := time.Now()
		err := tryWrite(limit, w, e.Metrics())
		took := time.Since(began)
		cancel()
		if err == nil {
			count(func(m *stint.WriterMetrics) { m.Writes++; m.Took.Add(took) })
			return
		}
		count(func(m *stint.WriterMetrics) { m.Retries++ })
		if !told && ctx.Err() == nil {
			told = true
			e.emit(stint.Event{Type: stint.EventTrouble, Engine: stint.Token(e.meters.engine.Load()), Doing: "write metrics", Err: err})
		}
		if !wait.sleep(ctx) {
			return
		}
	}
}

// tryWrite makes an error of whatever a writer does but hang.
func tryWrite(ctx context.Context, w stint.MetricsWriter, m stint.Metrics) (err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		} else {
			err = fmt.Errorf("the writer ended its goroutine (runtime.Goexit)")
		}
	}()
	err = w.WriteMetrics(ctx, m)
	returned = true
	return err
}
