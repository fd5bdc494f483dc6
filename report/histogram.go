package report

import (
	"math"
	"slices"
	"time"
)

// Histogram counts durations by how long they were: the first number is of those below
// the first of [HistogramBounds], and the one at i of those from bound i-1 on and below
// bound i. Zeros at its end are left out, so the zero value is of none.
type Histogram []int64

// HistogramBounds are ten in each power of ten, each a quarter above the one before: from
// 0.1 ms to 28 hours, in whole microseconds. So a percentile that is read from a histogram is
// off by a quarter at most between them.
var HistogramBounds = func() (all []time.Duration) {
	const first, last = 2, 11 // powers of ten, in microseconds
	for i := 10 * first; i <= 10*last; i++ {
		all = append(all, time.Duration(math.Round(math.Pow(10, float64(i)/10)))*time.Microsecond)
	}
	return all
}()

// Add counts one more.
func (h *Histogram) Add(took time.Duration) {
	i, on := slices.BinarySearch(HistogramBounds, took)
	if on {
		i++
	}
	if more := i + 1 - len(*h); more > 0 {
		*h = append(*h, make(Histogram, more)...)
	}
	(*h)[i]++
}

// Plus is the sum of both. It changes neither, and shares nothing with the second.
func (h Histogram) Plus(o Histogram) Histogram {
	if len(o) == 0 {
		return h
	}
	if len(h) < len(o) {
		h, o = o, h
	}
	h = slices.Clone(h)
	for i, n := range o {
		h[i] += n
	}
	return h
}

// Count is how many durations it counts.
func (h Histogram) Count() (n int64) {
	for _, c := range h {
		n += c
	}
	return n
}

// below counts those below the first bound that is not less than a duration.
func (h Histogram) below(d time.Duration) (n int64) {
	i, _ := slices.BinarySearch(HistogramBounds, d)
	for _, c := range h[:min(i+1, len(h))] {
		n += c
	}
	return n
}

// Percentile estimates the duration at rank ⌈n·p/100⌉; p is from 1 to 100. Within its bounds
// durations are taken to be spread evenly by their logarithm, as latencies about are. It
// is 0 if there is none.
func (h Histogram) Percentile(p int) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := (n*int64(p) + 99) / 100
	for i, c := range h {
		if rank > c {
			rank -= c
			continue
		}
		if i == len(HistogramBounds) {
			return HistogramBounds[i-1] // and longer
		}
		low, high := time.Microsecond, HistogramBounds[i]
		if i > 0 {
			low = HistogramBounds[i-1]
		}
		at := (float64(rank) - 0.5) / float64(c)
		return time.Duration(float64(low) * math.Pow(float64(high)/float64(low), at)).Round(time.Microsecond)
	}
	return 0 // not reached: the ranks are those of the counts
}

func (h Histogram) percentiles() *Percentiles {
	return &Percentiles{P50: h.Percentile(50), P95: h.Percentile(95), P99: h.Percentile(99)}
}
