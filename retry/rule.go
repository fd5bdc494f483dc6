package retry

import "time"

// rule is what a policy says before it is modified. Rules are comparable
// values: what would be a list is a chain, each link holding the rest, so that
// == compares two policies whole.
type rule interface {
	// judge decides about an error. The functions it may need are asked.
	judge(Failure, ask) (Decision, error)
	// retries is what Policy.Retries says for this rule.
	retries() (n int, bounded bool)
	// wire fills in the JSON form.
	wire(*wire)
	// text is the form for the command line, or empty where there is none.
	text() string
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
	function struct{ name string }

	// younger is the first row of a timetable; rest is the next one, or none.
	younger struct {
		row  Row
		rest rule
	}

	// on is the first case of ByError; rest is the next one, otherwise, or
	// unmatched.
	on struct {
		class string
		then  Policy
		rest  rule
	}
	otherwise struct{ then Policy }
	unmatched struct{}
)

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

func (r younger) judge(f Failure, a ask) (Decision, error) {
	if f.Age() < r.row.Younger {
		return Again(r.row.Wait), nil
	}
	if _, over := r.rest.(none); over {
		return Final(ReasonNoDate), nil // there were retries, for as long as the rows go
	}
	return r.rest.judge(f, a)
}
func (younger) retries() (int, bool) { return 0, false }

func (r on) judge(f Failure, a ask) (Decision, error) {
	if f.has(r.class) {
		return r.then.judge(f, a)
	}
	return r.rest.judge(f, a)
}

func (r on) retries() (int, bool) {
	n, bounded := r.then.Retries()
	m, too := r.rest.retries()
	if bounded && too {
		return max(n, m), true
	}
	return 0, false
}

func (r otherwise) judge(f Failure, a ask) (Decision, error) { return r.then.judge(f, a) }
func (r otherwise) retries() (int, bool)                     { return r.then.Retries() }

func (unmatched) judge(Failure, ask) (Decision, error) { return Final(ReasonNotRetriable), nil }
func (unmatched) retries() (int, bool)                 { return 0, true }

func (r function) judge(f Failure, a ask) (Decision, error) { return a(r.name, f) }
func (function) retries() (int, bool)                       { return 0, false }

// ignoresLosses reports whether a rule is None in every branch. Such a rule has
// no attempts for losses to count among.
func ignoresLosses(r rule) bool {
	switch r := r.(type) {
	case none, unmatched:
		return true
	case on:
		return ignoresLosses(r.then.which()) && ignoresLosses(r.rest)
	case otherwise:
		return ignoresLosses(r.then.which())
	}
	return false
}
