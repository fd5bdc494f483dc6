package chart

import "fmt"

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
		"viewBox", fmt.Sprintf("0 0 %d %[1]d", unit), "preserveAspectRatio", "none", "overflow", "visible")
	m.element("title", says)
	top := most(c.Values)
	if top == 0 {
		top = 1 // a line at the bottom
	}
	curve{step: unit / float64(max(len(c.Values)-1, 1)), top: top, filled: true}.draw(&m, c.Class.at(0), c.Values)
	m.end("svg")
	return m.String()
}
