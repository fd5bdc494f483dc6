// Package chart draws the charts of a dashboard as SVG: values over time, a
// sparkline, a ranking in bars, and the history of one thing on an axis of time.
//
// A chart is a struct. SVG returns the picture alone; Figure returns HTML: the picture
// with its title, its legend and a table of its numbers. Both are safe to put into a
// page: names are escaped.
//
// The style sheet of the page colours classes: s1 to s8 for series, and ok, bad, warn
// and muted for meanings. There are no inline styles, so pages may forbid them. A
// picture is as wide as the page allows, and its text keeps its size. The labels of a
// vertical axis stand left of the picture, where the style sheet leaves a margin.
//
// Times are in UTC. An element that shows one has the attribute data-time, so that a
// script can write it in the reader's zone.
package chart

import (
	"fmt"
	"math"
)

// Class says by which rule of the style sheet something is coloured.
type Class string

// Classes with a meaning.
const (
	Own   Class = "" // one of s1 to s8, by its place in the chart
	OK    Class = "ok"
	Bad   Class = "bad"
	Warn  Class = "warn"
	Muted Class = "muted"
)

// classes are s1 to s8.
const classes = 8

// at is the class of what stands at a place.
func (c Class) at(place int) string {
	if c != Own {
		return string(c)
	}
	return fmt.Sprintf("s%d", place%classes+1)
}

// Series is one thing's values over time.
type Series struct {
	Name  string
	Class Class

	// Values are one for each step of the chart. NaN and infinities are where
	// nothing is known, and so is what is missing at the end. Negative ones are drawn as 0.
	Values []float64
}

// at is the value of a step.
func (s Series) at(i int) float64 {
	if i >= len(s.Values) {
		return math.NaN()
	}
	return s.Values[i]
}

// isKnown tells values from gaps.
func isKnown(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// most is the greatest of some values that a scale has to show.
func most(values []float64) float64 {
	top := 0.0
	for _, v := range values {
		if isKnown(v) {
			top = max(top, drawn(v))
		}
	}
	return top
}

// largest is the end of every scale: arithmetic with it, also as durations, does not overflow.
const largest = 2e18

// drawn is the value that is drawn for one that is known.
func drawn(v float64) float64 { return min(max(v, 0), largest) }
