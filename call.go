package stint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stint-go/stint/retry"
)

// Call runs another job for the handler's job and waits until that has ended, as a [Sleep] waits: without slot
// and limits, for as long as it takes. The error is nil when it completed, and a [*JobError] when it failed or was
// cancelled. [ResultKind.Call] returns its result.
//
//	if err := Resize.Call(ctx, "resize", ResizeArgs{Image: id}); err != nil {
//		return err
//	}
//
// The first run that comes to it enqueues the job, under a name that is unique in the handler's job, and none
// does it again. How it ended is recorded as the step of that name, and returned by later runs, a failure as well:
// give the job the [Retry] policy that it needs. When the handler's job has failed and is retried by hand, what it
// called and did not complete is called again.
//
// Any other error ends the run: return it at once. What [Sleep] says of that, and of waits at the same time, holds
// here too: a job that calls several at the same time runs when the first of them has ended. For many at once a
// [Flow] is better. If the handler's job is cancelled, so is what it has called.
//
// The job has the correlation id of the handler's job, which it shows as its [JobInfo.Flow]. It has no keys and no
// uniqueness of its own. The name has 1 to 255 bytes. A [Run] without Steps or Client can call nothing, and the error
// matches [errors.ErrUnsupported].
func (k Kind[A]) Call(ctx context.Context, name string, args A, opts ...Option) error {
	_, err := k.call(ctx, name, args, opts)
	return err
}

func (k Kind[A]) call(ctx context.Context, name string, args A, opts []Option) (*CalledJob, error) {
	run := runFrom(ctx)
	if run == nil {
		return nil, ErrNoAttempt
	}
	job, err := k.New(args, opts...)
	if err != nil {
		return nil, NoRetry(err)
	}
	recorded, err := run.call(ctx, name, job)
	if err != nil {
		return nil, err
	}
	var c CalledJob
	if err := json.Unmarshal(recorded, &c); err != nil || c.Job == 0 {
		return nil, NoRetry(errors.Join(fmt.Errorf("%w: step %q has called no job: %.200s", ErrStepChanged, name, recorded), err))
	}
	if c.State != Completed {
		return nil, &JobError{ID: c.Job, Kind: job.Kind, State: c.State, Reason: c.Reason, Failure: c.Failure}
	}
	c.Result, err = run.Client.OpenResult(ctx, job.Kind, c.Result)
	return &c, leftToOthers(ctx, err)
}

// Call is [Kind.Call] and returns the job's result. One that completed without a result is [ErrNoResult], and one
// that does not decode into R is [ErrStepChanged]: the handler's job is not retried after either.
func (k ResultKind[A, R]) Call(ctx context.Context, name string, args A, opts ...Option) (result R, err error) {
	c, err := k.call(ctx, name, args, opts)
	switch {
	case err != nil:
		return result, err
	case c.Result == nil:
		return result, NoRetry(fmt.Errorf("%w: job %d, called as %q", ErrNoResult, c.Job, name))
	}
	if err = json.Unmarshal(c.Result, &result); err != nil && k.decl.Sealed != nil {
		return result, NoRetry(fmt.Errorf("%w: the result of job %d, called as %q", ErrStepChanged, c.Job, name)) // which it may quote
	} else if err != nil {
		err = NoRetry(fmt.Errorf("%w: the result of job %d, called as %q: %w", ErrStepChanged, c.Job, name, err))
	}
	return result, err
}

// CalledJob is how a job ended that another one called: the result of the step.
type CalledJob struct {
	Job     ID              `json:"job"`
	State   State           `json:"state"` // Completed, Failed or Cancelled
	Result  json.RawMessage `json:"result,omitempty"`
	Reason  string          `json:"reason,omitempty"`  // why it ended, if it did not complete
	Failure *Failure        `json:"failure,omitempty"` // of the last attempt that failed, without the stack; nil for none
}

// call returns what is recorded of a job that this one called.
func (a *Run) call(ctx context.Context, name string, job NewJob) (json.RawMessage, error) {
	if a.Steps == nil || a.Client == nil {
		return nil, fmt.Errorf("stint: Call needs the run of an engine, which waits for the job: %w", errors.ErrUnsupported)
	}
	return a.step(ctx, true, Tx{}, name, func(s *steps) (json.RawMessage, error) {
		if err := s.awaiting(name); err != nil {
			return nil, err // the next run has the end, which wakes it
		}
		q := Question{Until: a.now().Add(retry.MaxWait), Job: s.calling(name)}
		if q.Job == 0 {
			if err := s.noQuestion(name); err != nil {
				return nil, err
			}
			f := &Flow{flowBatch: &flowBatch{into: a.Job.ID, call: true}, place: -1}
			n := f.Add(name, job)
			if _, err := f.Enqueue(ctx, a.Client.With(Tx{})); err != nil {
				if errors.Is(err, ErrInvalid) {
					err = NoRetry(err)
				}
				return nil, fmt.Errorf("call the job %q: %w", name, err)
			}
			q.Job = n.ID()
		}
		if err := s.reserveQuestion(name, &q); err != nil {
			return nil, err
		}
		r, err := a.Steps.Ask(ctx, name, q)
		switch {
		case err != nil:
			return nil, fmt.Errorf("call the job %q: %w", name, err)
		case r.Result == nil && (r.Question == nil || r.Question.Job == 0):
			return nil, NoRetry(fmt.Errorf("%w: %q is no job that was called", ErrStepChanged, name))
		case r.Result == nil:
			until := r.Question.Until
			return nil, s.suspend(newAwaiting(map[string]string{name: ""}, map[string]ID{name: r.Question.Job}, until, until.Sub(a.now())))
		}
		s.add(compactLen(r.Result))
		return r.Result, nil
	})
}

// calling is the job that the step has called and that has perhaps not ended, 0 for none.
func (s *steps) calling(name string) ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[name]
}
