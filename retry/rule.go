package retry

import (
	"slices"
	"time"
)

// rule is what a policy says before it is modified. Rules are comparable values, so
// that == compares two policies whole.
type rule interface {
	// judge decides about an error. It asks for the decisions of functions.
	judge(Failure, ask) (Decision, error)
	// retries is what Policy.Retries says for this rule.
	retries() (n int, bounded bool)
}

// ask answers for the function of that name, or with ErrUnknownFunc.
type ask func(name string, f Failure) (Decision, error)

// byDefault is the rule of the zero Policy.
var byDefault = exponential{10, time.Minute}

type (
	none  struct{}
	fixed struct {
		n    int
		wait time.Duration
	}
	forever     struct{ wait time.Duration }
	exponential struct {
		n     int
		first time.Duration
	}
	timetable struct{ rows chain[Row] }
	byError   struct{ cases chain[Case] }
	function  struct{ name string }
)

// chain is a list that == compares whole. It has at least one element.
type chain[T comparable] struct {
	first T
	rest  any // a chain[T], or nil
}

func chainOf[T comparable](list []T) (c chain[T]) {
	var rest any
	for _, v := range slices.Backward(list) {
		c = chain[T]{v, rest}
		rest = c
	}
	return c
}

func (c chain[T]) all(yield func(T) bool) {
	for ok := true; ok && yield(c.first); {
		c, ok = c.rest.(chain[T])
	}
}

func (none) judge(Failure, ask) (Decision, error) { return Final(ReasonNoRetries), nil }
func (none) retries() (int, bool)                 { return 0, true }

func (r fixed) judge(f Failure, _ ask) (Decision, error) {
	if f.count() > r.n {
		return Final(ReasonExhausted), nil
	}
	return Again(r.wait), nil
}
func (r fixed) retries() (int, bool) { return r.n, true }

func (r forever) judge(Failure, ask) (Decision, error) { return Again(r.wait), nil }
func (forever) retries() (int, bool)                   { return 0, false }

func (r exponential) judge(f Failure, _ ask) (Decision, error) {
	n := f.count()
	if n > r.n {
		return Final(ReasonExhausted), nil
	}
	// A shift of 63 or more leaves nothing of MaxWait, so this holds for any n.
	if r.first > MaxWait>>(n-1) {
		return Again(MaxWait), nil
	}
	return Again(r.first << (n - 1)), nil
}
func (r exponential) retries() (int, bool) { return r.n, true }

func (r timetable) judge(f Failure, _ ask) (Decision, error) {
	for row := range r.rows.all {
		if f.Age() < row.Younger {
			return Again(row.Wait), nil
		}
	}
	return Final(ReasonNoDate), nil // there were retries, for as long as the rows go
}
func (timetable) retries() (int, bool) { return 0, false }

func (r byError) judge(f Failure, a ask) (Decision, error) {
	for c := range r.cases.all {
		if c.otherwise || slices.Contains(f.Classes, c.class) {
			return c.then.judge(f, a)
		}
	}
	return Final(ReasonNotRetriable), nil
}
func (r byError) retries() (int, bool) { return r.most(Policy.Retries) }

// most is the largest number that the policies of the cases have, if each has one.
func (r byError) most(of func(Policy) (int, bool)) (most int, ok bool) {
	for c := range r.cases.all {
		n, ok := of(c.then)
		if !ok {
			return 0, false
		}
		most = max(most, n)
	}
	return most, true
}

func (r function) judge(f Failure, a ask) (Decision, error) { return a(r.name, f) }
func (function) retries() (int, bool)                       { return 0, false }

// Last reports whether a failure that happened now would be final whatever its
// error: no retry is left, or no time. It looks at Charged, Due and Now. False
// promises nothing: the error may be one that the policy does not retry, or
// that forbids it, and a function may decide as it likes.
func (p Policy) Last(f Failure) bool {
	if p.bad != "" {
		p = Default()
	}
	_, again := p.soonest(f)
	return !again
}

// soonest is the shortest wait that any error can lead to.
func (p Policy) soonest(f Failure) (wait time.Duration, again bool) {
	switch r := p.which().(type) {
	case byError:
		for c := range r.cases.all {
			if other, too := c.then.soonest(f); too && (!again || other < wait) {
				wait, again = other, true
			}
		}
	case function:
		again = true
	default:
		d, _ := r.judge(f, nil)
		wait, again = d.Wait, d.Retry
	}
	if !again {
		return 0, false
	}
	if p.max > 0 {
		wait = min(wait, p.max)
	}
	wait -= min(time.Duration(float64(wait)*p.jitter), wait)
	return wait, p.deadline == 0 || wait <= p.deadline-f.Age()
}
