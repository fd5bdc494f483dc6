package retry

import (
	"errors"
	"time"
)

// ErrLost is the error of an execution whose engine died while it ran.
var ErrLost = errors.New("engine was lost while the job ran")

// Why a job ended, as its last attempt records it. ReasonDone and ReasonCancelled are not
// stored, since the outcome says as much.
const (
	ReasonDone      = "done"
	ReasonLost      = "lost"
	ReasonCancelled = "cancelled"
	ReasonExpired   = "expired" // it did not begin in time

	ReasonExhausted    = "retries exhausted"
	ReasonNotRetriable = "error not retriable"
	ReasonNoDate       = "policy gave no date"
	ReasonNoRetries    = "no retries" // the policy is None
)

// Why an attempt was returned, uncharged, after its engine died. What did not run is returned without
// any of these.
const (
	ReasonMayHaveBegun = "its engine died, and it may have begun" // the engine had not said so
	ReasonBystander    = "its engine died while it ran"           // and other jobs, one of which may be the cause
)

// Failure is what a policy is told of a failed attempt. It is plain data, so
// that an attempt can be judged by another process than the one that made it.
// All times are the store's.
type Failure struct {
	// Charged counts the charged attempts so far with this one, so the first
	// failure has 1. Less than 1 counts as 1.
	Charged int

	// Classes are the declared classes that the error has, outermost first, and
	// its innermost type.
	Classes []string

	// Message is the text of the error.
	Message string

	// NoRetry says that the error itself forbids a retry.
	NoRetry bool

	// Lost says that the attempt failed because its engine died, not by an
	// error. Only the number of attempts matters then.
	Lost bool

	Created time.Time     // when the job was enqueued
	Due     time.Time     // when it was first due; ages count from here
	Now     time.Time     // when it failed, or when that is judged if it had to wait; waits count from here
	Took    time.Duration // how long the attempt ran

	// Rand is the chance that jitter needs, drawn for each failure from
	// [0, 1). 0 gives the whole wait, as without jitter.
	Rand float64
}

// Age returns how long ago the job was first due. It is never negative, and 0
// when the failure does not say.
func (f Failure) Age() time.Duration {
	if f.Due.IsZero() {
		return 0
	}
	return max(f.Now.Sub(f.Due), 0)
}

func (f Failure) count() int { return max(f.Charged, 1) }

// Decision is a policy's answer: run again after a wait, or final for a reason.
// The zero Decision is final; [Again] and [Final] make others.
type Decision struct {
	Retry  bool
	Wait   time.Duration // from Failure.Now; 0 to MaxWait
	Reason string        // why it is final; empty when it is retried

	// Date is another way to say how long: until then. It takes the place of
	// Wait when it is set. What Decide returns has none.
	Date time.Time

	// Queue is where it runs again, when a function sends it elsewhere.
	Queue string

	// Note tells people what was odd about deciding, such as a panic in a
	// function. It belongs in the record of the execution.
	Note string
}

// Again decides for another attempt after the wait.
func Again(wait time.Duration) Decision { return Decision{Retry: true, Wait: wait} }

// At decides for another attempt at a date by the store's clock; one that is
// over means at once.
func At(date time.Time) Decision { return Decision{Retry: true, Date: date} }

// Final decides against another attempt, and why.
func Final(reason string) Decision { return Decision{Reason: reason} }

// To sends the next attempt to another queue.
func (d Decision) To(queue string) Decision {
	d.Queue = queue
	return d
}

// Decide judges a failure. It is pure and always has an answer; where the
// policy asks a function that is the default policy's, and the Note says so.
// Use [Registry.Decide] to ask the function.
//
// A lost attempt runs again at once as long as the policy has retries left,
// whatever it waits, filters or sets as deadline: those are about errors. A
// policy without a number of retries, and None, never stop it. They leave that
// to the limit on losses, which is not the policy's and judged by the caller.
func (p Policy) Decide(f Failure) Decision {
	d, _ := p.decide(f, func(name string, f Failure) (Decision, error) {
		d := fallback(f)
		d.Note = "decided by the default policy, without the retry function " + name
		return d, nil
	})
	return d
}

func (p Policy) decide(f Failure, a ask) (Decision, error) {
	if p.bad != "" {
		d, err := Default().decide(f, a)
		d.Note = "decided by the default policy: " + p.Validate().Error()
		return d, err
	}
	if f.Lost {
		return p.lose(f), nil
	}
	if f.NoRetry {
		return Final(ReasonNotRetriable), nil
	}
	return p.judge(f, a)
}

// lose judges a lost attempt. Of the cases of ByError the most generous counts, since a
// loss has no class.
func (p Policy) lose(f Failure) Decision {
	n, bounded := p.Retries()
	if bounded && f.count() > n && !p.ignoresLosses() {
		return Final(ReasonExhausted)
	}
	return Again(0)
}

// ignoresLosses reports whether the policy is None in every branch. Such a policy has
// no attempts for losses to count among.
func (p Policy) ignoresLosses() bool {
	switch r := p.which().(type) {
	case none:
		return true
	case byError:
		for c := range r.cases.all {
			if !c.then.ignoresLosses() {
				return false
			}
		}
		return true
	}
	return false
}

// judge asks the rule about an error, and modifies its answer.
func (p Policy) judge(f Failure, a ask) (Decision, error) {
	if p.only != "" && !p.only.match(f.Classes) || p.except.match(f.Classes) {
		return Final(ReasonNotRetriable), nil
	}
	d, err := p.which().judge(f, a)
	if err != nil || !d.Retry {
		return d, err
	}
	if p.max > 0 {
		d.Wait = min(d.Wait, p.max)
	}
	// The difference stays between 0 and the wait, rounding included.
	d.Wait -= min(time.Duration(float64(d.Wait)*p.jitter*chance(f.Rand)), d.Wait)
	if p.deadline > 0 && d.Wait > p.deadline-f.Age() {
		final := Final(ReasonNoDate)
		final.Note = d.Note
		return final, nil
	}
	return d, nil
}

// chance keeps a mistake in Rand, also NaN, from becoming a wrong wait.
func chance(r float64) float64 {
	if r >= 0 && r < 1 {
		return r
	}
	return 0
}

// fallback is the default policy's answer to an error.
func fallback(f Failure) Decision {
	d, _ := byDefault.judge(f, nil)
	return d
}
