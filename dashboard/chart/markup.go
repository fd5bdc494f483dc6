package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
	"unicode"
)

// markup collects SVG or HTML. It escapes all values and texts.
type markup struct{ b strings.Builder }

// percent is a coordinate that follows the width of a picture.
type percent float64

func (p percent) String() string { return coordinate(float64(p)) + "%" }

// coordinate is a number as exact as eyes are.
func coordinate(v float64) string { return strconv.FormatFloat(rounded(v, 2), 'f', -1, 64) }

// begin opens an element. Its attributes are names and values in turn: strings, coordinates, or numbers of pixels. One
// that is an empty string is left out.
func (m *markup) begin(name string, attributes ...any) {
	m.b.WriteString("<" + name)
	for i := 0; i < len(attributes); i += 2 {
		var value string
		switch v := attributes[i+1].(type) {
		case string:
			value = escaped(v)
		case percent:
			value = v.String()
		case float64:
			value = coordinate(v)
		case int:
			value = strconv.Itoa(v)
		default:
			panic("an attribute has a value that cannot be written")
		}
		if value != "" {
			m.b.WriteString(" " + attributes[i].(string) + `="` + value + `"`)
		}
	}
	m.b.WriteString(">")
}

// end closes elements, the innermost first.
func (m *markup) end(names ...string) {
	for _, name := range names {
		m.b.WriteString("</" + name + ">")
	}
}

// line ends a line of the source.
func (m *markup) line() { m.b.WriteByte('\n') }

// element writes an element with a text.
func (m *markup) element(name, text string, attributes ...any) {
	m.begin(name, attributes...)
	m.b.WriteString(escaped(text))
	m.end(name)
}

// raw adds text that is markup already.
func (m *markup) raw(text string) { m.b.WriteString(text) }

func (m *markup) String() string { return m.b.String() }

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
