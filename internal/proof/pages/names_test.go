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

// goName is a name of a package in a text: `stint.Delay`, `engine.Config.Slots`, `client.With(…)` of a variable not.
var goName = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)(?:\\.([A-Z]\\w*))?[^`]*`")

// exported are the names that packages export, by the packages' names: functions, types, variables and constants, and
// the methods and fields of types after a dot. A type has one with nothing after the dot, too.
func exported(t *testing.T) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || rel == "internal" || rel == "bench" || rel == "examples" || rel == "tools" || rel == "docs"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		names := all[file.Name.Name]
		if names == nil {
			names = map[string]bool{}
			all[file.Name.Name] = names
		}
		for _, decl := range file.Decls {
			declared(decl, names)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func declared(decl ast.Decl, names map[string]bool) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			names[d.Name.Name] = true
			return
		}
		of := d.Recv.List[0].Type
		if star, ok := of.(*ast.StarExpr); ok {
			of = star.X
		}
		switch generic := of.(type) {
		case *ast.IndexExpr:
			of = generic.X
		case *ast.IndexListExpr:
			of = generic.X
		}
		names[of.(*ast.Ident).Name+"."+d.Name.Name] = true
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names[name.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name], names[s.Name.Name+"."] = true, true
				var fields *ast.FieldList
				switch of := s.Type.(type) {
				case *ast.StructType:
					fields = of.Fields
				case *ast.InterfaceType:
					fields = of.Methods
				}
				if fields != nil {
					for _, field := range fields.List {
						for _, name := range field.Names {
							names[s.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
		}
	}
}

// unknown is the first name in a text that its package does not export, or empty. Packages of others are not known.
func unknown(text string, all map[string]map[string]bool) string {
	for _, m := range goName.FindAllStringSubmatch(text, -1) {
		names, ours := all[m[1]]
		if !ours {
			continue
		}
		if !names[m[2]] {
			return m[1] + "." + m[2]
		}
		if isType := names[m[2]+"."]; m[3] != "" && isType && !names[m[2]+"."+m[3]] {
			return m[1] + "." + m[2] + "." + m[3]
		}
	}
	return ""
}

// Each Go name in the texts of the pages is there.
func TestTheGoNamesOfThePagesAreThere(t *testing.T) {
	all := exported(t)
	for _, page := range globbed(t, "*.md", "docs/*.md", "docs/guide/*.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if name := unknown(line, all); name != "" {
				t.Errorf("%s names %s, which there is not: %s", filepath.Base(page), name, strings.TrimSpace(line))
			}
		}
	}
}

func TestANameThatThereIsNotIsFound(t *testing.T) {
	all := exported(t)
	for text, want := range map[string]string{
		"see `stint.Delay` and `engine.Config.Slots`":   "",
		"see `postgres.OpenPool`":                       "postgres.OpenPool",
		"see `engine.Config.Slot`":                      "engine.Config.Slot",
		"`stint.Client.With(tx)` and `bank.Charge`":     "",
		"`stint.Retry(retry.None())`":                   "",
		"`store.Inspector.Counts`, `stint.Mux.Limit`":   "",
		"`stint.Mux.Limits2`":                           "stint.Mux.Limits2",
		"`report.Of(kind)` of a variable called report": "report.Of",
	} {
		if got := unknown(text, all); got != want {
			t.Errorf("%s: %q is unknown, want %q", text, got, want)
		}
	}
}
