package pages

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// Written compares a page with what a test makes of the sources, or writes it. How is the command that writes it, which the
// page names after its title.
func Written(t testing.TB, file, want string, write bool, how string) {
	t.Helper()
	title, rest, _ := strings.Cut(want, "\n\n")
	want = title + "\n\n<!-- Written by " + how + ": do not edit. -->\n\n" + rest
	if write {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	is, wanted := strings.Split(string(got), "\n"), strings.Split(want, "\n")
	for i := range max(len(is), len(wanted)) {
		if i >= len(is) || i >= len(wanted) || is[i] != wanted[i] {
			t.Errorf("%s is out of date from line %d on; this writes it:\n%s", file, i+1, how)
			return
		}
	}
}

// code is what stands in a text for people and is code: flags and environment variables.
var code = regexp.MustCompile("`[^`]*`|stint(?: [a-z-]+)+ --help|--[a-z][a-z-]*(?:=[^\\s,;:)]+)?|\\bSTINT_[A-Z_]+\\b")

// Prose is a text for a terminal as Markdown: flags and variables are code, and so are lines that are indented.
func Prose(text string) string {
	var out strings.Builder
	within := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != within && line != "" {
			out.WriteString("```" + map[bool]string{true: "text"}[indented] + "\n")
			if within = indented; !within {
				out.WriteString("\n")
			}
		}
		if within {
			out.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		} else {
			out.WriteString(inProse(line) + "\n")
		}
	}
	if within {
		out.WriteString("```\n")
	}
	return strings.ReplaceAll(out.String(), "\n\n```\n", "\n```\n")
}

func inProse(text string) string {
	var out strings.Builder
	end := 0
	plain := strings.NewReplacer("*", `\*`, "<", `\<`)
	for _, at := range code.FindAllStringIndex(text, -1) {
		out.WriteString(plain.Replace(text[end:at[0]]) + "`" + strings.Trim(text[at[0]:at[1]], "`") + "`")
		end = at[1]
	}
	out.WriteString(plain.Replace(text[end:]))
	return out.String()
}

// Table is a table of Markdown, whose first row has the headings; cells are Markdown. A column without cells is left out.
func Table(rows ...[]string) string {
	var out strings.Builder
	for i, cells := range rows {
		line, under := "|", "|"
		for column, cell := range cells {
			if slices.ContainsFunc(rows[1:], func(row []string) bool { return row[column] != "" }) {
				line += " " + strings.ReplaceAll(strings.ReplaceAll(cell, "\n", " "), "|", `\|`) + " |"
				under += "---|"
			}
		}
		out.WriteString(line + "\n")
		if i == 0 {
			out.WriteString(under + "\n")
		}
	}
	return out.String()
}

// Link leads to a heading of the same page.
func Link(text, title string) string { return "[" + text + "](#" + Anchor(title) + ")" }

// Anchor is how a heading is linked to.
func Anchor(title string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, strings.ReplaceAll(title, "`", ""))
}
