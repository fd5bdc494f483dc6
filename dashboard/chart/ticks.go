package chart

import (
	"iter"
	"math"
	"time"
)

const day = 24 * time.Hour

// ticks are where the lines of a scale are: from 0 to the first one that most does not exceed, equally far from each
// other, at round numbers, and at most n of them; n is 2 or more.
func ticks(u Unit, most float64, n int) []float64 {
	if !(most > 0) { // of a scale without values
		if most = 1; u == Duration {
			most = float64(time.Second)
		}
	}
	for step := range steps(u, most/float64(n-1)) {
		intervals := int(math.Ceil(most / step))
		if float64(intervals)*step < most { // the quotient was rounded
			intervals++
		}
		if intervals > n-1 {
			continue
		}
		at := make([]float64, intervals+1)
		for i := range at {
			at[i] = float64(i) * step
		}
		return at
	}
	panic("unreachable: steps have no end")
}

// steps are the distances that ticks may have: round ones, ascending without end, the first at most about. Counts are
// whole, and durations are a nanosecond or more.
func steps(u Unit, about float64) iter.Seq[float64] {
	if u == Duration {
		return durations(about)
	}
	return decimal(max(about, 1))
}

// decimal are 1, 2 and 5 times the powers of ten.
func decimal(about float64) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		for e := int(math.Floor(math.Log10(about))); ; e++ {
			for _, digit := range []float64{1, 2, 5} {
				if !yield(digit * math.Pow10(e)) {
					return
				}
			}
		}
	}
}

// clock are the round durations from a second to a day, as a clock shows them.
var clock = []time.Duration{
	time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 12 * time.Hour,
}

// durations are decimal below a second and in days, and those of a clock between.
func durations(about float64) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		if about < float64(time.Second) {
			for step := range decimal(max(about, 1)) {
				if step >= float64(time.Second) {
					break
				}
				if !yield(step) {
					return
				}
			}
		}
		for _, step := range clock {
			if !yield(float64(step)) {
				return
			}
		}
		for step := range decimal(max(about/float64(day), 1)) {
			if !yield(step * float64(day)) {
				return
			}
		}
	}
}
