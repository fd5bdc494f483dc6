package chart

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/words"
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
	Title    string // above it, where there is room for more; empty for nothing
	Link     string // where the title leads; empty for nowhere
	Segments []Segment
}

// Segment is something that took a while.
type Segment struct {
	Name  string // what it was: "waiting", "running"; in the legend too
	Class Class  // Own is by the place of its name among those of the timeline
	From  time.Time
	To    time.Time // zero while it goes on
	Note  string    // more about it: "failed: no such host"; empty for nothing
	Took  string    // what is said in place of how long it took, where that is not known; empty for how long
}

// The measures of a lane in pixels.
const (
	laneHeight = 20
	laneBar    = 12
	laneTitle  = 16 // more for a title
)

// titled reports whether lanes have titles.
func (c Timeline) titled() bool {
	return slices.ContainsFunc(c.Lanes, func(l Lane) bool { return l.Title != "" })
}

// SVG is the picture.
func (c Timeline) SVG() string {
	var m markup
	all, legend := c.span(), c.legend()
	height, above := laneHeight, 0
	if c.titled() {
		height, above = height+laneTitle, laneTitle
	}
	bottom := plotTop + max(len(c.Lanes), 1)*height
	if above == 0 {
		m.picture("plot timeline", "img", c.summary(all), bottom+labels)
	} else { // what leads somewhere is no part of an image
		m.begin("svg", "class", "plot timeline", "role", "group", "aria-label", c.summary(all), "width", "100%", "height", bottom+labels)
	}
	m.grid(0, 100, float64(bottom), float64(bottom))
	m.axis(all, float64(bottom))
	for i, lane := range c.Lanes {
		y := plotTop + i*height + above
		if lane.Title != "" {
			m.link(lane.Link)
			m.element("text", cut(lane.Title, fits+10), "class", "name", "x", 0, "y", y-4)
			m.endLink(lane.Link)
		}
		if lane.Name != "" {
			m.label(cut(lane.Name, 6), float64(y+laneBar/2))
		}
		for _, s := range lane.Segments {
			left := 100 * all.share(s.From)
			width := max(100*all.share(c.end(s))-left, .4) // wide enough to be seen
			m.begin("g", "class", "segment")
			m.element("title", strings.TrimSuffix(read(s.From)+"\n"+s.Name+" "+c.took(s)+"\n"+s.Note, "\n"), "data-time", machine(s.From))
			m.element("rect", "", "class", classIn(legend, s), "x", percent(min(left, 100-width)), "y", y,
				"width", percent(width), "height", laneBar, "rx", 1)
			m.end("g")
		}
	}
	if len(c.Lanes) == 0 {
		m.nothing("nothing happened yet", plotTop+laneBar)
	}
	m.end("svg")
	return m.String()
}

// Figure is the picture with its title, its legend and a table of its segments, as HTML.
func (c Timeline) Figure() string {
	var rows []row
	for _, lane := range c.Lanes {
		for _, s := range lane.Segments {
			rows = append(rows, row{at: s.From, cells: []string{cmp.Or(lane.Title, lane.Name), s.Name, c.took(s), s.Note}})
		}
	}
	return figure(c.Title, c.legend(), c.SVG(), []string{"From", "Part", "What", "How long", "More"}, rows)
}

// end is when a segment ended, or how far it is.
func (c Timeline) end(s Segment) time.Time {
	if s.To.IsZero() {
		return c.Now
	}
	return s.To
}

// span is all that is shown.
func (c Timeline) span() (all span) {
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

// legend has the names of the segments, each once, in the order in which they come.
func (c Timeline) legend() (all []key) {
	for _, lane := range c.Lanes {
		for _, s := range lane.Segments {
			if !slices.ContainsFunc(all, func(k key) bool { return k.name == s.Name }) {
				all = append(all, key{s.Name, s.Class.at(len(all))})
			}
		}
	}
	return all
}

// classIn returns the class of a segment: that of the legend, unless it has its own.
func classIn(legend []key, s Segment) string {
	return s.Class.at(slices.IndexFunc(legend, func(k key) bool { return k.name == s.Name }))
}

func (c Timeline) took(s Segment) string {
	if s.Took != "" {
		return s.Took
	}
	text := "for " + words.Took(max(c.end(s).Sub(s.From), 0))
	if s.To.IsZero() {
		text += " so far"
	}
	return text
}

// summary describes the picture in a sentence, for screen readers.
func (c Timeline) summary(all span) string {
	if len(c.Lanes) == 0 {
		return c.Title + ": nothing happened yet"
	}
	var lanes []string
	for _, lane := range c.Lanes {
		var parts []string
		for _, s := range lane.Segments {
			parts = append(parts, s.Name+" "+c.took(s))
		}
		lanes = append(lanes, cmp.Or(lane.Title, lane.Name)+" "+strings.Join(parts, ", "))
	}
	return c.Title + ", from " + read(all.from) + " to " + read(all.to) + ": " + some(lanes)
}
