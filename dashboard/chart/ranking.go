package chart

// Ranking shows a value of each of several things, in bars below each other.
type Ranking struct {
	Title string // what is shown: "Jobs that wait, by queue"
	Unit  Unit
	Rows  []Row
}

// Row is one of the things. A value that is NaN is not known and has no bar; a
// negative one has none either.
type Row struct {
	Name  string
	Class Class // Own is s1, whatever the place
	Value float64
}

// The measures of a row in pixels: its text stands on a line, and its bar is below.
const (
	rowHeight = 32
	rowText   = 12
	rowBar    = 18
	barHeight = 7
)

// fits is how many characters of a name fit on a phone beside its value.
const fits = 30

// SVG is the picture.
func (c Ranking) SVG() string {
	var m markup
	m.begin("svg", "class", "ranking", "role", "img", "aria-label", c.summary(), "width", "100%", "height", max(len(c.Rows), 1)*rowHeight)
	m.line()
	var values []float64
	for _, r := range c.Rows {
		values = append(values, r.Value)
	}
	top := most(values)
	for i, r := range c.Rows {
		y := i * rowHeight
		m.begin("g", "class", "row")
		m.element("title", r.Name+": "+c.Unit.Exact(r.Value))
		m.element("text", cut(r.Name, fits), "class", "name", "x", "0", "y", y+rowText)
		m.element("text", c.Unit.Exact(r.Value), "class", "figure", "x", "100%", "y", y+rowText, "text-anchor", "end")
		m.begin("rect", "class", "track", "y", y+rowBar, "width", "100%", "height", barHeight, "rx", "2")
		m.end("rect")
		if isKnown(r.Value) && r.Value > 0 {
			share := percent(max(100*drawn(r.Value)/top, .5)) // what is there is to be seen
			m.begin("rect", "class", r.Class.at(0), "y", y+rowBar, "width", share, "height", barHeight, "rx", "2")
			m.end("rect")
		}
		m.end("g")
		m.line()
	}
	if len(c.Rows) == 0 {
		m.element("text", "there is nothing", "class", "none", "x", "50%", "y", rowText, "text-anchor", "middle")
	}
	m.end("svg")
	return m.String()
}

// summary describes the picture in a sentence, for screen readers.
func (c Ranking) summary() string {
	if len(c.Rows) == 0 {
		return c.Title + ": there is nothing"
	}
	var rows []string
	for _, r := range c.Rows {
		rows = append(rows, r.Name+" "+c.Unit.Exact(r.Value))
	}
	return c.Title + ": " + some(rows)
}
