package chart

import (
	"slices"
	"time"
)

const day = 24 * time.Hour

// The distances that the marks of a scale may have, ascending: 1, 2 and 5 times the powers of ten, and for durations
// from a second to a day those of a clock.
var (
	counts    = decimal(1, 1e19)
	durations = slices.Concat(decimal(1, 1e9), clock, decimal(float64(day), 1e6*float64(day)))
	clock     = []float64{1e9, 2e9, 5e9, 10e9, 15e9, 30e9, 60e9, 120e9, 300e9, 600e9, 900e9, 1800e9,
		3600e9, 7200e9, 10_800e9, 14_400e9, 21_600e9, 43_200e9}
)

// decimal returns 1, 2 and 5 times the powers of ten of a unit, below an end.
func decimal(unit, end float64) (all []float64) {
	for ; unit < end; unit *= 10 {
		all = append(all, unit, 2*unit, 5*unit)
	}
	return all
}

// ticks returns the values of a scale that have lines: from 0 to the first one that is not below most, equally far
// from each other, at round numbers, and at most n of them; n is 2 or more.
func ticks(u Unit, most float64, n int) (at []float64) {
	steps := counts
	if u == Duration {
		steps = durations
	}
	if !(most > 0) { // a scale without values
		if most = 1; u == Duration {
			most = float64(time.Second)
		}
	}
	i := slices.IndexFunc(steps, func(step float64) bool { return float64(n-1)*step >= most })
	for at = []float64{0}; at[len(at)-1] < most; {
		at = append(at, float64(len(at))*steps[i])
	}
	return at
}

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
func (s span) marks(n int) (found []mark) {
	length := s.to.Sub(s.from)
	if length <= 0 || length > century {
		return nil
	}
	for _, d := range durations {
		if d*float64(n) < float64(length) {
			continue
		}
		step := time.Duration(d)
		t := s.from.UTC().Truncate(step)
		if t.Before(s.from) {
			t = t.Add(step)
		}
		for found = nil; !t.After(s.to); t = t.Add(step) {
			found = append(found, marked(t, step))
		}
		if len(found) <= n {
			break
		}
	}
	return found
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
