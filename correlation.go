package stint

import (
	"context"
)

type correlationKey struct{}

// WithCorrelation returns a context whose jobs belong together: every client
// that enqueues with it, or with one made from it, gives them this correlation
// id, unless a job says its own. Empty ends that.
//
// The context of a handler carries the correlation id of its job, so what it
// enqueues inherits that, and what those jobs enqueue in their turn. A
// program that serves requests can begin earlier:
//
//	ctx = stint.WithCorrelation(ctx, request.Header.Get("X-Request-ID"))
//
// An id is 1 to 255 bytes, as names are; jobs with another are refused.
func WithCorrelation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, correlationKey{}, id)
}

// correlationFrom is what jobs enqueued with the context inherit; empty for
// nothing.
func correlationFrom(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}
