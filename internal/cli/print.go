package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stint-go/stint/internal/words"
)

// printJSON writes one indented value. A list without elements is [], not null.
func (a *app) printJSON(v any) error {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := a.out.Write(plainJSON(b.Bytes()))
	return err
}

// plainJSON replaces the escapes of <, > and & in JSON, which programs write for web
// pages, by the characters.
func plainJSON(raw []byte) []byte {
	return webEscapes.ReplaceAllFunc(raw, func(escape []byte) []byte {
		if len(escape) == 2 {
			return escape
		}
		n, _ := strconv.ParseUint(string(escape[2:]), 16, 8)
		return []byte{byte(n)}
	})
}

// webEscapes are the escapes of <, > and &. Other escapes match too, so that the second
// backslash of \\ never counts as the first one of an escape.
var webEscapes = regexp.MustCompile(`\\u00(?:3[cCeE]|26)|\\.`)

// newTable is a table without lines: easy to read and to cut up by tools.
func newTable(w io.Writer, head ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	if len(head) > 0 {
		t.AppendHeader(head)
	}
	return t
}

// moment shows an instant in local time.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000 -07:00")
}

// indent indents every line of a text by a margin.
func indent(s, margin string) string {
	s = strings.TrimRight(words.Visible(s), "\n")
	return margin + strings.ReplaceAll(s, "\n", "\n"+margin)
}
