package retry

import "time"

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
	if wait, again = soonest(p.which(), f); !again {
		return 0, false
	}
	if p.max > 0 {
		wait = min(wait, p.max)
	}
	wait -= min(time.Duration(float64(wait)*p.jitter), wait)
	return wait, p.deadline == 0 || wait <= p.deadline-f.Age()
}

func soonest(r rule, f Failure) (time.Duration, bool) {
	switch r := r.(type) {
	case on:
		wait, again := r.then.soonest(f)
		if other, too := soonest(r.rest, f); too && (!again || other < wait) {
			return other, true
		}
		return wait, again
	case otherwise:
		return r.then.soonest(f)
	case function:
		return 0, true
	}
	d, _ := r.judge(f, nil)
	return d.Wait, d.Retry
}
