package stint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// Client enqueues, shows, cancels, retries and awaits jobs. It may be used by many
// goroutines at once. A nil Client refuses every call with [ErrNoAttempt]: see
// [ClientFrom].
type Client struct {
	store  Enqueuer
	tx     Tx
	limits Limits
	groups []*Group

	middleware []EnqueueMiddleware
	through    EnqueueFunc // the middleware with put inside; nil without any
}

// NewClient returns a client of a store, with the default [Limits].
func NewClient(store Enqueuer) *Client { return &Client{store: store} }

// Over returns a client of another store with the same limits and middleware.
func (c *Client) Over(store Enqueuer) *Client {
	if c == nil {
		return nil
	}
	d := *c
	d.store = store
	d.chain()
	return &d
}

// With returns a client that enqueues in the caller's transaction: the jobs
// exist if and when that commits.
func (c *Client) With(tx Tx) *Client {
	if c == nil {
		return nil
	}
	d := *c
	d.tx = tx
	return &d
}

// Limit returns a client that refuses what is larger than the limits.
func (c *Client) Limit(l Limits) *Client {
	if c == nil {
		return nil
	}
	d := *c
	d.limits = l
	d.chain()
	return &d
}

// Declare returns a client that knows the groups: it refuses jobs of
// operations that they do not have.
func (c *Client) Declare(groups ...*Group) *Client {
	if c == nil {
		return nil
	}
	d := *c
	d.groups = slices.Concat(c.groups, groups)
	d.chain()
	return &d
}

// Enqueue stores one job and returns its ID. If a job was enqueued with the same
// [IdempotencyKey] before, it stores nothing and returns the ID of that job. An error
// that matches [ErrInvalid] says what is invalid; nothing is stored then.
//
// A job that a handler enqueues with its context inherits the correlation id of
// the handler's job: see [WithCorrelation].
func (c *Client) Enqueue(ctx context.Context, job NewJob) (ID, error) {
	r, err := c.EnqueueReceipt(ctx, job)
	return r.ID, err
}

// EnqueueReceipt is [Client.Enqueue] and also reports whether the job is a duplicate.
func (c *Client) EnqueueReceipt(ctx context.Context, job NewJob) (Receipt, error) {
	receipts, err := c.EnqueueReceipts(ctx, []NewJob{job})
	if err != nil {
		return Receipt{}, err
	}
	return receipts[0], nil
}

// EnqueueMany stores all of the jobs or none of them, and returns their IDs in
// the same order. It is the fast way to store many.
func (c *Client) EnqueueMany(ctx context.Context, jobs []NewJob) ([]ID, error) {
	receipts, err := c.EnqueueReceipts(ctx, jobs)
	if err != nil || receipts == nil {
		return nil, err
	}
	ids := make([]ID, len(receipts))
	for i, r := range receipts {
		ids[i] = r.ID
	}
	return ids, nil
}

// EnqueueReceipts is [Client.EnqueueMany] and also reports which jobs are duplicates.
func (c *Client) EnqueueReceipts(ctx context.Context, jobs []NewJob) ([]Receipt, error) {
	switch {
	case c == nil:
		return nil, ErrNoAttempt
	case len(jobs) == 0:
		return nil, nil
	case c.through != nil:
		return c.pass(ctx, jobs)
	}
	return c.put(ctx, c.tx, jobs)
}

// Schedule declares schedules, all or none of them: see [store.Scheduler]. Those that a
// program always has are better declared by [Mux.Schedule]. An error that matches
// [ErrInvalid] says what is invalid. The text by says who declares them, for people. It
// is not part of a caller's transaction.
func (c *Client) Schedule(ctx context.Context, by string, schedules ...Schedule) error {
	if c == nil {
		return ErrNoAttempt
	}
	store, ok := c.store.(interface {
		Declare(ctx context.Context, by string, ready []Schedule) error
	})
	if !ok {
		return ErrNoScheduler
	}
	ready, err := readySchedules(schedules, c.limits, nil)
	if err != nil {
		return err
	}
	for _, s := range ready {
		if err := checkOperation(c.groups, s.Job.Kind); err != nil {
			return fmt.Errorf("schedule %q: %w", s.Name, err)
		}
	}
	return store.Declare(ctx, by, ready)
}

// put fills in defaults, checks and stores.
func (c *Client) put(ctx context.Context, tx Tx, jobs []NewJob) ([]Receipt, error) {
	correlation := correlationFrom(ctx)
	ready := make([]NewJob, len(jobs))
	for i := range jobs {
		job := &ready[i]
		*job = jobs[i]
		job.Fill()
		job.Correlation = cmp.Or(job.Correlation, correlation)
		if err := c.check(job); err != nil {
			if len(jobs) > 1 {
				return nil, fmt.Errorf("job %d (%s): %w", i, job.Kind, err)
			}
			return nil, err
		}
	}
	return c.store.Enqueue(ctx, tx, ready)
}

func (c *Client) check(job *NewJob) error {
	if err := job.Check(c.limits); err != nil {
		return err
	}
	return checkOperation(c.groups, job.Kind)
}
