package chart

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// Style is how series are drawn.
type Style int

// The styles.
const (
	Bars  Style = iota // upon each other: for what adds up
	Lines              // over each other: for what is compared
	Areas              // lines with what is below them filled
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

// unit is how large a plot is for what is drawn in it. The picture stretches it to its width and height.
const unit = 1000

// visible is how high something is drawn at least that is there: a failure among a million successes is to be seen.
// A pile of such may rise above its scale, up to the ceiling.
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

// known reports whether anything is known of a step.
func (c TimeSeries) known(i int) bool {
	for _, s := range c.Series {
		if isKnown(s.at(i)) {
			return true
		}
	}
	return false
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
	if c.Style != Bars {
		c.lines(&m, top)
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

// gaps shows where nothing is known, in one piece where steps follow each other.
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

// steps draws what belongs to each step, with what it says to who points at it.
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

// says is what is known of a step: its beginning in the first line, and each series in one.
func (c TimeSeries) says(i int) string {
	lines := []string{read(c.begins(i))}
	for _, s := range c.Series {
		lines = append(lines, s.Name+": "+c.Unit.Exact(s.at(i)))
	}
	return strings.Join(lines, "\n")
}

// pile draws the values of a step upon each other.
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

// lines draws each series in as many pieces as gaps leave of it.
func (c TimeSeries) lines(m *markup, top float64) {
	for n, s := range c.Series {
		curve{first: c.width() / 2, step: c.width(), top: top, filled: c.Style == Areas}.draw(m, s.Class.at(n), s.Values)
	}
}

// summary is a sentence for who does not see the picture.
func (c TimeSeries) summary() string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s, from %s to %s: ", c.Title, read(c.From), read(c.span().to))
	for n, s := range c.Series {
		if n > 0 {
			b.WriteString("; ")
		}
		b.WriteString(s.Name + " " + c.Unit.gist(s.Values))
	}
	if c.length() == 0 {
		b.WriteString("nothing is known yet")
	}
	return b.String()
}

// gist says of values what matters most.
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
