package stint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stint-go/stint/internal/valid"
)

// JobError says that an awaited job failed or was cancelled. It matches
// [ErrCancelled] if it was cancelled.
type JobError struct {
	ID      ID
	Kind    string
	State   State    // Failed or Cancelled
	Reason  string   // why it ended, such as "retries exhausted"
	Failure *Failure // of the last attempt that failed; nil when none did
}

// Error names the job, why it ended, and the last failure.
func (e *JobError) Error() string {
	text := fmt.Sprintf("stint: job %d (%s) %s: %s", e.ID, e.Kind, map[bool]string{true: "was cancelled", false: "failed"}[e.State == Cancelled], e.Reason)
	if e.Failure != nil && e.State != Cancelled {
		text += ": " + e.Failure.Message
	}
	return text
}

// Is makes the error of a cancelled job match [ErrCancelled].
func (e *JobError) Is(target error) bool { return target == ErrCancelled && e.State == Cancelled }

// Job returns a job with all of its attempts, or [ErrNotFound].
func (c *Client) Job(ctx context.Context, id ID) (*JobInfo, error) {
	store, err := role[interface {
		Job(ctx context.Context, id ID) (*JobInfo, error)
	}](c, "shows no jobs")
	if err != nil {
		return nil, err
	}
	job, err := store.Job(ctx, id)
	return c.opened(ctx, job, err)
}

// Cancel cancels jobs, and returns the result for each: see [store.Canceller].
func (c *Client) Cancel(ctx context.Context, ids ...ID) (map[ID]CancelStatus, error) {
	store, err := role[interface {
		Cancel(ctx context.Context, ids []ID, why string) (map[ID]CancelStatus, error)
	}](c, "cancels no jobs")
	if err != nil {
		return nil, err
	}
	return store.Cancel(ctx, ids, "")
}

// Retry runs jobs again now, and returns the result for each: a job that waits becomes
// available, and one that ended is recovered as a new job. [store.Operator] can also
// do it later.
func (c *Client) Retry(ctx context.Context, ids ...ID) (map[ID]RerunResult, error) {
	store, err := role[interface {
		Retry(ctx context.Context, ids []ID, again RerunOptions) (map[ID]RerunResult, error)
	}](c, "runs no jobs again")
	if err != nil {
		return nil, err
	}
	return store.Retry(ctx, ids, RerunOptions{})
}

// Await waits until a job has ended, and returns it with all of its attempts. Its state
// is completed, failed or cancelled; [Kind.Await] returns the last two as errors. The
// error is [ErrNotFound] when there is no such job, or it was deleted meanwhile, and the
// cause of ctx when that ends first. See [store.Awaiter] for what waiting costs.
//
// A job that was enqueued in a transaction exists only after the commit, so a client
// [Client.With] a transaction does not wait: its error matches [errors.ErrUnsupported].
// A handler that waits for another job keeps its slot meanwhile; if all slots wait,
// none is left to run the jobs that they wait for.
func (c *Client) Await(ctx context.Context, id ID) (*JobInfo, error) {
	store, err := role[interface {
		Await(ctx context.Context, id ID) (*JobInfo, error)
	}](c, "waits for no jobs")
	if err != nil {
		return nil, err
	}
	job, err := store.Await(ctx, id)
	return c.opened(ctx, job, err)
}

// role is the client's store in a role that it may have or not.
func role[R any](c *Client, missing string) (r R, err error) {
	if c == nil {
		return r, ErrNoAttempt
	}
	if c.tx.Handle != nil {
		return r, fmt.Errorf("stint: a client in a transaction only enqueues; use the client that it was made of: %w", errors.ErrUnsupported)
	}
	r, ok := c.store.(R)
	if !ok {
		return r, fmt.Errorf("stint: the store %T %s: %w", c.store, missing, errors.ErrUnsupported)
	}
	return r, nil
}

// Await waits until a job of the kind has ended. The error is nil when it
// completed, a [*JobError] when it failed or was cancelled, which then matches
// [ErrCancelled], and otherwise what [Client.Await] says.
func (k Kind[A]) Await(ctx context.Context, c *Client, id ID) error {
	_, err := k.await(ctx, c, id)
	return err
}

func (k Kind[A]) await(ctx context.Context, c *Client, id ID) (*JobInfo, error) {
	job, err := c.Await(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case job.Kind != k.decl.Name:
		return nil, valid.Invalid("job", "%d is of the kind %s, not %s", id, job.Kind, k.decl.Name)
	case job.State == Completed:
		return job, nil
	}
	e := &JobError{ID: id, Kind: job.Kind, State: job.State, Reason: job.Reason}
	for _, x := range job.Attempts {
		if x.Error != nil {
			e.Failure = x.Error
		}
	}
	return nil, e
}

// Await waits until a job of the kind has ended, and returns its result. Errors
// are those of [Kind.Await]; one that completed without a result is [ErrNoResult].
func (k ResultKind[A, R]) Await(ctx context.Context, c *Client, id ID) (R, error) {
	job, err := k.await(ctx, c, id)
	if err != nil {
		var none R
		return none, err
	}
	r, err := k.Result(job)
	if _, bad := errors.AsType[*json.UnmarshalTypeError](err); bad {
		err = fmt.Errorf("decode the result of job %d: %w", id, err)
	}
	return r, err
}
