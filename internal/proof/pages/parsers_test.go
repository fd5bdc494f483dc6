package pages

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// parsing is what functions are called that read texts from outside.
var parsing = regexp.MustCompile(`^([pP]arse|[dD]ecode|UnmarshalText$|UnmarshalJSON$)`)

// TestEachParserHasItsFuzzTarget holds docs/design/parsers.md against the
// sources: what reads texts is on it, and what it names is there.
func TestEachParserHasItsFuzzTarget(t *testing.T) {
	text, err := os.ReadFile("../../../docs/design/parsers.md")
	if err != nil {
		t.Fatal(err)
	}
	parsers, targets := map[string]bool{}, map[string]bool{}
	quoted := regexp.MustCompile("`([^`]+)`")
	for _, row := range Rows(string(text), "reads") {
		if len(row) != 4 {
			t.Fatalf("%d cells, want 4: %q", len(row), row)
		}
		for _, q := range quoted.FindAllStringSubmatch(row[1], -1) {
			parsers[q[1]] = true
		}
		for _, q := range quoted.FindAllStringSubmatch(row[2], -1) {
			targets[q[1]] = true
		}
		if !strings.Contains(row[2], "`Fuzz") && !strings.Contains(row[2], ".Fuzz") && !strings.HasPrefix(row[2], "none: ") {
			t.Errorf("%s has no target, and no reason", row[0])
		}
	}
	there := map[string]bool{}
	walkFuncs(t, func(pkg, file string, f *ast.FuncDecl) {
		name := pkg + "." + receiver(f) + f.Name.Name
		test := strings.HasSuffix(file, "_test.go")
		there[name] = true
		switch {
		case test && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") && !targets[name]:
			t.Errorf("the page does not name the target %s", name)
		case !test && (parsing.MatchString(f.Name.Name) || sets(f)) && !parsers[name]:
			t.Errorf("the page does not name %s, which reads texts: %s", name, file)
		}
	})
	for _, names := range []map[string]bool{parsers, targets} {
		for name := range names {
			if !there[name] {
				t.Errorf("the page names %s, which is not there", name)
			}
		}
	}
}

// sets reports whether it is how a flag reads its value.
func sets(f *ast.FuncDecl) bool {
	if f.Name.Name != "Set" || f.Recv == nil || len(f.Type.Params.List) != 1 || f.Type.Results == nil || len(f.Type.Results.List) != 1 {
		return false
	}
	kind, ok := f.Type.Params.List[0].Type.(*ast.Ident)
	return ok && kind.Name == "string"
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	x := f.Recv.List[0].Type
	if star, ok := x.(*ast.StarExpr); ok {
		x = star.X
	}
	if generic, ok := x.(*ast.IndexExpr); ok {
		x = generic.X
	}
	if name, ok := x.(*ast.Ident); ok {
		return name.Name + "."
	}
	return ""
}

// walkFuncs visits the functions of the module, but for what measures others,
// which are modules of their own.
func walkFuncs(t *testing.T, visit func(pkg, file string, f *ast.FuncDecl)) {
	t.Helper()
	root := "../../.."
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bench" || name == "bin" || name == "tools") {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(rel)
		if pkg == "." {
			pkg = "stint"
		}
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok {
				visit(pkg, path, f)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
