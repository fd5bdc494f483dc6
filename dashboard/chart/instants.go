package chart

import "time"

// span is what an axis of time shows.
type span struct{ from, to time.Time }

// share is how much of a span is over at an instant, from 0 to 1.
func (s span) share(t time.Time) float64 {
	length := s.to.Sub(s.from)
	if length <= 0 {
		return 0
	}
	return min(max(float64(t.Sub(s.from))/float64(length), 0), 1)
}

// mark is a labelled instant of an axis of time.
type mark struct {
	at    time.Time
	label string
	shows string // how precise the label is, for a script that writes it again in another zone
}

// century is longer than any chart: a span of more has an instant that was forgotten.
const century = 36525 * day

// marks are at round times, equally far from each other, at least one and at most n of them; n is 3 or more. A span
// that ends before it began, or takes longer than a century, has none.
func (s span) marks(n int) []mark {
	length := s.to.Sub(s.from)
	if length <= 0 || length > century {
		return nil
	}
	for step := range durations(float64(length) / float64(n)) {
		step := time.Duration(step)
		var found []mark
		for t := s.first(step); !t.After(s.to) && len(found) <= n; t = t.Add(step) {
			found = append(found, marked(t, step))
		}
		if len(found) <= n {
			return found
		}
	}
	panic("unreachable: durations have no end")
}

// first is the first multiple of a step.
func (s span) first(step time.Duration) time.Time {
	t := s.from.UTC().Truncate(step)
	if t.Before(s.from) {
		t = t.Add(step)
	}
	return t
}

// marked labels an instant as precisely as its distance to the next one asks for. Midnight shows the day that begins.
func marked(t time.Time, step time.Duration) mark {
	switch midnight := t.Equal(t.Truncate(day)); {
	case step >= day:
		return mark{t, t.Format("2 Jan"), "day"}
	case step >= time.Minute && midnight:
		return mark{t, t.Format("2 Jan"), "minute"} // elsewhere the day begins at another time
	case step >= time.Minute:
		return mark{t, t.Format("15:04"), "minute"}
	case step >= time.Second:
		return mark{t, t.Format("15:04:05"), "second"}
	case step >= time.Millisecond:
		return mark{t, t.Format("15:04:05.000"), "fraction"}
	}
	return mark{t, t.Format("15:04:05.000000"), "fraction"}
}

// machine writes an instant for scripts, and read for people: to the second where that is exact.
func machine(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
func read(t time.Time) string    { return t.UTC().Format("2006-01-02 15:04:05.999999") + " UTC" }
