package engine

import (
	"context"
	"slices"
)

// Lead has an engine do something while it holds a lease.
func (e *Engine) Lead(lease string, do func(ctx context.Context)) {
	e.singletonTasks = append(slices.Clone(e.singletonTasks), singletonTask{lease, nil, func(_ *session, ctx context.Context) { do(ctx) }})
}
