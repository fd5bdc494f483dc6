package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Style is how series are drawn.
type Style int

// The styles.
const (
	Bars  Style = iota // stacked: for what adds up
	Lines              // for what is compared
)

// TimeSeries shows what several things did over time.
type TimeSeries struct {
	Title  string // what is shown, and per what: "Attempts that ended, per minute"
	Unit   Unit
	Style  Style
	From   time.Time     // when the first step begins
	Step   time.Duration // how long each takes
	Series []Series
}

// The measures of a picture in pixels. Labels stand outside of the plot, which is as wide as the page lets it be.
const (
	plotTop    = 10
	plotHeight = 150
	plotBottom = plotTop + plotHeight
	labels     = 20 // for those of the axis of time
	apart      = 8  // of a label from what it belongs to
)

// unit is the width and height of a plot in its own coordinates. The picture stretches it.
const unit = 1000

// visible is the least height of a value above zero: one failure among a million successes can be seen. A stack of
// such values may exceed its scale, up to the ceiling.
const (
	visible = 10
	ceiling = unit + unit*plotTop/plotHeight
)

// length is how many steps there are.
func (c TimeSeries) length() int {
	n := 0
	for _, s := range c.Series {
		n = max(n, len(s.Values))
	}
	return n
}

func (c TimeSeries) begins(i int) time.Time { return c.From.Add(time.Duration(i) * c.Step) }

func (c TimeSeries) span() span { return span{c.From, c.begins(c.length())} }

// most is the greatest value of a scale that shows everything.
func (c TimeSeries) most() float64 {
	top := 0.0
	for i := range c.length() {
		sum, highest := 0.0, 0.0
		for _, s := range c.Series {
			if v := s.at(i); isKnown(v) {
				sum, highest = sum+drawn(v), max(highest, drawn(v))
			}
		}
		if c.Style == Bars {
			highest = sum
		}
		top = max(top, min(highest, largest))
	}
	return top
}

// known reports whether any value of a step is known.
func (c TimeSeries) known(i int) bool {
	return slices.ContainsFunc(c.Series, func(s Series) bool { return isKnown(s.at(i)) })
}

// SVG is the picture.
func (c TimeSeries) SVG() string {
	var m markup
	m.begin("svg", "class", "plot", "role", "img", "aria-label", c.summary(), "width", "100%", "height", plotBottom+labels, "overflow", "visible")
	m.line()
	scale := ticks(c.Unit, c.most(), 5)
	top := scale[len(scale)-1]
	for _, v := range scale {
		y := plotBottom - v/top*plotHeight
		m.begin("line", "class", "grid", "x1", "0", "x2", "100%", "y1", y, "y2", y)
		m.end("line")
		m.element("text", c.Unit.short(v), "class", "tick", "x", -apart, "y", y, "dy", ".32em", "text-anchor", "end")
		m.line()
	}
	m.axis(c.span(), plotBottom)
	m.begin("svg", "class", "data", "y", plotTop, "width", "100%", "height", plotHeight,
		"viewBox", fmt.Sprintf("0 0 %d %[1]d", unit), "preserveAspectRatio", "none", "overflow", "visible")
	m.line()
	c.gaps(&m)
	c.steps(&m, top)
	if c.Style == Lines {
		for n, s := range c.Series {
			curve{first: c.width() / 2, step: c.width(), top: top}.draw(&m, s.Class.at(n), s.Values)
		}
	}
	m.end("svg")
	if c.length() == 0 {
		m.element("text", "nothing is known yet", "class", "none", "x", "50%", "y", plotTop+plotHeight/2, "text-anchor", "middle")
	}
	m.end("svg")
	return m.String()
}

// axis labels an axis of time that lies at a height.
func (m *markup) axis(s span, y int) {
	marks := s.marks(7)
	if len(marks) > 0 && len(marks[0].label) > len("15:04:05") {
		marks = s.marks(4)
	}
	for i, mark := range marks {
		x, class := percent(100*s.share(mark.at)), "tick"
		if i%2 == 1 && len(mark.label) >= len("15:04:05") {
			class = "tick rare" // where there is little room the others have to do
		}
		m.begin("line", "class", "grid", "x1", x, "x2", x, "y1", y, "y2", y+4)
		m.end("line")
		m.element("text", mark.label, "class", class, "x", x, "y", y+labels-4, "text-anchor", "middle", "data-time", machine(mark.at), "data-shows", mark.shows)
		m.line()
	}
}

// width is how much of a plot each step has.
func (c TimeSeries) width() float64 { return unit / float64(c.length()) }

// gaps marks where nothing is known, one mark for neighbouring steps.
func (c TimeSeries) gaps(m *markup) {
	for i := 0; i < c.length(); i++ {
		begin := i
		for i < c.length() && !c.known(i) {
			i++
		}
		if i > begin {
			m.begin("rect", "class", "gap", "x", float64(begin)*c.width(), "width", float64(i-begin)*c.width(), "height", unit)
			m.end("rect")
			m.line()
		}
	}
}

// steps draws each step with its tooltip.
func (c TimeSeries) steps(m *markup, top float64) {
	for i := range c.length() {
		x := float64(i) * c.width()
		m.begin("g", "class", "step")
		m.element("title", c.says(i), "data-time", machine(c.begins(i)))
		m.begin("rect", "class", "hit", "x", x, "width", c.width(), "height", unit, "fill", "none", "pointer-events", "all")
		m.end("rect")
		if c.Style == Bars {
			c.pile(m, i, top)
		}
		m.end("g")
		m.line()
	}
}

// says returns the tooltip of a step: a line for its beginning, then one for each series.
func (c TimeSeries) says(i int) string {
	lines := []string{read(c.begins(i))}
	for _, s := range c.Series {
		lines = append(lines, s.Name+": "+c.Unit.Exact(s.at(i)))
	}
	return strings.Join(lines, "\n")
}

// pile stacks the values of a step.
func (c TimeSeries) pile(m *markup, i int, top float64) {
	left, width := float64(i)*c.width(), c.width()
	if c.length() <= 200 { // room for some air
		left, width = left+width*.1, width*.8
	}
	below := 0.0
	for n, s := range c.Series {
		v := s.at(i)
		if !isKnown(v) || v <= 0 {
			continue
		}
		height := min(max(drawn(v)/top*unit, visible), ceiling-below)
		below += height
		m.begin("rect", "class", s.Class.at(n), "x", left, "y", unit-below, "width", width, "height", height)
		m.end("rect")
	}
}

// summary describes the picture in a sentence, for screen readers.
func (c TimeSeries) summary() string {
	says := []string{}
	for _, s := range c.Series {
		says = append(says, s.Name+" "+c.Unit.gist(s.Values))
	}
	text := strings.Join(says, "; ")
	if c.length() == 0 {
		text += "nothing is known yet"
	}
	return fmt.Sprintf("%s, from %s to %s: %s", c.Title, read(c.From), read(c.span().to), text)
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
	return fmt.Sprintf("%s at last, %s at most", u.Exact(last), u.Exact(highest))
}
