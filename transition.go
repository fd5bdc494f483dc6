package stint

import (
	"errors"
	"time"

	"github.com/stint-go/stint/retry"
)

// Reasons of a final attempt, beside those that retry policies give.
const (
	ReasonLost    = "lost"
	ReasonExpired = "expired"
)

// DefaultMaxLosses is how often a job may be lost with its engine before it
// is given up.
const DefaultMaxLosses = 3

// Conclude decides what one ending means: the execution to write and, unless
// it is the last, its successor. It is pure: equal arguments give equal
// answers, whoever asks. Chance is a number in [0, 1) that spreads the waits
// of policies with jitter. The caller fills in who ran it and when.
func Conclude(e *Entry, end Ending, now time.Time, chance float64) Execution {
	x := Execution{
		Pos:     e.Pos,
		Job:     e.ID,
		Attempt: e.Attempt,
		Outcome: end.Outcome,
		Result:  end.Result,
		Reason:  end.Note,
	}
	if end.Err != nil {
		x.Error = describe(end.Err, end.Stack)
	}
	next := Successor{
		Kind: e.Kind, Queue: e.Queue, Priority: e.Priority,
		Attempt: e.Attempt, Losses: e.Losses, // it survived: whatever it was suspected of is over
	}
	switch end.Outcome {
	case OutcomeFailed:
		d := e.Retry.Decide(failureOf(e, end, now, chance))
		x.Final = !d.Retry
		if d.Note != "" {
			x.Reason = d.Note
		}
		if x.Final {
			x.Reason = d.Reason
			break
		}
		next.Wait, next.Why, next.Delay = true, Retrying, d.Wait
		next.Attempt = e.Attempt + 1
		if d.Queue != "" {
			next.Queue = d.Queue
		}
	case OutcomeSnoozed:
		next.Wait, next.Why, next.Delay = true, Scheduled, max(0, end.Snooze)
	case OutcomeReturned:
		next.Part, next.Suspect = end.Part, max(e.Suspect, end.Suspect)
	case OutcomeLost:
		d := e.Retry.Decide(failureOf(e, end, now, chance))
		next.Losses = e.Losses + 1
		switch {
		case next.Losses >= e.MaxLosses:
			x.Final, x.Reason = true, ReasonLost
		case !d.Retry:
			x.Final, x.Reason = true, d.Reason
		default:
			next.Part, next.Attempt, next.Suspect = PartFront, e.Attempt+1, max(e.Suspect, end.Suspect)
		}
	case OutcomeExpired:
		x.Final, x.Reason = true, ReasonExpired
	default:
		x.Final = true
	}
	if !x.Final {
		x.Next = &next
	}
	return x
}

// failureOf tells a policy about an attempt in plain data.
func failureOf(e *Entry, end Ending, now time.Time, chance float64) retry.Failure {
	return retry.Failure{
		Charged: e.Attempt,
		Classes: Classes(end.Err),
		Lost:    end.Outcome == OutcomeLost,
		NoRetry: errors.As(end.Err, new(*noRetryError)),
		Due:     e.Due,
		Created: e.Created,
		Now:     now,
		Rand:    chance,
	}
}
