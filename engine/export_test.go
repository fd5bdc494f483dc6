package engine

import (
	"context"
	"slices"
)

// Lead has an engine do something while it holds a lease.
func (e *Engine) Lead(lease string, do func(ctx context.Context)) {
	e.singletonTasks = append(slices.Clone(e.singletonTasks), singletonTask{lease, nil, func(_ *session, ctx context.Context) { do(ctx) }})
}

// TakesInlineRuns reports whether RunNow and RunReady use the engine that runs.
func (e *Engine) TakesInlineRuns() bool { return e.current.Load() != nil }

// Busy returns how many entries, or batches, take room in the engine that runs.
func (e *Engine) Busy() (n int64) {
	for _, p := range e.current.Load().pools.all {
		n += p.busy.Load()
	}
	return n
}
