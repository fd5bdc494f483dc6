package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/retry"
)

// printJSON writes one indented value. A list without elements is [], not null.
func (a *app) printJSON(v any) error {
	if list := reflect.ValueOf(v); list.Kind() == reflect.Slice && list.IsNil() {
		v = []any{}
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(plainJSON(raw), '\n'))
	return err
}

// plainJSON replaces the escapes of <, > and & by the characters. Programs write them for
// web pages.
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

// newTable is a table without lines: easy to read, and to split with tools.
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

// row are the cells of a line of a table. Strings are printed without control
// characters, durations in three digits, and int64s with commas.
type row []any

func addRow(t table.Writer, cells row) {
	shown := make([]any, len(cells))
	for i, cell := range cells {
		switch v := cell.(type) {
		case string:
			shown[i] = words.Visible(v)
		case time.Duration:
			shown[i] = words.Took(v)
		case int64:
			shown[i] = words.Count(v)
		default:
			shown[i] = v
		}
	}
	t.AppendRow(shown)
}

// printTable prints a line of each, or says that there are none.
func printTable[T any](a *app, all []T, none string, head row, line func(T) row) {
	if len(all) == 0 {
		a.note("%s", none)
		return
	}
	t := newTable(a.out, head...)
	for _, one := range all {
		addRow(t, line(one))
	}
	t.Render()
}

// details print the fields of one thing, a name and a value on each line.
type details struct {
	table.Writer
	now time.Time
}

func (a *app) newDetails(now time.Time) details { return details{newTable(a.out), now} }

// add adds a value, unless it is zero or empty. Of long JSON it shows the beginning.
func (d details) add(name string, value any) {
	text := ""
	switch v := value.(type) {
	case json.RawMessage:
		text = cut(string(plainJSON(v)), 2000)
	case []string:
		text = strings.Join(v, ", ")
	case time.Duration:
		if v > 0 {
			text = retry.FormatDuration(v)
		}
	case time.Time:
		if !v.IsZero() {
			text = moment(v) + " (" + words.Ago(v, d.now) + ")"
		}
	case int:
		if v != 0 {
			text = strconv.Itoa(v)
		}
	default:
		text = fmt.Sprint(v)
	}
	if text != "" {
		d.AppendRow([]any{"  " + name, words.Visible(text)})
	}
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Local().Format("2006-01-02 15:04:05.000 -07:00")
}

// cut shortens what would fill the screen; --json has all of it.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + fmt.Sprintf(" … (%s bytes, see --json)", words.Count(len(s)))
}

// indent indents every line of a text by a margin.
func indent(s, margin string) string {
	s = strings.TrimRight(words.Visible(s), "\n")
	return margin + strings.ReplaceAll(s, "\n", "\n"+margin)
}
