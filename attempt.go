package stint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint/retry"
)

// Run is one run of a handler: what its context carries. Engines make one for each
// attempt, and a test of a handler can do the same:
//
//	a := &stint.Run{Job: job, Client: client}
//	result, err := a.Settle(handler(a.Context(ctx), job))
type Run struct {
	Job    *Job
	Client *Client     // nil for none
	Reader interface { // the job's store; nil when it shows nothing
		Job(ctx context.Context, id ID) (*JobInfo, error)
	}

	// Steps keeps what steps came to. Nil keeps them in the Run: then the next one knows of none.
	Steps StepKeeper

	// Batch is that of the run until its handler joins it; nil for none.
	Batch *Batch

	context runContext // the first one made

	mu      sync.Mutex // guards Batch, context and what follows
	sealing *sealing   // of a kind that is sealed, or with a client that keeps large values outside
	steps   *steps     // nil until one is called
	log     *runLog    // nil until something is said
	over    bool
	set     bool
	result  json.RawMessage
	err     error
}

// StepKeeper keeps what the steps of a run came to.
type StepKeeper interface {
	Recorded(ctx context.Context) ([]RecordedStep, error)
	// Record records a result, and commits the transaction if there is one. It returns what is
	// recorded then.
	Record(ctx context.Context, tx Tx, name string, began time.Time, result json.RawMessage) (json.RawMessage, error)
	// Take records a signal as a step, or that none came if the time is over. It returns what
	// is recorded then: {"signal": its number, "value": …} or {"timeout": true}; nil for nothing yet.
	Take(ctx context.Context, step, signal string, until time.Time) (json.RawMessage, error)
	// Ask records a question, or the call of a job, as a step, unless that is there. It returns what is recorded then: its
	// result is nil while there is no answer, and {"timeout": true} if there was none in time.
	Ask(ctx context.Context, step string, q Question) (RecordedStep, error)
	Now() time.Time // by the clock of the store
	Err() error     // why no step may begin any more; nil while one may
}

type runKey struct{}

// Context returns the context of the handler. What is enqueued with it
// inherits the correlation id of the attempt's job, if that has one.
func (a *Run) Context(ctx context.Context) context.Context {
	c := runContext{Context: ctx, attempt: a}
	if a == nil {
		return new(c)
	}
	if a.Job != nil {
		c.correlation = a.Job.Correlation
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.context.attempt != nil {
		return new(c)
	}
	a.context = c // nearly always the only one, and it lives as long as a
	return &a.context
}

// runContext is the context of a handler: one value for two.
type runContext struct {
	context.Context
	attempt     *Run
	correlation string // of the job; empty for that of the context
}

// Value finds the attempt and the correlation id.
func (c *runContext) Value(key any) any {
	switch key.(type) {
	case runKey:
		return c.attempt
	case correlationKey:
		if c.correlation != "" {
			return c.correlation
		}
	}
	return c.Context.Value(key)
}

func runFrom(ctx context.Context) *Run {
	a, _ := ctx.Value(runKey{}).(*Run)
	return a
}

// ClientFrom returns a client of the store that the running handler's job came
// from: that of the engine's configuration if there is one. Outside of
// handlers, middleware and hooks it is nil, and a nil client refuses every job with
// [ErrNoAttempt].
//
// Jobs that it enqueues are stored at once, also if the attempt fails later. To
// enqueue them only if the work succeeds, use a transaction: ClientFrom(ctx).With(tx).
func ClientFrom(ctx context.Context) *Client {
	if a := runFrom(ctx); a != nil {
		return a.Client
	}
	return nil
}

// JobFrom returns the job of the running handler, for code that the job is not passed
// to; nil outside of handlers, middleware and hooks.
func JobFrom(ctx context.Context) *Job {
	if a := runFrom(ctx); a != nil {
		return a.Job
	}
	return nil
}

// Previous reads the run of the job before this one from the store: its times, its
// outcome and its error. It is nil for the first run. Runs that were not charged count
// here (snoozed, ended by a stop), and so does one that was lost with its engine; an
// attempt that was returned unstarted does not.
//
// ctx is that of the handler. The error matches [errors.ErrUnsupported] when the store
// is no [store.Reader].
func (j *Job) Previous(ctx context.Context) (*Attempt, error) {
	a := runFrom(ctx)
	switch {
	case a == nil:
		return nil, ErrNoAttempt
	case a.Reader == nil:
		return nil, fmt.Errorf("stint: the store does not show executions: %w", errors.ErrUnsupported)
	}
	job, err := a.Reader.Job(ctx, j.ID)
	if err != nil {
		return nil, fmt.Errorf("look for the previous run: %w", err)
	}
	for _, x := range slices.Backward(job.Attempts) {
		if x.Slot > 0 || x.Outcome == OutcomeLost {
			if x.Result, err = a.Client.OpenResult(ctx, j.Kind, x.Result); err != nil {
				return nil, leftToOthers(ctx, err)
			}
			return &x, nil
		}
	}
	return nil, nil
}

// Last reports whether this attempt is the last that the job's retry policy allows: if
// it fails, the job fails, whatever the error is. It is decided as of the attempt's
// start.
//
// Otherwise there may be another attempt, which depends on the error ([NoRetry],
// policies that choose by it), on a retry function, or on how long this one takes. A
// job that is lost with its engine has not failed in this sense: see
// [NewJob.MaxLosses].
func (j *Job) Last() bool {
	return j.Retry.Last(retry.Failure{Charged: j.Attempt, Due: j.Due, Created: j.Created, Now: j.Started})
}

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
