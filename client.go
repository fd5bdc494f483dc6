package stint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stint-go/stint/outside"
	"github.com/stint-go/stint/seal"
)

// Client enqueues, shows, cancels, retries and awaits jobs. It may be used by many
// goroutines at once. A nil Client refuses every call with [ErrNoAttempt]: see
// [ClientFrom].
type Client struct {
	store  Enqueuer
	tx     Tx
	limits Limits
	groups []*Group
	keys   seal.Keys // nil for none
	blobs  *blobs    // nil for none

	middleware []EnqueueMiddleware
	through    EnqueueFunc // the middleware with put inside; nil without any
}

// NewClient returns a client of a store, with the default [Limits].
func NewClient(store Enqueuer) *Client { return &Client{store: store} }

// but returns a copy of the client with a change; nil for nil.
func (c *Client) but(change func(d *Client)) *Client {
	if c == nil {
		return nil
	}
	d := *c
	change(&d)
	return &d
}

// Over returns a client of another store with the same limits and middleware.
func (c *Client) Over(store Enqueuer) *Client {
	return c.but(func(d *Client) { d.store = store; d.chain() })
}

// With returns a client that enqueues in the caller's transaction: the jobs
// exist if and when that commits.
func (c *Client) With(tx Tx) *Client { return c.but(func(d *Client) { d.tx = tx }) }

// Limit returns a client that refuses what is larger than the limits.
func (c *Client) Limit(l Limits) *Client {
	return c.but(func(d *Client) { d.limits = l; d.chain() })
}

// Declare returns a client that knows the groups: it refuses jobs of
// operations that they do not have.
func (c *Client) Declare(groups ...*Group) *Client {
	return c.but(func(d *Client) { d.groups = slices.Concat(d.groups, groups); d.chain() })
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
// [ErrInvalid] says what is invalid; [errors.ErrUnsupported], that the store keeps no schedules. The text by says who declares them, for people. It
// is not part of a caller's transaction.
func (c *Client) Schedule(ctx context.Context, by string, schedules ...Schedule) error {
	if c == nil {
		return ErrNoAttempt
	}
	store, ok := c.store.(interface {
		Declare(ctx context.Context, by string, ready []Schedule) error
	})
	if !ok {
		return fmt.Errorf("stint: the store %T keeps no schedules: %w", c.store, errors.ErrUnsupported)
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
		err := c.check(job)
		if err == nil && job.Sealed != nil {
			err = c.seal(ctx, job)
		}
		if err == nil && c.blobs != nil {
			err = c.putOutside(ctx, job)
		}
		if err != nil {
			if len(jobs) > 1 {
				return nil, fmt.Errorf("job %d (%s): %w", i, job.Kind, err)
			}
			return nil, err
		}
	}
	if err := checkMembers(ready); err != nil {
		return nil, err
	}
	return c.store.Enqueue(ctx, tx, ready)
}

func (c *Client) check(job *NewJob) error {
	l := c.limits
	if c.blobs != nil {
		l.Args = outside.MaxBytes
	}
	return cmp.Or(job.Check(l), checkOperation(c.groups, job.Kind))
}

// Enqueuer stores new jobs.
type Enqueuer interface {
	// Enqueue stores all of the jobs or none and returns their receipts in
	// the same order. With the zero Tx the jobs are durable when it returns and
	// engines are woken; otherwise both happen when the caller's transaction
	// commits, and neither when it rolls back. The jobs were filled with
	// defaults and have passed [NewJob.Check]; [Client] does both.
	//
	// A job with an idempotency key is stored only if no job was stored under
	// that key before, in this batch or at any time that the store remembers:
	// at least a day from the enqueue, and for as long as that job is kept
	// after it ended. Otherwise its receipt names that job and says that this
	// one is a duplicate. When the [NewJob.Fingerprint] is another than the
	// first one's, nothing of the batch is stored and the error is a
	// [KeyConflictError]; a caller's transaction is as it was, and goes on.
	//
	// It waits for another producer only if that one's open transaction has
	// taken one of the keys, and then until the transaction ends, since only then is
	// it known whether the job exists.
	//
	// A job with Unique is stored only if no job holds its unique key: that is, one which was stored
	// under it and has not ended, or whose period is not over. Otherwise its receipt names
	// that job, the holder, and says that this one is a duplicate, or what became of the holder.
	// A repetition of a job with both keys is answered by the idempotency key, also when that one
	// was a duplicate because of its unique key. A job that was cancelled and waits or is
	// ready holds nothing. In a caller's transaction a holder is replaced only while it waits for its
	// time: one that is ready might begin before the commit, so it is kept. What holds of
	// idempotency keys holds for waiting as well.
	//
	// A job that is due only after its StartBy is refused as [ErrInvalid], with the
	// whole batch. In PostgreSQL that aborts a caller's transaction, as any error of a
	// statement does.
	//
	// After an error that leaves a commit unknown (a connection that broke
	// meanwhile) the jobs may have been stored.
	Enqueue(ctx context.Context, tx Tx, jobs []NewJob) ([]Receipt, error)
}

// Receipt is the result of enqueuing one job.
type Receipt struct {
	ID ID `json:"id"`

	// Duplicate reports that a job had been enqueued with the same idempotency key
	// before, or that another job holds the unique key. ID is that job's, and nothing was stored.
	Duplicate bool `json:"duplicate,omitempty"`

	// State is, of a duplicate because of a unique key, the state that the job of this key was
	// found in. It is empty if that job was deleted.
	State State `json:"state,omitempty"`

	// Replaced and Cancelled name the job that held the unique key and was cancelled for this one:
	// Replaced before it began ([Replace], [ReplaceKeepTime]), Cancelled whatever it did
	// ([CancelOld]).
	Replaced  ID `json:"replaced,omitempty"`
	Cancelled ID `json:"cancelled,omitempty"`
}

// Tx is a caller's transaction, as a store's package wraps it: postgres.Tx,
// postgres.SQLTx, sqlite.Tx. The zero value is none.
type Tx struct {
	// Handle is the driver's own transaction. A store refuses one of a type that it
	// does not support.
	Handle any

	// Quiet does not notify engines: they find the jobs at their next poll. It is for
	// transactions that cannot notify (PostgreSQL's PREPARE TRANSACTION refuses it).
	Quiet bool
}
