package chart

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/duration"
)

// Unit says what the values of a chart are.
type Unit int

// The units. A number in a text is exact up to 2⁵³: nine million billion jobs, or 104 days.
const (
	Count    Unit = iota // of jobs, attempts, bytes
	Duration             // nanoseconds, as in float64(time.Second)
)

// largest is the end of every scale: arithmetic with it, also as durations, does not overflow.
const largest = 2e18

// drawn is the value that is drawn for one that is known.
func drawn(v float64) float64 { return min(max(v, 0), largest) }

// isKnown tells values from gaps.
func isKnown(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Exact returns a value as text: 1,234,567 or 1m30.5s; "not known" for NaN and infinities.
func (u Unit) Exact(v float64) string {
	switch {
	case !isKnown(v):
		return "not known"
	case u == Duration:
		return duration.Format(time.Duration(max(min(v, largest), -largest)))
	case math.Abs(v) >= 1e18:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	text := strconv.FormatFloat(v, 'f', -1, 64)
	point := len(text)
	if i := strings.IndexByte(text, '.'); i >= 0 {
		point = i
	}
	for i := point - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// short returns a value for the label of an axis: 1.5k or 30s.
func (u Unit) short(v float64) string {
	if u == Duration && v != 0 {
		return u.Exact(v)
	}
	size := 0
	for ; v >= 1000 && size < 6; size++ {
		v /= 1000
	}
	return strconv.FormatFloat(v, 'g', 4, 64) + strings.TrimSpace(" kMGTPE"[size:size+1])
}

// gist summarizes values: the last and the highest one.
func (u Unit) gist(values []float64) string {
	last, highest := math.NaN(), math.Inf(-1)
	for _, v := range values {
		if isKnown(v) {
			last, highest = v, max(highest, v)
		}
	}
	if !isKnown(last) {
		return "not known"
	}
	return u.Exact(last) + " at last, " + u.Exact(highest) + " at most"
}
