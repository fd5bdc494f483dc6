package stint

import (
	"context"
)

type correlationKey struct{}

// WithCorrelation returns a context for jobs that belong together: jobs that are
// enqueued with it, or with a context derived from it, get this correlation id, unless
// they have their own. Empty ends that.
//
// The context of a handler carries the correlation id of its job, so jobs that it
// enqueues inherit the id, and so on. A program that serves requests can begin earlier:
//
//	ctx = stint.WithCorrelation(ctx, request.Header.Get("X-Request-ID"))
//
// An id has 1 to 255 bytes; jobs with any other are refused.
func WithCorrelation(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, correlationKey{}, id)
}

// correlationFrom returns the id that jobs enqueued with the context inherit; empty for
// none.
func correlationFrom(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}
