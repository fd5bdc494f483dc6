package mutate

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Guard is one clause of the SQL in a file, and how to take it out.
type Guard struct {
	File  string // below the root of the module
	In    string // the object, constant or function that it stands in
	Text  string // what it says, and which of several that say the same
	edits []edit // of the file; none where the clause is put together from several texts
	at    int    // where it stands in a Go file
}

// Key tells a guard from all others.
func (g Guard) Key() string { return g.File + " " + g.In + " " + g.Text }

// Find reads the SQL of a store, given by its directory below the root: the
// steps of its schema, and the texts in its sources.
func Find(root, store string) ([]Guard, error) {
	schema, err := filepath.Glob(filepath.Join(root, store, "schema", "*.sql"))
	if err != nil {
		return nil, err
	}
	var all []Guard
	for _, file := range schema {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		name := store + "/schema/" + filepath.Base(file)
		for _, c := range clausesOf(string(text)) {
			all = append(all, Guard{name, c.object, c.text, c.edits, 0})
		}
	}
	p, err := parse(filepath.Join(root, store))
	if err != nil {
		return nil, err
	}
	all = append(all, p.guards(store)...)
	number(all)
	return all, nil
}

// number tells guards apart that say the same in the same place.
func number(all []Guard) {
	seen := map[string]int{}
	for i := range all {
		g := &all[i]
		key := g.Key()
		if seen[key]++; seen[key] > 1 {
			g.Text += fmt.Sprintf(" (%d)", seen[key])
		}
	}
}

// pkg is the sources of a package.
type pkg struct {
	set    *token.FileSet
	files  map[string]*ast.File // by base name
	texts  map[string]string
	consts map[string]ast.Expr // of the package
}

func parse(dir string) (*pkg, error) {
	p := &pkg{set: token.NewFileSet(), files: map[string]*ast.File{}, texts: map[string]string{}, consts: map[string]ast.Expr{}}
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(p.set, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.files[filepath.Base(name)], p.texts[filepath.Base(name)] = file, string(text)
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok && d.Tok == token.CONST {
				constsOf(d, p.consts)
			}
		}
	}
	return p, nil
}

func constsOf(d *ast.GenDecl, into map[string]ast.Expr) {
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		for i, name := range s.Names {
			if i < len(s.Values) {
				into[name.Name] = s.Values[i]
			}
		}
	}
}

// leaf is a literal of a text that is put together, or a hole in it.
type leaf struct {
	text string
	file string
	at   int // where the text begins in the file; -1 where it is not there as it is read
}

// leaves are the parts of an expression that adds texts up.
func (p *pkg) leaves(x ast.Expr, local map[string]ast.Expr) []leaf {
	switch x := x.(type) {
	case *ast.ParenExpr:
		return p.leaves(x.X, local)
	case *ast.BinaryExpr:
		if x.Op == token.ADD {
			return append(p.leaves(x.X, local), p.leaves(x.Y, local)...)
		}
	case *ast.Ident:
		if value := cmp.Or(local[x.Name], p.consts[x.Name]); value != nil {
			return p.leaves(value, local)
		}
	case *ast.BasicLit:
		if text, err := strconv.Unquote(x.Value); err == nil && x.Kind == token.STRING {
			at := p.set.Position(x.Pos())
			offset := at.Offset + 1
			if len(text) != len(x.Value)-2 {
				offset = -1 // it has escapes
			}
			return []leaf{{text, filepath.Base(at.Filename), offset}}
		}
	}
	return []leaf{{string(hole), "", -1}}
}

// sql tells a statement, or a part of one, from prose.
var sql = regexp.MustCompile(`(?s)\b(select|insert into|delete from|update|with|lock table)\b.*|^\s*(from|where|and|on)\b`)

