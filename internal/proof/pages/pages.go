// Package pages reads the pages that say which test proves what, and the names
// of the tests that there are, so that no page goes on naming what was renamed
// or taken out. It is for tests; those of docs/features.md and docs/design/proof.md
// are its own, that of docs/design/traps.md is in package mutants.
//
// Tests are found by parsing the sources. A test that asked the go command would
// be served from the test cache when only other packages have changed.
package pages

import "strings"

// Rows are the rows of those tables of a page whose first column has the
// heading, cell by cell. A row that is a heading between others, in bold, is
// left out. Within a cell a stroke is written \|.
func Rows(text, heading string) [][]string {
	var rows [][]string
	within := false
	for line := range strings.Lines(text) {
		text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(line), "|"), "|")
		cells := strings.Split(strings.ReplaceAll(text, `\|`, "\x00"), "|")
		for i := range cells {
			cells[i] = strings.ReplaceAll(strings.TrimSpace(cells[i]), "\x00", "|")
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			within = false
		case cells[0] == heading:
			within = true
		case !within, strings.HasPrefix(line, "|---"), strings.HasPrefix(cells[0], "**"):
		default:
			rows = append(rows, cells)
		}
	}
	return rows
}
