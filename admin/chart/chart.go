// Package chart draws what a dashboard shows as SVG: figures over time, a
// sparkline, bars beside each other, and what happened to one thing on an axis of
// time.
//
// A chart is a struct; SVG is the picture alone, and Figure the picture with its
// title, its legend and a table of its numbers, as HTML. Both are safe to put into a page:
// whatever a name contains is escaped.
//
// The style sheet of the page gives colours by classes: s1 to s8 for what is told
// apart, and ok, bad, warn and muted for what means something. Nothing has a
// style of its own, so that pages may forbid it. Pictures are as wide as the page lets
// them be, and what is written in them keeps its size. The labels of a vertical axis
// stand left of the picture, where the style sheet leaves a margin.
//
// Times are in UTC. Whatever shows one has it as data-time too, so that a script can
// write it in the zone of whoever looks.
package chart

import (
	"fmt"
	"math"
)

// Class says by which rule of the style sheet something is coloured.
type Class string

// Classes that mean something.
const (
	Own   Class = "" // one of s1 to s8, by its place among its like
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

// Series is what one thing did over time.
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

// largest is what a scale reaches to, so that all arithmetic with it, as durations
// too, is far from its bounds.
const largest = 2e18

// drawn is the value that is drawn for one that is known.
func drawn(v float64) float64 { return min(max(v, 0), largest) }
