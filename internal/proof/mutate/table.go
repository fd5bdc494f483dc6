package mutate

import (
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Mutant is a fix taken out of the sources again, and the test that must fail
// without it. A file of table/ has one after the other:
//
//	mutant a name, as docs/design/traps.md says it
//	test engine TestStop/*/drained
//	in engine/stop.go
//	-lines that stand there once
//	+lines that stand there instead
//
// The test is named by its package and its parts; * is any part. One mutant may
// have several edits: a new one begins with each first line of -, and with each
// in. The text between - and the next sign is what a strings.Replace would get,
// without its last line end: a text that ends with a line end has an empty - at
// its end. Lines that begin with # are comments.
type Mutant struct {
	Name  string
	Test  string
	Edits []Edit

	table string // the file that it is read from
	line  int    // of the test
}

// Edit replaces a text that stands once in a file.
type Edit struct {
	File     string // below the root of the module
	Old, New string

	line int // of the file's name in the table
}

// Read reads the mutants of a file of table/, or of all by "*", given the
// directory of this package.
func Read(dir, name string) ([]Mutant, error) {
	files, err := filepath.Glob(filepath.Join(dir, "table", name+".txt"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no table %s in %s", name, dir)
	}
	var all []Mutant
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		some, err := read(file, string(text))
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

func read(table, text string) ([]Mutant, error) {
	var all []Mutant
	var m *Mutant
	var file string
	var at int
	last := byte(' ')
	for i, line := range strings.Split(text, "\n") {
		bad := fmt.Errorf("%s:%d: unexpected: %s", table, i+1, line)
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		switch sign := line[0]; {
		case sign == '-' || sign == '+':
			if m == nil || file == "" || sign == '+' && last == ' ' {
				return nil, bad
			}
			if sign == '-' && last != '-' {
				m.Edits = append(m.Edits, Edit{File: file, line: at})
			}
			e := &m.Edits[len(m.Edits)-1]
			into := &e.Old
			if sign == '+' {
				into = &e.New
			}
			if sign == last {
				*into += "\n"
			}
			*into += line[1:]
			last = sign
			continue
		case word == "mutant":
			all = append(all, Mutant{Name: rest, table: table})
			m, file = &all[len(all)-1], ""
		case word == "test" && m != nil && m.Test == "":
			m.Test, m.line = rest, i+1
		case word == "in" && m != nil && m.Test != "":
			file, at = rest, i+1
		default:
			return nil, bad
		}
		last = ' '
	}
	for _, m := range all {
		if m.Test == "" || len(m.Edits) == 0 {
			return nil, fmt.Errorf("%s: the mutant %q has no test or no edit", table, m.Name)
		}
	}
	return all, nil
}

// Package is the directory of the package that the test is in, and Path the
// test's name, as it is passed to t.Run part by part.
func (m Mutant) Package() string { return strings.Fields(m.Test)[0] }
func (m Mutant) Path() string    { _, path, _ := strings.Cut(m.Test, " "); return path }

// ApplyTo makes the edits of one file in its text. The error names each edit
// that does not fit.
func (m Mutant) ApplyTo(file, text string) (string, error) {
	var errs error
	for _, e := range m.Edits {
		if e.File != file {
			continue
		}
		if n := strings.Count(text, e.Old); n != 1 {
			errs = errors.Join(errs, fmt.Errorf("%s:%d: mutant %q: this stands %d times in %s, want once:\n\t%s\n%s", m.table, e.line, m.Name, n, file,
				strings.ReplaceAll(e.Old, "\n", "\n\t"), nearest(file, text, e.Old)))
			continue
		}
		text = strings.Replace(text, e.Old, e.New, 1)
	}
	return text, errs
}

// Apply is what stands in the mutant's files, by their names. Texts of Go must
// be Go.
func (m Mutant) Apply(root string) (map[string]string, error) {
	texts := map[string]string{}
	var errs error
	for _, e := range m.Edits {
		if _, done := texts[e.File]; done {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, e.File))
		if err != nil {
			errs = errors.Join(errs, fmt.Errorf("%s:%d: mutant %q: %w%s", m.table, e.line, m.Name, err, elsewhere(root, e.Old)))
			continue
		}
		texts[e.File], err = m.ApplyTo(e.File, string(text))
		if err == nil && strings.HasSuffix(e.File, ".go") {
			if _, err = parser.ParseFile(token.NewFileSet(), e.File, texts[e.File], 0); err != nil {
				err = fmt.Errorf("mutant %q: %w", m.Name, err)
			}
		} else if err != nil {
			err = fmt.Errorf("%w%s", err, elsewhere(root, e.Old))
		}
		errs = errors.Join(errs, err)
	}
	return texts, errs
}

var name = regexp.MustCompile(`\pL[\pL\d_]*`)

// nearest names the line of a file that shares the most words with a text.
func nearest(file, text, old string) string {
	wanted := map[string]bool{}
	for _, w := range name.FindAllString(old, -1) {
		wanted[w] = true
	}
	best, at, found := 0.0, 0, ""
	for i, line := range strings.Split(text, "\n") {
		words := name.FindAllString(line, -1)
		same := 0
		for _, w := range words {
			if wanted[w] {
				same++
			}
		}
		if score := float64(same*same) / float64(len(words)+1); score > best {
			best, at, found = score, i+1, strings.TrimSpace(line)
		}
	}
	if at == 0 {
		return "no line is like it"
	}
	return fmt.Sprintf("the nearest line is %s:%d: %s", file, at, found)
}

// holders are the files of the module in which a text stands once.
func holders(root, old string) (files []string) {
	_ = fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") && (strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".sql")) {
			if text, err := os.ReadFile(filepath.Join(root, path)); err == nil && strings.Count(string(text), old) == 1 {
				files = append(files, path)
			}
		}
		return nil
	})
	return files
}

func elsewhere(root, old string) string {
	if files := holders(root, old); len(files) > 0 {
		return "\nit stands once in " + strings.Join(files, ", ")
	}
	return ""
}

// renamed finds what a text has become in a file whose names are others: the
// only place that differs from it in names alone, with the names that it has
// there. At least one name must be the same.
func renamed(text, old string) (now string, names map[string]string) {
	var pattern strings.Builder
	last := 0
	for _, at := range name.FindAllStringIndex(old, -1) {
		pattern.WriteString(regexp.QuoteMeta(old[last:at[0]]) + `(\pL[\pL\d_]*)`)
		last = at[1]
	}
	shape, err := regexp.Compile(pattern.String() + regexp.QuoteMeta(old[last:]))
	if err != nil {
		return "", nil
	}
	words := name.FindAllString(old, -1)
	best, ties := 0, 0
	for _, match := range shape.FindAllStringSubmatch(text, -1) {
		same, became, fits := 0, map[string]string{}, true
		for i, w := range words {
			if was, there := became[w]; there && was != match[i+1] {
				fits = false
			}
			became[w] = match[i+1]
			if w == match[i+1] {
				same++
			}
		}
		switch {
		case !fits:
		case same > best:
			best, ties, now, names = same, 1, match[0], became
		case same == best:
			ties++
		}
	}
	if best == 0 || ties != 1 {
		return "", nil
	}
	return now, names
}

// rename puts names in the place of others in a text.
func rename(text string, names map[string]string) string {
	return name.ReplaceAllStringFunc(text, func(w string) string {
		if now, ok := names[w]; ok {
			return now
		}
		return w
	})
}
