package chart

import (
	"math"
	"slices"
	"strings"
	"time"
)

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

// class is that of a series of the time before.
func (s Series) class() string { return strings.TrimSpace(string(s.Class) + " before") }

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

	// Before is what was in the same steps of the time before: one more line, which the class before dashes. One
	// without values is left out.
	Before Series

	// Link returns where a step leads to; nil for nowhere. Steps in which nothing happened have no link.
	Link func(from, to time.Time) string

	// Zoom is the path of a page that shows a time, which its parameters from and to say. A script offers to drag
	// across the picture there. Empty if there is none.
	Zoom string
}

const (
	plotHeight = 150 // in pixels
	plotBottom = plotTop + plotHeight

	// unit is the width and height of a plot in its own coordinates. The picture stretches it.
	unit = 1000

	// visible is the least height of a value above zero: one failure among a million successes can be seen. A stack
	// of such values may exceed its scale, up to the ceiling.
	visible = 10
	ceiling = unit + unit*plotTop/plotHeight
)

// length is how many steps there are, and width how much of a plot each has.
func (c TimeSeries) length() (n int) {
	for _, s := range c.Series {
		n = max(n, len(s.Values))
	}
	return n
}

func (c TimeSeries) width() float64 { return unit / float64(c.length()) }

func (c TimeSeries) begins(i int) time.Time { return c.From.Add(time.Duration(i) * c.Step) }

// most is the greatest value of a scale that shows everything.
func (c TimeSeries) most() (top float64) {
	for i := range c.length() {
		sum := 0.0
		for _, s := range c.Series {
			if v := s.at(i); isKnown(v) && c.Style == Bars {
				sum += drawn(v)
			} else if isKnown(v) {
				sum = max(sum, drawn(v))
			}
		}
		if v := c.Before.at(i); isKnown(v) {
			sum = max(sum, drawn(v))
		}
		top = max(top, min(sum, largest))
	}
	return top
}

// SVG is the picture.
func (c TimeSeries) SVG() string {
	var m markup
	role := "img"
	if c.Link != nil {
		role = "group"
	}
	m.picture("plot", role, c.summary(), plotBottom+labels, c.zoom()...)
	scale := ticks(c.Unit, c.most(), 5)
	top := scale[len(scale)-1]
	for _, v := range scale {
		y := plotBottom - v/top*plotHeight
		m.grid(0, 100, y, y)
		m.label(c.Unit.short(v), y)
	}
	m.axis(span{c.From, c.begins(c.length())}, plotBottom)
	m.begin("svg", "class", "data", "y", plotTop, "width", "100%", "height", plotHeight,
		"viewBox", "0 0 1000 1000", "preserveAspectRatio", "none", "overflow", "visible")
	c.gaps(&m)
	for i := range c.length() {
		to := c.link(i)
		m.aside(to)
		m.begin("g", "class", "step")
		m.element("title", c.says(i), "data-time", machine(c.begins(i)))
		m.element("rect", "", "class", "hit", "x", float64(i)*c.width(), "width", c.width(), "height", unit,
			"fill", "none", "pointer-events", "all")
		if c.Style == Bars {
			c.pile(&m, i, top)
		}
		m.end("g")
		m.endLink(to)
	}
	line := curve{first: c.width() / 2, step: c.width(), top: top, grain: 1}
	if c.Style == Lines {
		for n, s := range c.Series {
			line.draw(&m, s.Class.at(n), s.Values)
		}
	}
	before := c.before()
	line.draw(&m, before.class(), before.Values)
	m.end("svg")
	if c.length() == 0 {
		m.nothing("nothing is known yet", plotTop+plotHeight/2)
	}
	m.end("svg")
	return m.String()
}

// Figure is the picture with its title, its legend and a table of its numbers, as HTML.
func (c TimeSeries) Figure() string {
	var (
		legend []key
		head   = []string{"From"}
		rows   = make([]row, c.length())
	)
	for n, s := range c.Series {
		legend = append(legend, key{s.Name, s.Class.at(n)})
		head = append(head, s.Name)
	}
	all := c.all()
	if len(all) > len(c.Series) {
		legend = append(legend, key{c.Before.Name, c.Before.class()})
		head = append(head, c.Before.Name)
	}
	for i := range rows {
		rows[i].at, rows[i].link = c.begins(i), c.link(i)
		for _, s := range all {
			rows[i].cells = append(rows[i].cells, c.Unit.Exact(s.at(i)))
		}
	}
	return figure(c.Title, legend, c.SVG(), head, rows)
}

// all are the series, with that of the time before.
func (c TimeSeries) all() []Series {
	if len(c.Before.Values) == 0 {
		return c.Series
	}
	return append(slices.Clone(c.Series), c.before())
}

// before is the series of the time before, no longer than the others.
func (c TimeSeries) before() Series {
	s := c.Before
	s.Values = s.Values[:min(len(s.Values), c.length())]
	return s
}

// zoom are the attributes by which a script knows which time is where.
func (c TimeSeries) zoom() []any {
	if c.Zoom == "" || c.length() == 0 {
		return nil
	}
	return []any{"data-zoom", c.Zoom, "data-from", machine(c.From), "data-step", c.Step.Milliseconds(), "data-steps", c.length()}
}

// link is where a step leads to; empty for nowhere.
func (c TimeSeries) link(i int) string {
	happened := func(s Series) bool { return isKnown(s.at(i)) && s.at(i) > 0 }
	if c.Link == nil || !slices.ContainsFunc(c.Series, happened) {
		return ""
	}
	return c.Link(c.begins(i), c.begins(i+1))
}

// gaps marks where nothing is known, one mark for neighbouring steps.
func (c TimeSeries) gaps(m *markup) {
	unknown := func(i int) bool {
		return !slices.ContainsFunc(c.Series, func(s Series) bool { return isKnown(s.at(i)) })
	}
	for i := 0; i < c.length(); i++ {
		begin := i
		for i < c.length() && unknown(i) {
			i++
		}
		if i > begin {
			m.element("rect", "", "class", "gap", "x", float64(begin)*c.width(), "width", float64(i-begin)*c.width(), "height", unit)
		}
	}
}

// says returns the tooltip of a step: a line for its beginning, then one for each series.
func (c TimeSeries) says(i int) string {
	lines := []string{read(c.begins(i))}
	for _, s := range c.all() {
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
		if v := s.at(i); isKnown(v) && v > 0 {
			height := min(max(drawn(v)/top*unit, visible), ceiling-below)
			below += height
			m.element("rect", "", "class", s.Class.at(n), "x", left, "y", unit-below, "width", width, "height", height)
		}
	}
}

// summary describes the picture in a sentence, for screen readers.
func (c TimeSeries) summary() string {
	var says []string
	for _, s := range c.all() {
		says = append(says, s.Name+" "+c.Unit.gist(s.Values))
	}
	if c.length() == 0 {
		says = append(says, "nothing is known yet")
	}
	return c.Title + ", from " + read(c.From) + " to " + read(c.begins(c.length())) + ": " + strings.Join(says, "; ")
}
