package stint

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
)

// Middleware wraps a handler: it returns one that is called in its place. Before and
// after next it can measure, open a span, put values into the context, replace the
// error, or not call next at all.
//
//	mux.Use(func(next stint.Handler) stint.Handler {
//		return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
//			defer measure(job.Kind, time.Now())
//			return next(ctx, job)
//		}
//	})
//
// Middleware is part of the attempt: its time counts towards the timeout, its
// panic is the handler's panic, and what it returns is what the handler
// returned. It sees what a handler set by [SetResult] or [SetError] as if
// the handler had returned it, and may set something else.
//
// It is called once for each kind, when an engine starts or the kind is first used.
type Middleware func(next Handler) Handler

// Use wraps the handlers of every kind, also of those that are added later.
// What was added first is outermost. It panics once an engine runs.
func (m *Mux) Use(mw ...Middleware) {
	m.mustBeUnused("middleware")
	m.middleware = append(m.middleware, mw...)
}

// Use wraps the handler of this kind, inside of what the whole mux has. What
// was added first is outermost. It panics once an engine runs.
func (r *Registration) Use(mw ...Middleware) *Registration {
	r.mux.mustBeUnused("middleware")
	r.middleware = append(r.middleware, mw...)
	return r
}

// wrap puts the handler into its middleware.
func (r *Registration) wrap() Handler {
	all := slices.Concat(r.mux.middleware, r.middleware)
	if len(all) == 0 {
		return r.handler
	}
	h := settled(r.handler)
	for _, mw := range slices.Backward(all) {
		if h = mw(h); h == nil {
			panic(fmt.Sprintf("stint: kind %q: a middleware returned nil", r.decl.Name))
		}
	}
	return h
}

// settled lets middleware see what a handler set as if it had been returned. After a
// panic nothing of it counts, since a middleware may recover.
func settled(h Handler) Handler {
	return func(ctx context.Context, job *Job) (json.RawMessage, error) {
		a := runFrom(ctx)
		if a == nil {
			return h(ctx, job)
		}
		returned := false
		defer func() {
			if !returned {
				_, _ = a.settle(nil, nil, false)
			}
		}()
		result, err := h(ctx, job)
		returned = true
		return a.settle(result, err, false)
	}
}

// EnqueueFunc stores jobs, all or none, and returns their receipts in the same
// order. The zero [Tx] is no transaction.
type EnqueueFunc func(ctx context.Context, tx Tx, jobs []NewJob) ([]Receipt, error)

// EnqueueMiddleware wraps the function that stores jobs: it returns one that is called
// in its place. Before next it may change the jobs, which are copies, or refuse them
// with an error. After next it sees the receipts or the error. Jobs that it changed are
// checked like any others; of a batch with an invalid job nothing is stored.
//
// It must return one receipt for each job that it was given. In a caller's transaction
// the jobs do not exist before that commits.
type EnqueueMiddleware func(next EnqueueFunc) EnqueueFunc

// Use returns a client whose jobs go through the middleware. What was added
// first is outermost. Jobs that are enqueued by another client or by SQL do not.
func (c *Client) Use(mw ...EnqueueMiddleware) *Client {
	return c.but(func(d *Client) { d.middleware = slices.Concat(d.middleware, mw); d.chain() })
}

// chain puts the storing into the middleware.
func (c *Client) chain() {
	c.through = nil
	if len(c.middleware) == 0 {
		return
	}
	plain := *c
	next := EnqueueFunc(plain.put)
	for _, mw := range slices.Backward(c.middleware) {
		if next = mw(next); next == nil {
			panic("stint: an enqueue middleware returned nil")
		}
	}
	c.through = next
}

// pass enqueues through the middleware.
func (c *Client) pass(ctx context.Context, jobs []NewJob) ([]Receipt, error) {
	receipts, err := c.through(ctx, c.tx, slices.Clone(jobs))
	if err == nil && len(receipts) != len(jobs) {
		err = fmt.Errorf("stint: an enqueue middleware answered with %d receipts for %d jobs", len(receipts), len(jobs))
	}
	return receipts, err
}
