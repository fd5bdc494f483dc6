package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// settingsFile is a TOML file that has been read and checked. Nil is one in
// which nothing stands.
type settingsFile struct {
	path    string
	known   map[string]*pflag.Flag // what may stand in it, by key
	lines   map[string]int         // of keys and of tables
	entries map[string]entry       // what stands in it, by key

	schedules []fileSchedule
	admission admission
}

func (f *settingsFile) entry(key string) (entry, bool) {
	if f == nil || key == "" {
		return entry{}, false
	}
	e, ok := f.entries[key]
	return e, ok
}

// readFile reads a file and checks all of it, also what the command at hand has
// no use for: a file that is wrong is wrong for whoever reads it first.
func readFile(path string) (*settingsFile, error) {
	if path == "" {
		return nil, settingf("config", "the name is empty")
	}
	text, err := os.ReadFile(path)
	var failed *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, settingf("config", "there is no file %s", path)
	case errors.As(err, &failed):
		return nil, settingf("config", "%s: %s", path, failed.Err.Error()) // not %w, which would have the database explained
	case err != nil:
		return nil, settingf("config", "%s: %s", path, err.Error())
	}
	return parseSettings(path, text)
}

// parseSettings reads the text of a file. Its errors are about the first line
// on which something is wrong.
func parseSettings(path string, text []byte) (*settingsFile, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // as some editors on Windows begin a file
	f := &settingsFile{path: path, known: map[string]*pflag.Flag{}, lines: linesOf(text), entries: map[string]entry{}}
	allSettings().VisitAll(func(flag *pflag.Flag) { f.known[marked(flag, fileMark)] = flag })
	var (
		table   map[string]any
		invalid *toml.DecodeError
	)
	err := toml.Unmarshal(text, &table)
	switch message := strings.TrimPrefix(fmt.Sprint(err), "toml: "); {
	case errors.As(err, &invalid):
		line, _ := invalid.Position()
		return nil, usagef("%s:%d: %s", path, line, message)
	case err != nil:
		return nil, usagef("%s: %s", path, message)
	}
	return f, f.read("", table)
}

// linesOf finds the line of every key and table of a text, and of each table of an
// array. The decoder has no answer to that, other than for what it refuses itself.
func linesOf(text []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	var note func(above string, n *unstable.Node) string
	note = func(above string, n *unstable.Node) string {
		for key := n.Key(); key.Next(); {
			above = below(above, string(key.Node().Data))
			if lines[above] == 0 {
				lines[above] = p.Shape(key.Node().Raw).Start.Line
			}
		}
		if n.Kind == unstable.KeyValue && n.Value().Kind == unstable.InlineTable {
			for inner := n.Value().Children(); inner.Next(); {
				note(above, inner.Node())
			}
		}
		return above
	}
	table, elements := "", map[string]int{}
	for p.Reset(text); p.NextExpression(); {
		switch n := p.Expression(); n.Kind {
		case unstable.Table:
			table = note("", n)
		case unstable.ArrayTable:
			array := note("", n)
			table = element(array, elements[array])
			elements[array]++
			lines[table] = lineOf(&p, n)
		case unstable.KeyValue:
			note(table, n)
		}
	}
	return lines
}

// lineOf is the line of the last part of a key.
func lineOf(p *unstable.Parser, n *unstable.Node) (line int) {
	for key := n.Key(); key.Next(); {
		line = p.Shape(key.Node().Raw).Start.Line
	}
	return line
}

// element is the key of a table of an array. No key of a file is one.
func element(array string, i int) string { return fmt.Sprintf("%s[%d]", array, i) }

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// below is the key of a name in a table, as TOML writes it.
func below(table, name string) string {
	if !bare.MatchString(name) {
		name = strconv.Quote(name)
	}
	if table == "" {
		return name
	}
	return table + "." + name
}

// read goes through a table from its first line to its last.
func (f *settingsFile) read(above string, table map[string]any) error {
	for _, e := range f.list(above, table) {
		flag, known := f.known[e.key]
		inner, isTable := e.value.(map[string]any)
		switch {
		case e.key == schedulesKey:
			if err := f.readSchedules(e); err != nil {
				return err
			}
		case isAdmission(e.key):
			if err := f.readAdmission(e); err != nil {
				return err
			}
		case known:
			e.parts = f.list(e.key, inner)
			if err := e.set(flag.Value); err != nil {
				return err
			}
			f.entries[e.key] = e
		case !f.isSection(e.key):
			return f.unknown(e)
		case !isTable:
			return e.refuse(fmt.Errorf("it is %s; write a table: [%s]", formOf(e.value), e.key))
		default:
			if err := f.read(e.key, inner); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *settingsFile) list(above string, table map[string]any) []entry {
	var all []entry
	for _, name := range slices.Sorted(maps.Keys(table)) {
		key := below(above, name)
		all = append(all, entry{file: f.path, line: cmp.Or(f.lines[key], f.lines[above]), key: key, name: name, value: table[name]})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.line - b.line })
	return all
}

// isSection reports whether settings stand in a table.
func (f *settingsFile) isSection(key string) bool {
	for known := range f.known {
		if strings.HasPrefix(known, key+".") {
			return true
		}
	}
	return false
}

// unknown says what was probably meant: a key, or a flag, which may stand
// elsewhere. Near is what is near for names of commands; of a short one, less.
func (f *settingsFile) unknown(e entry) error {
	err := usagef("%s:%d: there is no setting %s", e.file, e.line, e.key)
	names, meant := &cobra.Command{}, map[string]string{}
	offer := func(name, key string) {
		if meant[name] == "" {
			names.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
		}
		meant[name] = key
	}
	for _, key := range slices.Sorted(maps.Keys(f.known)) {
		for i, c := range key {
			if c == '.' {
				offer(key[:i], "["+key[:i]+"]")
			}
		}
		offer(f.known[key].Name, key)
		offer(key, key)
	}
	offer(schedulesKey, "["+schedulesKey+".NAME]")
	for _, key := range []string{tokenKey, userKey} {
		offer(key, "[["+key+"]]")
	}
	for _, text := range []string{e.key, e.key[strings.LastIndexByte(e.key, '.')+1:]} {
		names.SuggestionsMinimumDistance = min(2, max(1, len(text)-2))
		if similar := names.SuggestionsFor(text); len(similar) > 0 {
			return withHint(err, "did you mean %s?", meant[similar[0]])
		}
	}
	return withHint(err, "stint config lists the settings")
}
