package main

import (
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stint-go/stint/internal/words"
)

// printJSON writes one indented value.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

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

// indent puts every line of a text behind a margin.
func indent(s, margin string) string {
	s = strings.TrimRight(words.Visible(s), "\n")
	return margin + strings.ReplaceAll(s, "\n", "\n"+margin)
}
