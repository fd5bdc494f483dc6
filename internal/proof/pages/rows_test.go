package pages

import (
	"strings"
	"testing"
)

// FuzzRows makes sure that the rows of a table are those that were written.
func FuzzRows(f *testing.F) {
	f.Add("a", "`b|c`", "x")
	f.Add("", " d ", "|")
	f.Add("-", "**", "\x00")
	f.Fuzz(func(t *testing.T, a, b, before string) {
		clean := func(s string) bool {
			return s == strings.TrimSpace(s) && !strings.ContainsAny(s, "\n\x00\\") && !strings.HasPrefix(s, "**") && !strings.HasPrefix(s, "-")
		}
		if !clean(a) || !clean(b) || a == "heading" || strings.ContainsAny(before, "|") {
			return
		}
		cell := func(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
		text := before + "\n\n| heading | other |\n|---|---|\n| **between** | |\n| " + cell(a) + " | " + cell(b) + " |\n\n| other | b |\n|---|---|\n| " + cell(a) + " | x |\n"
		rows := Rows(text, "heading")
		if len(rows) != 1 || len(rows[0]) != 2 || rows[0][0] != a || rows[0][1] != b {
			t.Errorf("%q is read as %q", text, rows)
		}
	})
}
