package guards

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// variable names, for a program that was built by [Build], the file that says
// which texts have others in their place.
const variable = "STINT_GUARDS"

// asks is added to the package that reads the schema, which both stores import.
const asks = `package steps

import (
	"encoding/json"
	"os"
)

var instead = func() (texts map[string]string) {
	if text, err := os.ReadFile(os.Getenv("` + variable + `")); err == nil {
		if err := json.Unmarshal(text, &texts); err != nil {
			panic(err)
		}
	}
	return texts
}()

// Guarded is the text of that name, or what is to stand in its place.
func Guarded(name, text string) string {
	if other, ok := instead[name]; ok {
		return other
	}
	return text
}
`

// asksSteps is added to each store.
const asksSteps = `package %s

import "github.com/stint-go/stint/internal/steps"

func guarded(name, text string) string { return steps.Guarded(name, text) }
`

// where the steps of a schema are read.
const reading = "string(text)); err != nil {"

// Build builds the tests of a store into a file, so that each text with a guard
// can be replaced when they start.
func Build(root, store string, guards []Guard, into string) error {
	dir, err := os.MkdirTemp("", "guards")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err = filepath.Abs(root)
	if err != nil {
		return err
	}
	replace := map[string]string{}
	put := func(file, text string) {
		instead := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		err = errors.Join(err, os.WriteFile(instead, []byte(text), 0o644))
		replace[filepath.Join(root, file)] = instead
	}
	p, perr := parse(filepath.Join(root, store))
	if perr != nil {
		return perr
	}
	for file, text := range p.ask(store, guards) {
		put(store+"/"+file, text)
	}
	steps, rerr := os.ReadFile(filepath.Join(root, "internal/steps/steps.go"))
	if rerr != nil {
		return rerr
	}
	if strings.Count(string(steps), reading) != 1 {
		return fmt.Errorf("internal/steps does not read the steps as it did: %s", reading)
	}
	put("internal/steps/steps.go", strings.Replace(string(steps), reading, "Guarded(name, string(text))); err != nil {", 1))
	put("internal/steps/guarded.go", asks)
	put(store+"/guarded.go", fmt.Sprintf(asksSteps, store))
	list, jerr := json.Marshal(map[string]any{"Replace": replace})
	overlay := filepath.Join(dir, "overlay.json")
	if err = errors.Join(err, jerr, os.WriteFile(overlay, list, 0o644)); err != nil {
		return err
	}
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay="+overlay, "-o", into, "./"+store)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tests of %s: %w\n%s", store, err, out)
	}
	return nil
}

// literals are those of a file in which guards stand.
func (p *pkg) literals(file string, guards []Guard) []*ast.BasicLit {
	var all []*ast.BasicLit
	ast.Inspect(p.files[file], func(n ast.Node) bool {
		l, ok := n.(*ast.BasicLit)
		if !ok || l.Kind != token.STRING {
			return true
		}
		begin := p.set.Position(l.Pos()).Offset
		end := begin + len(l.Value)
		if slices.ContainsFunc(guards, func(g Guard) bool {
			return slices.ContainsFunc(g.edits, func(e edit) bool { return filepath.Base(g.File) == file && begin < e.at && e.end < end })
		}) {
			all = append(all, l)
		}
		return true
	})
	return all
}

func (p *pkg) name(file string, l *ast.BasicLit) string {
	return fmt.Sprintf("%s:%d", file, p.set.Position(l.Pos()).Offset)
}

// ask are the files of the package in which each text with a guard is asked for.
// What was constant is a variable there.
func (p *pkg) ask(store string, guards []Guard) map[string]string {
	var inGo []Guard
	for _, g := range guards {
		if strings.HasSuffix(g.File, ".go") {
			inGo = append(inGo, g)
		}
	}
	edits := map[string][]edit{}
	for file := range p.files {
		for _, l := range p.literals(file, inGo) {
			at := p.set.Position(l.Pos()).Offset
			edits[file] = append(edits[file], edit{at, at, fmt.Sprintf("guarded(%q, ", p.name(file, l))}, edit{at + len(l.Value), at + len(l.Value), ")"})
		}
	}
	changed := map[string]bool{} // names that are variables now
	done := map[*ast.GenDecl]bool{}
	for again := true; again; {
		again = false
		for file, f := range p.files {
			ast.Inspect(f, func(n ast.Node) bool {
				d, ok := n.(*ast.GenDecl)
				if !ok || d.Tok != token.CONST || done[d] || !p.needs(d, edits[file], changed) {
					return true
				}
				done[d], again = true, true
				at := p.set.Position(d.TokPos).Offset
				edits[file] = append(edits[file], edit{at, at + len("const"), "var"})
				for _, spec := range d.Specs {
					for _, name := range spec.(*ast.ValueSpec).Names {
						changed[name.Name] = true
					}
				}
				return true
			})
		}
	}
	texts := map[string]string{}
	for file, list := range edits {
		texts[file] = apply(p.texts[file], list)
	}
	return texts
}

// needs tells whether a declaration can be constant no more.
func (p *pkg) needs(d *ast.GenDecl, edits []edit, changed map[string]bool) bool {
	begin, end := p.set.Position(d.Pos()).Offset, p.set.Position(d.End()).Offset
	if slices.ContainsFunc(edits, func(e edit) bool { return begin < e.at && e.end <= end }) {
		return true
	}
	found := false
	for _, spec := range d.Specs {
		for _, value := range spec.(*ast.ValueSpec).Values {
			ast.Inspect(value, func(n ast.Node) bool {
				if name, ok := n.(*ast.Ident); ok && changed[name.Name] {
					found = true
				}
				return true
			})
		}
	}
	return found
}

// hint names an index for SQLite's planner, which refuses it where the condition
// that it serves is gone.
var hint = regexp.MustCompile(` indexed by \w+`)

// Without writes what a program that was built by [Build] reads to run without a guard.
func (g Guard) Without(root, into string) error {
	texts := map[string]string{}
	if strings.HasSuffix(g.File, ".sql") {
		text, err := os.ReadFile(filepath.Join(root, g.File))
		if err != nil {
			return err
		}
		_, name, _ := strings.Cut(g.File, "/")
		texts[name] = apply(string(text), g.edits)
	} else {
		p, err := parse(filepath.Join(root, filepath.Dir(g.File)))
		if err != nil {
			return err
		}
		file := filepath.Base(g.File)
		for _, l := range p.literals(file, []Guard{g}) {
			begin := p.set.Position(l.Pos()).Offset + 1
			var mine []edit
			for _, e := range g.edits {
				if e.at >= begin && e.end < begin+len(l.Value)-1 {
					mine = append(mine, edit{e.at - begin, e.end - begin, e.text})
				}
			}
			text := apply(l.Value[1:len(l.Value)-1], mine)
			if strings.HasPrefix(g.File, "sqlite/") {
				text = hint.ReplaceAllString(text, "")
			}
			texts[p.name(file, l)] = text
		}
	}
	if len(texts) == 0 {
		return fmt.Errorf("%s: nothing is there to take out", g.Key())
	}
	text, err := json.Marshal(texts)
	if err == nil {
		err = os.WriteFile(into, text, 0o644)
	}
	return err
}
