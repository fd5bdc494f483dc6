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

// Exact returns a value as text: 1,234,567 or 1m30.5s; "not known" for NaN and infinities.
func (u Unit) Exact(v float64) string {
	switch {
	case !isKnown(v):
		return "not known"
	case u == Duration:
		return duration.Format(time.Duration(max(min(v, largest), -largest)))
	}
	return grouped(v)
}

// scales are what the labels of an axis count in.
var scales = []struct {
	size float64
	name string
}{{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}

// short is a value as it stands at an axis: 1.5k or 30s.
func (u Unit) short(v float64) string {
	switch {
	case v == 0:
		return "0"
	case u == Duration:
		return u.Exact(v)
	}
	for _, s := range scales {
		if v >= s.size {
			return significant(v/s.size) + s.name
		}
	}
	return significant(v)
}

// significant is a number of at most four digits that count.
func significant(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// rounded is a number with so many digits after its point.
func rounded(v float64, digits int) float64 {
	p := math.Pow10(digits)
	if r := math.Round(v * p); !math.IsInf(r, 0) {
		return r / p
	}
	return v
}

// grouped writes a number with its thousands apart.
func grouped(v float64) string {
	if math.Abs(v) >= 1e18 {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	whole, fraction, dotted := strings.Cut(strconv.FormatFloat(math.Abs(v), 'f', -1, 64), ".")
	var b strings.Builder
	if v < 0 {
		b.WriteByte('-')
	}
	for i, digit := range []byte(whole) {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digit)
	}
	if dotted {
		b.WriteString("." + fraction)
	}
	return b.String()
}
