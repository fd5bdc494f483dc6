// Package pages reads the pages that say which test proves what, and the names
// of the tests that there are, so that no page goes on naming what was renamed
// or taken out. It is for tests; those of docs/features.md and docs/design/proof.md
// are its own, that of docs/design/traps.md is in package mutants.
//
// Tests are found by parsing the sources. A test that asked the go command would
// be served from the test cache when only other packages have changed.
package pages

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

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

// Names are words that stand in sources.
type Names struct {
	Funcs map[string]bool // of tests, examples and fuzz targets
	Words map[string]bool // string literals: what parts of tests are called
}

// Has reports whether a test may be called so, or a part of one.
func (n Names) Has(name string) bool { return n.Funcs[name] || n.Words[name] }

// NamesIn reads Go files.
func NamesIn(files ...string) (Names, error) {
	n := Names{Funcs: map[string]bool{}, Words: map[string]bool{}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return n, err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		if err != nil {
			return n, err
		}
		ast.Inspect(f, n.see)
	}
	return n, nil
}

func (n Names) see(node ast.Node) bool {
	switch x := node.(type) {
	case *ast.FuncDecl:
		name := x.Name.Name
		if x.Recv == nil && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Example") || strings.HasPrefix(name, "Fuzz")) {
			n.Funcs[name] = true
		}
	case *ast.BasicLit:
		if word, err := strconv.Unquote(x.Value); x.Kind == token.STRING && err == nil {
			n.Words[word] = true
		}
	}
	return true
}

// TestsOf are the names in the test files of a package, given by its directory
// below the root. A package that runs the conformance suite has the suite's
// too, and so has the suite's own.
func TestsOf(root, pkg string) (Names, error) {
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		return Names{}, err
	}
	if len(files) == 0 {
		return Names{}, fmt.Errorf("package %s has no tests", pkg)
	}
	n, err := NamesIn(files...)
	if err != nil || !n.Funcs["TestConformance"] && pkg != "storetest" {
		return n, err
	}
	suite, err := filepath.Glob(filepath.Join(root, "storetest", "*.go"))
	if err != nil {
		return n, err
	}
	return NamesIn(append(files, suite...)...)
}
