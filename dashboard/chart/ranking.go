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
	var (
		m      markup
		values []float64
		says   []string
	)
	for _, r := range c.Rows {
		values, says = append(values, r.Value), append(says, r.Name+" "+c.Unit.Exact(r.Value))
	}
	if len(c.Rows) == 0 {
		says = []string{"there is nothing"}
	}
	m.picture("ranking", "img", c.Title+": "+some(says), max(len(c.Rows), 1)*rowHeight)
	top := most(values)
	for i, r := range c.Rows {
		y, exact := i*rowHeight, c.Unit.Exact(r.Value)
		m.begin("g", "class", "row")
		m.element("title", r.Name+": "+exact)
		m.element("text", cut(r.Name, fits), "class", "name", "x", 0, "y", y+rowText)
		m.element("text", exact, "class", "figure", "x", "100%", "y", y+rowText, "text-anchor", "end")
		m.element("rect", "", "class", "track", "y", y+rowBar, "width", "100%", "height", barHeight, "rx", 2)
		if isKnown(r.Value) && r.Value > 0 {
			share := percent(max(100*drawn(r.Value)/top, .5)) // wide enough to be seen
			m.element("rect", "", "class", r.Class.at(0), "y", y+rowBar, "width", share, "height", barHeight, "rx", 2)
		}
		m.end("g")
	}
	if len(c.Rows) == 0 {
		m.nothing("there is nothing", rowText)
	}
	m.end("svg")
	return m.String()
}

// Figure is the picture with its title and a table of its numbers, as HTML.
func (c Ranking) Figure() string {
	var rows []row
	for _, r := range c.Rows {
		rows = append(rows, row{cells: []string{r.Name, c.Unit.Exact(r.Value)}})
	}
	return figure(c.Title, nil, c.SVG(), []string{"Name", "Value"}, rows)
}
