package chart

import (
	"math"
	"strings"
)

// Sparkline shows the course of one value, as small as a word.
type Sparkline struct {
	Title  string
	Unit   Unit
	Class  Class
	Values []float64 // as in a [Series]
}

// SVG is the picture. It has no legend and no table: its numbers stand beside it.
func (c Sparkline) SVG() string {
	var m markup
	says := c.Title + ": " + c.Unit.gist(c.Values)
	m.begin("svg", "class", "spark", "role", "img", "aria-label", says, "width", 96, "height", 24,
		"viewBox", "0 0 1000 1000", "preserveAspectRatio", "none", "overflow", "visible")
	m.element("title", says)
	top := most(c.Values)
	if top == 0 {
		top = 1 // a line at the bottom
	}
	curve{step: unit / float64(max(len(c.Values)-1, 1)), top: top, filled: true, grain: 10}.draw(&m, c.Class.at(0), c.Values)
	m.end("svg")
	return m.String()
}

// most is the greatest of some values that a scale has to show.
func most(values []float64) (top float64) {
	for _, v := range values {
		if isKnown(v) {
			top = max(top, drawn(v))
		}
	}
	return top
}

// curve draws a line through values, in pieces where some are not known, in a plot of unit by unit.
type curve struct {
	first, step float64 // where the first value is, and how far each next one is from it
	top         float64 // the value at the top
	filled      bool    // below the line
	grain       float64 // what heights are multiples of: finer than a screen shows is only more to send
}

func (c curve) draw(m *markup, class string, values []float64) {
	for i := 0; i < len(values); i++ {
		begin := i
		for i < len(values) && isKnown(values[i]) {
			i++
		}
		if i > begin {
			c.piece(m, class, c.first+float64(begin)*c.step, values[begin:i])
		}
	}
}

// piece draws a line without gaps. One through a single value is a dot, since its ends are round.
func (c curve) piece(m *markup, class string, left float64, values []float64) {
	points := make([]string, 0, len(values)+1)
	for i, v := range values {
		y := math.Round((unit-drawn(v)/c.top*unit)/c.grain) * c.grain
		points = append(points, coordinate(left+float64(i)*c.step)+" "+coordinate(y))
	}
	if c.filled {
		right := coordinate(left + float64(len(values)-1)*c.step)
		area := "M" + coordinate(left) + " 1000L" + strings.Join(points, "L") + "L" + right + " 1000Z"
		m.element("path", "", "class", "area "+class, "d", area, "pointer-events", "none")
	}
	if len(points) == 1 {
		points = append(points, points[0])
	}
	m.element("path", "", "class", "line "+class, "d", "M"+strings.Join(points, "L"), "fill", "none", "pointer-events", "none",
		"vector-effect", "non-scaling-stroke", "stroke-linecap", "round")
}
