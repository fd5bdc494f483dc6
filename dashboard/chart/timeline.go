package chart

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/duration"
)

// Timeline shows the history of one thing on an axis of time: a job that waits,
// runs, and waits again.
type Timeline struct {
	Title string // what is shown: "Attempts of job 42"
	Now   time.Time
	Lanes []Lane
}

// Lane is a part that is shown in a line of its own, such as an attempt.
type Lane struct {
	Name     string // at the left, where there is room for a few characters: "1"
	Segments []Segment
}

// Segment is something that took a while.
type Segment struct {
	Name  string // what it was: "waiting", "running"; in the legend too
	Class Class  // Own is by the place of its name among those of the timeline
	From  time.Time
	To    time.Time // zero while it goes on
	Note  string    // what else is to be said of it: "failed: no such host"; empty for nothing
}

// The measures of a lane in pixels.
const (
	laneHeight = 20
	laneBar    = 12
)

// SVG is the picture.
func (c Timeline) SVG() string {
	var m markup
	bottom := plotTop + max(len(c.Lanes), 1)*laneHeight
	m.begin("svg", "class", "plot timeline", "role", "img", "aria-label", c.summary(), "width", "100%", "height", bottom+labels, "overflow", "visible")
	m.line()
	m.begin("line", "class", "grid", "x1", "0", "x2", "100%", "y1", bottom, "y2", bottom)
	m.end("line")
	m.axis(c.span(), bottom)
	for i, lane := range c.Lanes {
		y := plotTop + i*laneHeight
		m.element("text", cut(lane.Name, 6), "class", "tick", "x", -apart, "y", y+laneBar/2, "dy", ".32em", "text-anchor", "end")
		m.line()
		for _, s := range lane.Segments {
			c.segment(&m, s, y)
		}
	}
	if len(c.Lanes) == 0 {
		m.element("text", "nothing happened yet", "class", "none", "x", "50%", "y", plotTop+laneBar, "text-anchor", "middle")
	}
	m.end("svg")
	return m.String()
}

// segment draws one, wide enough to be seen.
func (c Timeline) segment(m *markup, s Segment, y int) {
	left := 100 * c.span().share(s.From)
	width := max(100*c.span().share(c.end(s))-left, .4)
	left = min(left, 100-width)
	m.begin("g", "class", "segment")
	m.element("title", c.says(s), "data-time", machine(s.From))
	m.begin("rect", "class", c.class(s), "x", percent(left), "y", y, "width", percent(width), "height", laneBar, "rx", "1")
	m.end("rect", "g")
	m.line()
}

// end is when a segment ended, or how far it is.
func (c Timeline) end(s Segment) time.Time {
	if s.To.IsZero() {
		return c.Now
	}
	return s.To
}

// span is all that is shown.
func (c Timeline) span() span {
	var all span
	for _, lane := range c.Lanes {
		for _, s := range lane.Segments {
			if all.from.IsZero() || s.From.Before(all.from) {
				all.from = s.From
			}
			if end := c.end(s); end.After(all.to) {
				all.to = end
			}
		}
	}
	return all
}

// names are those of the segments, each once, in the order in which they come.
func (c Timeline) names() []Segment {
	var firsts []Segment
	for _, lane := range c.Lanes {
		for _, s := range lane.Segments {
			if !slices.ContainsFunc(firsts, func(f Segment) bool { return f.Name == s.Name }) {
				firsts = append(firsts, s)
			}
		}
	}
	return firsts
}

func (c Timeline) class(s Segment) string {
	return s.Class.at(slices.IndexFunc(c.names(), func(first Segment) bool { return first.Name == s.Name }))
}

// says returns the tooltip of a segment: its beginning, what it was and how long, and its note.
func (c Timeline) says(s Segment) string {
	lines := []string{read(s.From), s.Name + " " + c.took(s)}
	if s.Note != "" {
		lines = append(lines, s.Note)
	}
	return strings.Join(lines, "\n")
}

func (c Timeline) took(s Segment) string {
	if s.To.IsZero() {
		return "for " + duration.Format(max(c.Now.Sub(s.From), 0)) + " so far"
	}
	return "for " + duration.Format(s.To.Sub(s.From))
}

// summary describes the picture in a sentence, for screen readers.
func (c Timeline) summary() string {
	if len(c.Lanes) == 0 {
		return c.Title + ": nothing happened yet"
	}
	var lanes []string
	for _, lane := range c.Lanes {
		var parts []string
		for _, s := range lane.Segments {
			parts = append(parts, s.Name+" "+c.took(s))
		}
		lanes = append(lanes, lane.Name+" "+strings.Join(parts, ", "))
	}
	return fmt.Sprintf("%s, from %s to %s: %s", c.Title, read(c.span().from), read(c.span().to), some(lanes))
}
