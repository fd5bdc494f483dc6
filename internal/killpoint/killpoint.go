// Package killpoint lets a test end the run of a handler at the points where the death of its process
// makes a difference to what is stored. Package stinttest uses it; a program has no such points, since
// only runs in the caller's context (Engine.RunReady) look for them.
package killpoint

import "context"

// A Point is a place in a run.
type Point struct {
	Engine int64  // that holds the job
	Job    int64  // its id
	Step   string // the step; empty when the handler has returned
	Done   bool   // the step is recorded, or asks, or waits; otherwise its function has returned, and no more
	InTx   bool   // the handler has a transaction open
}

// Func is called at each point, and may end the goroutine, but not after the handler has returned.
type Func func(Point)

type key struct{}

// Context returns a context for the runs of which f is called.
func Context(ctx context.Context, f Func) context.Context { return context.WithValue(ctx, key{}, f) }

// From returns the function of a context, or nil.
func From(ctx context.Context) Func {
	f, _ := ctx.Value(key{}).(Func)
	return f
}
