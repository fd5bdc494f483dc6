package store

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// Result is what an engine knows about an attempt when it is over, before
// anybody decided what follows.
type Result struct {
	Outcome stint.Outcome
	Err     error           // the handler's error, for failed and lost
	Result  json.RawMessage // what it returned; nil for nothing
	Took    time.Duration   // how long it ran, for policies that look at that; 0 when it never began
	Snooze  time.Duration   // how long, for snoozed
	Limit   string          // that is to be paused as long; empty for none
	Part    Part            // the lane's part to go back to, for returned
	Suspect int             // the suspicion that the entry is under from now on, for returned and lost
	Awaits  json.RawMessage // of snoozed, what has it run earlier: a JSON object of steps and the signals that they wait for; nil for nothing
	Note    string          // the reason that people read, where the outcome alone does not say it
	Stack   string          // where a panic happened, if Err does not tell
}

// Conclude decides what one ending means: the execution to write and, unless
// it is the last, its successor. It is pure: equal arguments give equal
// answers, whoever asks. Chance is a number in [0, 1) that spreads the waits
// of policies with jitter. The caller fills in who ran it and when.
//
// A retry that is due only after the job's StartBy would wait in vain: the
// failure is final then, with the reason [retry.ReasonExpired]. So is a loss when it is
// too late to begin again. A snooze is not: its attempt did begin in time, and
// it is judged when its date has come, as is what was returned.
//
// It has no retry functions: a failure about which one is to decide is left
// undecided, for somebody who has it. See [ConcludeWith].
func Conclude(e *Entry, end Result, now time.Time, chance float64) Completion {
	return ConcludeWith(nil, e, end, now, chance)
}

// ConcludeWith is [Conclude] where retry functions are at hand.
func ConcludeWith(funcs *retry.Registry, e *Entry, end Result, now time.Time, chance float64) Completion {
	x := Completion{
		Pos:     e.Pos,
		Job:     e.ID,
		Attempt: e.Attempt,
		Outcome: end.Outcome,
		Result:  end.Result,
		Reason:  end.Note,
		Flow:    e.Flow != 0,
	}
	if end.Err != nil {
		x.Error = describe(end.Err, end.Stack)
	}
	if end.Outcome == stint.OutcomeCompleted || end.Outcome == stint.OutcomeCancelled {
		x.Final = true // nearly all: no successor is made for them
		return x
	}
	x.Limits = e.Limits
	next := Next{
		Kind: e.Kind, Queue: e.Queue, Priority: e.Priority, Limits: e.Limits,
		Attempt: e.Attempt, Losses: e.Losses, // it survived: whatever it was suspected of is over
	}
	switch end.Outcome {
	case stint.OutcomeFailed:
		d, err := funcs.Decide(e.Retry, failureOf(e, end, now, chance), end.Err)
		if unknown, ok := errors.AsType[*retry.UnknownFuncError](err); ok {
			d, next.Func = retry.Again(0), unknown.Name
			d.Note = "left to an engine that has the retry function " + unknown.Name
		}
		x.Final, x.Reason = !d.Retry, d.Reason
		next.retry(&d)
		next.Attempt = e.Attempt + 1
		if x.Error != nil {
			x.Error.Recoverable = d.Retry || d.Reason != retry.ReasonNotRetriable
			x.Error.Note = strings.Trim(end.Note+"; "+d.Note, "; ")
		}
		if !x.Final && next.Func == "" && e.ExpiredAt(now.Add(next.Delay)) {
			x.Final, x.Reason = true, retry.ReasonExpired
		}
	case stint.OutcomeSnoozed:
		next.Wait, next.Why, next.Delay = true, stint.Scheduled, min(max(0, end.Snooze), retry.MaxWait)
		if end.Awaits != nil {
			next.Why, next.Awaits = stint.Blocked, string(end.Awaits)
		}
	case stint.OutcomeReturned:
		next.Part, next.Suspect = end.Part, max(e.Suspect, end.Suspect)
	case stint.OutcomeLost:
		d := e.Retry.Decide(failureOf(e, end, now, chance))
		if x.Error != nil {
			x.Error.Recoverable = true
		}
		next.Losses = e.Losses + 1
		switch {
		case next.Losses >= e.MaxLosses:
			x.Final, x.Reason = true, retry.ReasonLost
		case !d.Retry:
			x.Final, x.Reason = true, d.Reason
		case e.ExpiredAt(now):
			x.Final, x.Reason = true, retry.ReasonExpired
		default:
			next.Part, next.Attempt, next.Suspect = PartFront, e.Attempt+1, max(e.Suspect, end.Suspect)
		}
	case stint.OutcomeExpired:
		x.Final, x.Reason = true, retry.ReasonExpired
	default:
		x.Final = true
	}
	if !x.Final {
		next.Faulty = e.Retry.IsFaulty(next.Attempt - 1)
		x.Next = &next
	}
	return x
}

// retry plans the next attempt as a policy decided, and adds to the decision's
// note what cannot be.
func (s *Next) retry(d *retry.Decision) {
	s.Wait, s.Why, s.Delay = true, stint.Retrying, d.Wait
	if d.Queue == "" {
		return
	}
	if err := valid.Queue(d.Queue); err != nil {
		d.Note = strings.TrimPrefix(d.Note+"; it stays in its queue: "+err.Error(), "; ")
		return
	}
	s.Queue = d.Queue
}

// failureOf tells a policy about an attempt in plain data.
func failureOf(e *Entry, end Result, now time.Time, chance float64) retry.Failure {
	_, final := failure.As[*failure.NoRetry](end.Err)
	f := retry.Failure{
		Charged: e.Attempt,
		Classes: retry.ErrorClasses(end.Err),
		Lost:    end.Outcome == stint.OutcomeLost,
		NoRetry: final,
		Due:     e.Due,
		Created: e.Created,
		Now:     now,
		Took:    end.Took,
		Rand:    chance,
	}
	if end.Err != nil {
		f.Message = failure.Message(end.Err)
	}
	return f
}

// describe is an error as it is stored.
func describe(err error, stack string) *stint.Failure {
	f := &stint.Failure{Message: failure.Message(err), Stack: stack}
	if p, ok := failure.As[*stint.PanicError](err); ok && p != nil && stack == "" {
		f.Stack = p.Stack
	}
	if other, ok := failure.As[*failure.Foreign](err); ok && stack == "" {
		f.Stack = other.Stack
	}
	list := retry.ErrorClasses(err)
	if f.Class = list[0]; len(list) > 1 {
		f.Classes = list
	}
	return f
}

// AsResult reports whether an error is a handler's wish for another ending
// than failure ([stint.Snooze], [stint.Cancel]), and if so which.
func AsResult(err error, end *Result) bool {
	if s, ok := failure.As[*failure.Snooze](err); ok {
		*end = Result{Outcome: stint.OutcomeSnoozed, Snooze: s.Wait, Limit: s.Limit, Note: s.Why, Result: end.Result}
		if len(s.Awaits) > 0 {
			end.Awaits, _ = json.Marshal(s.Awaits) // strings can be encoded
		}
		return true
	}
	if r, ok := failure.As[*failure.Return](err); ok {
		*end = Result{Outcome: stint.OutcomeReturned, Part: PartFront, Note: r.Why}
		return true
	}
	if c, ok := failure.As[*failure.Cancel](err); ok {
		*end = Result{Outcome: stint.OutcomeCancelled, Note: c.Why, Result: end.Result}
		return true
	}
	return false
}
