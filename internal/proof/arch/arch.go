// Package arch keeps the import arrows of the module pointing one way.
//
// Every package has a rank, and imports packages of lower ranks only: see the table in
// rules.go.
//
// So packages of the same rank know nothing of each other: client, engine and dashboard meet in the store, which is
// what makes one process and a fleet the same program. Test files are not checked and may look sideways.
//
// The rules are checked by parsing the sources. Asking the go command instead would be shorter and wrong: a test that
// runs another program is served from the test cache when only the tree has changed.
package arch

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Import is one arrow: a production file of a package imports a path.
type Import struct {
	Package string // directory below the root of the module; "." is the root
	Path    string // the import path as written
	Pos     token.Position
}

// Violation is an import, or a package, that the rules do not allow.
type Violation struct {
	Pos    token.Position
	Reason string
}

func (v Violation) String() string { return fmt.Sprintf("%v: %s", v.Pos, v.Reason) }

// Check reports everything in a tree that the rules do not allow, in the order of the files.
func Check(tree fs.FS) ([]Violation, error) {
	imports, err := Imports(tree)
	if err != nil {
		return nil, err
	}
	var violations []Violation
	unknown := map[string]bool{}
	for _, i := range imports {
		if _, ok := rank(i.Package); !ok {
			if !unknown[i.Package] {
				unknown[i.Package] = true
				violations = append(violations, Violation{i.Pos, unranked(i.Package)})
			}
			continue
		}
		for _, rule := range rules {
			if reason := rule(i); reason != "" {
				violations = append(violations, Violation{i.Pos, reason})
			}
		}
	}
	return violations, nil
}

func unranked(pkg string) string {
	return fmt.Sprintf("the package %s has no rank: add it to the table in internal/proof/arch/rules.go", pkg)
}

// Imports returns the imports of all production files of the module at the root of a tree. A file without imports
// counts as one that imports nothing, so that its package is known. Directories that the go command ignores are
// left out, and so are modules of their own.
func Imports(tree fs.FS) ([]Import, error) {
	var imports []Import
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if ignored(tree, name) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		found, err := importsOf(tree, name)
		imports = append(imports, found...)
		return err
	})
	return imports, err
}

func ignored(tree fs.FS, dir string) bool {
	if dir == "." {
		return false
	}
	base := path.Base(dir)
	if base == "testdata" || base == "vendor" || base[0] == '.' || base[0] == '_' {
		return true
	}
	_, err := fs.Stat(tree, path.Join(dir, "go.mod"))
	return err == nil
}

func importsOf(tree fs.FS, name string) ([]Import, error) {
	source, err := fs.ReadFile(tree, name)
	if err != nil {
		return nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	pkg := path.Dir(name)
	if len(file.Imports) == 0 {
		return []Import{{Package: pkg, Pos: files.Position(file.Package)}}, nil
	}
	var imports []Import
	for _, spec := range file.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		imports = append(imports, Import{pkg, target, files.Position(spec.Pos())})
	}
	return imports, nil
}

// Reach returns the packages of the module that a program links which imports some of them, these included.
func Reach(imports []Import, from ...string) []string {
	arrows := map[string][]string{}
	for _, i := range imports {
		if target, ok := inModule(i.Path); ok {
			arrows[i.Package] = append(arrows[i.Package], target)
		}
	}
	reached := slices.Clone(from)
	for n := 0; n < len(reached); n++ {
		for _, target := range arrows[reached[n]] {
			if !slices.Contains(reached, target) {
				reached = append(reached, target)
			}
		}
	}
	slices.Sort(reached)
	return reached
}

// inModule returns the package of this module that an import path names, if it names one.
func inModule(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// within says whether an import path is one of the given ones or lies below one of them.
func within(importPath string, roots ...string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return importPath == root || strings.HasPrefix(importPath, root+"/")
	})
}
