package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stint-go/stint/retry"
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

// visible shows control characters instead of sending them to a terminal:
// names and outputs come from anywhere. Newlines and tabs stay.
func visible(s string) string {
	if !strings.ContainsFunc(s, isHidden) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if isHidden(r) {
			fmt.Fprintf(&b, `\x%02x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func isHidden(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// moment shows an instant in local time.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000 -07:00")
}

// ago says how long ago or how soon an instant is, roughly. The instant is the
// database's, so a second of difference is no news.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	switch d := now.Sub(t); {
	case d >= time.Second:
		return rough(d) + " ago"
	case d <= -time.Second:
		return "in " + rough(-d)
	}
	return "now"
}

// rough is a duration in its two largest units at most.
func rough(d time.Duration) string {
	for _, unit := range []time.Duration{24 * time.Hour, time.Hour, time.Minute, time.Second} {
		if d >= 10*unit {
			return retry.FormatDuration(d.Truncate(unit))
		}
	}
	return d.Round(100 * time.Millisecond).String()
}

// took shows how long something took, in three digits or so.
func took(d time.Duration) string {
	for _, unit := range []time.Duration{time.Minute, time.Second, time.Millisecond, time.Microsecond} {
		if d >= 100*unit {
			return d.Round(unit).String()
		}
		if d >= unit {
			return d.Round(unit / 100).String()
		}
	}
	return d.String()
}

// count groups digits: 1,234,567.
func count[N int | int64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted is a number of things.
func counted[N int | int64](n N, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return count(n) + " " + thing
}

// listed reads names as people say them: a, b and c.
func listed(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// indent puts every line of a text behind a margin.
func indent(s, margin string) string {
	s = strings.TrimRight(visible(s), "\n")
	return margin + strings.ReplaceAll(s, "\n", "\n"+margin)
}
