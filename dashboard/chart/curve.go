package chart

import "strings"

// curve draws a line through values, in pieces where some are not known, in a plot of unit by unit.
type curve struct {
	first, step float64 // where the first value is, and how far each next one is from it
	top         float64 // the value at the top
	filled      bool    // below the line
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
		points = append(points, coordinate(left+float64(i)*c.step)+" "+coordinate(unit-drawn(v)/c.top*unit))
	}
	right := left + float64(len(values)-1)*c.step
	if c.filled {
		area := "M" + coordinate(left) + " " + coordinate(unit) + "L" + strings.Join(points, "L") + "L" + coordinate(right) + " " + coordinate(unit) + "Z"
		m.begin("path", "class", "area "+class, "d", area, "pointer-events", "none")
		m.end("path")
	}
	if len(points) == 1 {
		points = append(points, points[0])
	}
	m.begin("path", "class", "line "+class, "d", "M"+strings.Join(points, "L"), "fill", "none", "pointer-events", "none",
		"vector-effect", "non-scaling-stroke", "stroke-linecap", "round")
	m.end("path")
	m.line()
}
