package chart

import "time"

// key is a line of a legend.
type key struct{ name, class string }

// table holds the numbers of a picture.
type table struct {
	head []string
	rows []row
}

// row begins with a name or an instant.
type row struct {
	name  string
	at    time.Time
	cells []string
}

// Figure is the picture with its title, its legend and a table of its numbers, as HTML.
func (c TimeSeries) Figure() string {
	legend := make([]key, 0, len(c.Series))
	t := table{head: []string{"From"}}
	for n, s := range c.Series {
		legend = append(legend, key{s.Name, s.Class.at(n)})
		t.head = append(t.head, s.Name)
	}
	for i := range c.length() {
		r := row{at: c.begins(i)}
		for _, s := range c.Series {
			r.cells = append(r.cells, c.Unit.Exact(s.at(i)))
		}
		t.rows = append(t.rows, r)
	}
	return figure(c.Title, legend, c.SVG(), t)
}

// Figure is the picture with its title and a table of its numbers, as HTML.
func (c Ranking) Figure() string {
	t := table{head: []string{"Name", "Value"}}
	for _, r := range c.Rows {
		t.rows = append(t.rows, row{name: r.Name, cells: []string{c.Unit.Exact(r.Value)}})
	}
	return figure(c.Title, nil, c.SVG(), t)
}

// Figure is the picture with its title, its legend and a table of its segments, as HTML.
func (c Timeline) Figure() string {
	var legend []key
	for _, s := range c.names() {
		legend = append(legend, key{s.Name, c.class(s)})
	}
	t := table{head: []string{"From", "Part", "What", "How long", "More"}}
	for _, lane := range c.Lanes {
		for _, s := range lane.Segments {
			t.rows = append(t.rows, row{at: s.From, cells: []string{lane.Name, s.Name, c.took(s), s.Note}})
		}
	}
	return figure(c.Title, legend, c.SVG(), t)
}

func figure(title string, legend []key, svg string, t table) string {
	var m markup
	m.begin("figure", "class", "chart")
	m.line()
	m.element("figcaption", title)
	m.line()
	if len(legend) > 0 {
		m.begin("ul", "class", "legend")
		for _, k := range legend {
			m.element("li", k.name, "class", k.class)
		}
		m.end("ul")
		m.line()
	}
	m.raw(svg)
	m.line()
	t.write(&m, title)
	m.end("figure")
	m.line()
	return m.String()
}

// write adds the table, closed at first. Without rows it adds nothing.
func (t table) write(m *markup, title string) {
	if len(t.rows) == 0 {
		return
	}
	m.begin("details", "class", "more")
	m.element("summary", "Numbers")
	m.begin("div", "class", "scroll", "role", "region", "aria-label", title+", as a table", "tabindex", "0")
	m.begin("table", "class", "rows")
	m.begin("thead")
	m.begin("tr")
	for _, h := range t.head {
		m.element("th", h, "scope", "col")
	}
	m.end("tr", "thead")
	m.begin("tbody")
	m.line()
	for _, r := range t.rows {
		m.begin("tr")
		if r.at.IsZero() {
			m.element("th", r.name, "scope", "row")
		} else {
			m.begin("th", "scope", "row")
			m.element("time", read(r.at), "datetime", machine(r.at), "title", machine(r.at))
			m.end("th")
		}
		for _, cell := range r.cells {
			m.element("td", cell, "class", "num")
		}
		m.end("tr")
		m.line()
	}
	m.end("tbody", "table", "div", "details")
	m.line()
}