// guards are those in the package's texts.
func (p *pkg) guards(store string) []Guard {
	seen := map[string]bool{}
	var all []Guard
	for _, name := range slices.Sorted(maps.Keys(p.files)) {
		file := p.files[name]
		for _, decl := range file.Decls {
			local := map[string]ast.Expr{}
			in := ""
			if f, ok := decl.(*ast.FuncDecl); ok {
				in = f.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.CONST && in != "" {
					constsOf(d, local)
				}
				return true
			})
			name := in
			ast.Inspect(decl, func(n ast.Node) bool {
				if s, ok := n.(*ast.ValueSpec); ok && in == "" {
					name = s.Names[0].Name
				}
				x, ok := n.(ast.Expr)
				if !ok {
					return true
				}
				literal, isLiteral := x.(*ast.BasicLit)
				sum, isSum := x.(*ast.BinaryExpr)
				switch {
				case isLiteral && literal.Kind != token.STRING:
					return false
				case !isLiteral && (!isSum || sum.Op != token.ADD):
					return true
				}
				leaves := p.leaves(x, local)
				var text strings.Builder
				for _, l := range leaves {
					text.WriteString(l.text)
				}
				if sql.MatchString(text.String()) {
					for _, c := range clausesOf(text.String()) {
						file, edits := onto(leaves, c.edits)
						key := fmt.Sprint(file, edits)
						holder, at := "", 0
						if file == "" {
							here := p.set.Position(x.Pos())
							file, at, holder = filepath.Base(here.Filename), here.Offset, name
							key = fmt.Sprint(file, name, c.text)
						} else {
							at = edits[0].at
							holder = p.holder(file, at, name)
						}
						if seen[key] {
							continue
						}
						seen[key] = true
						all = append(all, Guard{store + "/" + file, holder, c.text, edits, at})
					}
				}
				return false
			})
		}
	}
	// In the order of the files, since a text that is put together is found where
	// it is used.
	slices.SortStableFunc(all, func(a, b Guard) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.at, b.at))
	})
	return all
}

// onto finds the edits of a text in the file that its literals stand in; no
// file when they are in several, or not as they are read.
func onto(leaves []leaf, edits []edit) (file string, there []edit) {
	for _, e := range edits {
		begin := 0
		for _, l := range leaves {
			end := begin + len(l.text)
			if l.at >= 0 && e.at >= begin && e.end <= end && (file == "" || file == l.file) {
				file = l.file
				there = append(there, edit{l.at + e.at - begin, l.at + e.end - begin, e.text})
				break
			}
			begin = end
		}
	}
	if len(there) != len(edits) {
		return "", nil
	}
	return file, there
}

// holder is the name of what a place of a file is in: a constant or variable of
// the package, or a function.
func (p *pkg) holder(file string, at int, or string) string {
	pos := p.set.File(p.files[file].Pos()).Pos(at)
	for _, decl := range p.files[file].Decls {
		if pos < decl.Pos() || pos > decl.End() {
			continue
		}
		switch d := decl.(type) {
		case *ast.FuncDecl:
			return d.Name.Name
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if s, ok := spec.(*ast.ValueSpec); ok && pos >= s.Pos() && pos <= s.End() {
					return s.Names[0].Name
				}
			}
		}
	}
	return or
}

// apply is a text with edits made, of which none overlaps another.
func apply(text string, edits []edit) string {
	edits = slices.SortedStableFunc(slices.Values(edits), func(a, b edit) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	last := 0
	for _, e := range edits {
		b.WriteString(text[last:e.at] + e.text)
		last = e.end
	}
	return b.String() + text[last:]
}

// hint names an index for SQLite's planner, which refuses it where the condition
// that it serves is gone.
var hint = regexp.MustCompile(` indexed by \w+`)

// without is the text of the guard's file without the guard.
func (g Guard) without(text string) string {
	if edits := slices.Clone(g.edits); strings.HasPrefix(g.File, "sqlite/") && strings.HasSuffix(g.File, ".go") {
		// The literal that the guard stands in loses its hints.
		begin, end := strings.LastIndexByte(text[:edits[0].at], '`'), edits[len(edits)-1].end
		end += strings.IndexByte(text[end:], '`')
		for _, at := range hint.FindAllStringIndex(text[begin+1:end], -1) {
			edits = append(edits, edit{begin + 1 + at[0], begin + 1 + at[1], ""})
		}
		return apply(text, edits)
	}
	return apply(text, g.edits)
}
