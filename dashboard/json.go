package dashboard

import (
	"bytes"
	"encoding/json"
	"html"
	"html/template"
	"strings"

	"github.com/stint-go/stint/internal/words"
)

// marked shows JSON on lines of their own, with keys, strings, numbers, booleans
// and null told apart. Numbers stay as they were written, however large. What is
// no JSON is shown as it is.
func marked(raw json.RawMessage) template.HTML {
	var pretty bytes.Buffer
	if json.Indent(&pretty, raw, "", "  ") != nil {
		return template.HTML(html.EscapeString(words.Visible(string(raw))))
	}
	var out strings.Builder
	span := func(class, text string) {
		out.WriteString(`<span class="` + class + `">` + html.EscapeString(words.Visible(text)) + `</span>`)
	}
	for text := pretty.String(); text != ""; {
		n := 1
		switch c := text[0]; {
		case c == '"':
			n = stringEnd(text)
			if strings.HasPrefix(text[n:], ":") {
				span("k", text[:n])
			} else {
				span("s", text[:n])
			}
		case c == 't' || c == 'f' || c == 'n':
			n = strings.IndexFunc(text+" ", func(r rune) bool { return r < 'a' || r > 'z' })
			span(map[bool]string{true: "z", false: "b"}[c == 'n'], text[:n])
		case c == '-' || '0' <= c && c <= '9':
			n = strings.IndexFunc(text+" ", func(r rune) bool { return !strings.ContainsRune("+-.eE0123456789", r) })
			span("n", text[:n])
		default:
			out.WriteByte(c) // space, or one of {}[]:,
		}
		text = text[n:]
	}
	return template.HTML(out.String())
}

// stringEnd is where the string ends that a JSON text begins with.
func stringEnd(text string) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
