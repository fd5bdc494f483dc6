package chart

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// markup collects SVG or HTML. It escapes values and texts.
type markup struct{ strings.Builder }

// percent is a coordinate that follows the width of a picture.
type percent float64

func (p percent) String() string { return coordinate(float64(p)) + "%" }

// coordinate rounds a number to what eyes can tell apart.
func coordinate(v float64) string { return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64) }

// begin opens an element. Its attributes are names and values in turn: strings, coordinates, or numbers of pixels. One
// that is an empty string is left out.
func (m *markup) begin(name string, attributes ...any) {
	m.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		var value string
		switch v := attributes[i+1].(type) {
		case string:
			value = escaped(v)
		case float64:
			value = coordinate(v)
		default:
			value = fmt.Sprint(v)
		}
		if value != "" {
			m.WriteString(" " + attributes[i].(string) + `="` + value + `"`)
		}
	}
	m.WriteString(">")
}

// end closes elements, the innermost first.
func (m *markup) end(names ...string) {
	for _, name := range names {
		m.WriteString("</" + name + ">\n")
	}
}

// element writes an element with a text.
func (m *markup) element(name, text string, attributes ...any) {
	m.begin(name, attributes...)
	m.WriteString(escaped(text))
	m.end(name)
}

// The measures of a picture in pixels. Labels stand outside of the plot.
const (
	plotTop = 10
	labels  = 20 // height of those of the axis of time
	apart   = 8  // distance of a label from what it belongs to
)

// picture begins one that is as wide as the page allows. What it says is for screen readers.
func (m *markup) picture(class, role, says string, height int, more ...any) {
	m.begin("svg", append([]any{"class", class, "role", role, "aria-label", says, "width", "100%", "height", height}, more...)...)
}

// link begins what leads to an address; nothing for none.
func (m *markup) link(to string) {
	if to != "" {
		m.begin("a", "href", to)
	}
}

// aside begins what leads to an address, which keys reach elsewhere: a table beside it has the same.
func (m *markup) aside(to string) {
	if to != "" {
		m.begin("a", "href", to, "tabindex", -1)
	}
}

func (m *markup) endLink(to string) {
	if to != "" {
		m.end("a")
	}
}

// grid draws a line.
func (m *markup) grid(x1, x2 percent, y1, y2 float64) {
	m.element("line", "", "class", "grid", "x1", x1, "x2", x2, "y1", y1, "y2", y2)
}

// label stands left of the plot at a height.
func (m *markup) label(text string, y float64) {
	m.element("text", text, "class", "tick", "x", -apart, "y", y, "dy", ".32em", "text-anchor", "end")
}

// nothing says why a picture is empty.
func (m *markup) nothing(why string, y int) {
	m.element("text", why, "class", "none", "x", "50%", "y", y, "text-anchor", "middle")
}

// axis labels an axis of time that lies at a height.
func (m *markup) axis(s span, y float64) {
	marks := s.marks(7)
	if len(marks) > 0 && len(marks[0].label) > len("15:04:05") {
		marks = s.marks(4)
	}
	for i, mark := range marks {
		x, class := percent(100*s.share(mark.at)), "tick"
		if i%2 == 1 && len(mark.label) >= len("15:04:05") {
			class = "tick rare" // left out where there is little room
		}
		m.grid(x, x, y, y+4)
		m.element("text", mark.label, "class", class, "x", x, "y", y+labels-4, "text-anchor", "middle",
			"data-time", machine(mark.at), "data-shows", mark.shows)
	}
}

// escaped makes a text of any origin fit for elements and attributes, of HTML and of XML.
func escaped(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if r != '\n' && unicode.IsControl(r) || r >= 0xfffe && r&0xfffe == 0xfffe {
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, string(unicode.ReplacementChar))))
}

// some lists ten things and counts the others: a screen reader reads them aloud.
func some(things []string) string {
	if n := len(things) - 10; n > 0 {
		things = append(things[:10:10], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(things, "; ")
}

// cut shortens a name to a number of characters.
func cut(s string, runes int) string {
	if r := []rune(s); len(r) > runes {
		return string(r[:runes-1]) + "…"
	}
	return s
}
