// Package chart draws the charts of a dashboard as SVG: values over time, a
// sparkline, a ranking in bars, the history of things on an axis of time, and a graph of what needs what.
//
// A chart is a struct. SVG returns the picture alone; Figure returns HTML: the picture
// with its title, its legend and a table of its numbers. Both are safe to put into a
// page: names are escaped.
//
// The style sheet of the page colours classes: s1 to s8 for series, and ok, bad, warn
// and muted for meanings. There are no inline styles, so pages may forbid them. A
// picture is as wide as the page allows, and its text keeps its size. The labels of a
// vertical axis stand left of the picture, where the style sheet leaves a margin.
//
// Times are in UTC. An element that shows one has the attribute data-time, so that a
// script can write it in the reader's zone.
package chart

import (
	"fmt"
	"time"
)

// Class is the class that the style sheet colours.
type Class string

// Classes with a meaning.
const (
	Own   Class = "" // one of s1 to s8, by its place in the chart
	OK    Class = "ok"
	Bad   Class = "bad"
	Warn  Class = "warn"
	Muted Class = "muted"
)

// at is the class of what stands at a place.
func (c Class) at(place int) string {
	if c == Own {
		return fmt.Sprintf("s%d", place%8+1)
	}
	return string(c)
}

// key is a line of a legend.
type key struct{ name, class string }

// row is a line of a table of numbers. It begins with an instant, if it has one.
type row struct {
	at    time.Time
	link  string // where its instant leads to; may be empty
	cells []string
}

// figure writes a picture with its title, legend and table, which is closed at first. One without rows is left out.
func figure(title string, legend []key, svg string, head []string, rows []row) string {
	return figureWith(title, "Numbers", legend, svg, head, rows)
}

// figureWith is a figure whose table has a name of its own.
func figureWith(title, table string, legend []key, svg string, head []string, rows []row) string {
	var m markup
	m.begin("figure", "class", "chart")
	m.element("figcaption", title)
	if len(legend) > 0 {
		m.begin("ul", "class", "legend")
		for _, k := range legend {
			m.element("li", k.name, "class", k.class)
		}
		m.end("ul")
	}
	m.WriteString(svg)
	if len(rows) > 0 {
		m.begin("details", "class", "more")
		m.element("summary", table)
		m.begin("div", "class", "scroll", "role", "region", "aria-label", title+", as a table", "tabindex", 0)
		m.begin("table", "class", "rows")
		m.begin("thead")
		m.begin("tr")
		for _, h := range head {
			m.element("th", h, "scope", "col")
		}
		m.end("tr", "thead")
		m.begin("tbody")
		for _, r := range rows {
			r.write(&m)
		}
		m.end("tbody", "table", "div", "details")
	}
	m.end("figure")
	return m.String()
}

func (r row) write(m *markup) {
	m.begin("tr")
	cells := r.cells
	m.begin("th", "scope", "row")
	if r.at.IsZero() {
		m.WriteString(escaped(cells[0]))
		cells = cells[1:]
	} else {
		m.link(r.link)
		m.element("time", read(r.at), "datetime", machine(r.at), "title", machine(r.at))
		m.endLink(r.link)
	}
	m.end("th")
	for _, cell := range cells {
		m.element("td", cell, "class", "num")
	}
	m.end("tr")
}
