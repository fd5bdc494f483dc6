package mutants

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// names are words that stand in sources: of test functions, and string
// literals.
type names map[string]bool

// testsOf collects what a package's tests and their parts may be called.
func testsOf(t *testing.T, pkg string) names {
	t.Helper()
	all := names{}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("package %s has no tests: %v", pkg, err)
	}
	for _, file := range files {
		all.read(t, file)
	}
	if all["TestConformance"] {
		suite, err := filepath.Glob(filepath.Join(root, "storetest/*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range suite {
			all.read(t, file)
		}
	}
	return all
}

// read adds the names of one file.
func (n names) read(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.FuncDecl:
			if strings.HasPrefix(x.Name.Name, "Test") && x.Recv == nil {
				n[x.Name.Name] = true
			}
		case *ast.BasicLit:
			if word, err := strconv.Unquote(x.Value); x.Kind == token.STRING && err == nil {
				n[word] = true
			}
		}
		return true
	})
}
