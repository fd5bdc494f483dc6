package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

// RetryDecider keeps failures about which a retry function is to decide that the
// engine at hand does not have. Such a job waits as retrying, but without a
// date: it is not promoted, so it never runs before the decision, and it is not
// lost, since whoever has the function finds it here.
//
//	failed ──▶ waiting, no date ──Undecided──▶ an engine that has the function
//	              ▲                                      │
//	              └──── waiting until a date ◀──Decide───┴──▶ final
type RetryDecider interface {
	// PendingRetry reads up to limit of the jobs that wait for one of these retry
	// functions, by the order of their IDs from the one after it on.
	Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) ([]PendingRetry, error)

	// Decide records what was decided, all or nothing, durably, while the
	// engine stands in the roster ([ErrBuried] otherwise). Each execution is
	// for a job, at its attempt, that waits undecided; one that was decided or
	// cancelled meanwhile, or is being, is left alone. So many may call it at
	// once, and it is safe to repeat. It returns the jobs that it decided about.
	//
	// The execution gets a position of its own, in a lane that nobody claims:
	// who decided, when and what is part of the job's history.
	Decide(ctx context.Context, engine EngineID, done []Completion) ([]stint.ID, error)
}

// AnyEngine stands for a function's name where a failure waits for any engine: a worker recorded it that knows
// nothing of retry policies, as one does that works by SQL.
const AnyEngine = "any engine"

// PendingRetry is a failure that waits for a retry function. The job is as its
// next attempt would see it.
type PendingRetry struct {
	stint.Job
	Func  string        // who is to decide
	Error stint.Failure // how the last attempt failed
	Took  time.Duration // how long that ran

	Limits string // of its entries
}

// Of returns the failure with all that the entry which failed knows of its job,
// but for what may have changed with the failure. Stores use it.
func (u PendingRetry) Of(j stint.Job) PendingRetry {
	j.Attempt, j.Losses, j.Queue, j.Priority = u.Attempt, u.Losses, u.Queue, u.Priority
	u.Job = j
	return u
}

// Conclude asks the retry function, and says what to record for [RetryDecider]. The
// error is a [retry.UnknownFuncError] when it is not among these functions. The
// wait counts from now: the failure was not judged before.
func (u *PendingRetry) Conclude(funcs *retry.Registry, now time.Time, chance float64) (Completion, error) {
	d, err := funcs.Decide(u.Retry, retry.Failure{
		Charged: u.Attempt - 1, Classes: u.Error.AllClasses(), Message: u.Error.Message,
		Created: u.Created, Due: u.Due, Now: now, Took: u.Took, Rand: chance,
	}, nil)
	if err != nil {
		return Completion{}, err
	}
	next := Next{
		Kind: u.Kind, Queue: u.Queue, Priority: u.Priority, Attempt: u.Attempt, Losses: u.Losses,
		Faulty: u.Retry.IsFaulty(u.Attempt - 1),
	}
	next.retry(&d)
	by := "decided by the retry function " + u.Func
	if u.Func == AnyEngine {
		by = "decided by its retry policy"
	}
	x := Completion{
		Job: u.ID, Limits: u.Limits, Flow: u.Flow != 0, Attempt: u.Attempt, Outcome: stint.OutcomeReturned, Reason: by, Next: &next,
		Error: &stint.Failure{Class: u.Error.Class, Classes: u.Error.Classes, Message: u.Error.Message, Note: d.Note, Recoverable: true},
	}
	if !d.Retry {
		x.Outcome, x.Final, x.Reason, x.Next = stint.OutcomeFailed, true, d.Reason, nil
		x.Error.Recoverable = d.Reason != retry.ReasonNotRetriable
	} else if u.ExpiredAt(now.Add(next.Delay)) {
		x.Outcome, x.Final, x.Reason, x.Next = stint.OutcomeFailed, true, retry.ReasonExpired, nil
	}
	return x, nil
}
