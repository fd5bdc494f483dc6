package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/spf13/pflag"
)

// settingsFile is a TOML file that has been read and checked. Nil is an empty one.
type settingsFile struct {
	path    string
	known   map[string]*pflag.Flag // the flags that a file may set, by key
	lines   map[string]int         // of keys and of tables
	entries map[string]entry       // of known, by key

	schedules []fileSchedule
	limits    []fileLimit
	admission admission
	webhooks  webhooks
}

func (f *settingsFile) entry(key string) (entry, bool) {
	if f == nil || key == "" {
		return entry{}, false
	}
	e, ok := f.entries[key]
	return e, ok
}

// readFile reads a file and checks all of it, also settings that the command does not use:
// the first command that reads the file finds a mistake.
func readFile(path string) (*settingsFile, error) {
	if path == "" {
		return nil, settingf("config", "the name is empty")
	}
	changed, err := lastChange(path)
	var text []byte
	if err == nil {
		text, err = os.ReadFile(path)
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, settingf("config", "there is no file %s", path)
	} else if err != nil {
		return nil, settingf("config", "%s: %s", path, innermost(err).Error()) // not %w, which would have the database explained
	}
	f, err := parseSettings(path, text)
	if f != nil {
		f.admission.changed = changed
	}
	return f, err
}

// parseSettings reads the text of a file. Its error is about the first line with a
// mistake.
func parseSettings(path string, text []byte) (*settingsFile, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors on Windows begin a file with it
	f := &settingsFile{path: path, known: map[string]*pflag.Flag{}, lines: linesOf(text), entries: map[string]entry{}}
	allSettings().VisitAll(func(flag *pflag.Flag) { f.known[marked(flag, fileMark)] = flag })
	var table map[string]any
	if err := toml.Unmarshal(text, &table); err != nil {
		place, message := path, strings.TrimPrefix(err.Error(), "toml: ")
		if invalid, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, _ := invalid.Position()
			place = fmt.Sprintf("%s:%d", path, line)
		}
		return nil, usagef("%s: %s", place, message)
	}
	return f, f.read(entry{file: f, value: table})
}

// linesOf finds the line of every key, of every table, and of each table of an
// array. The decoder has only those of its own errors.
func linesOf(text []byte) map[string]int {
	lines := map[string]int{}
	var p unstable.Parser
	// note finds the keys of an expression in a table. It returns the last with its line.
	var note func(table string, n *unstable.Node) (key string, line int)
	note = func(table string, n *unstable.Node) (key string, line int) {
		key = table
		for part := n.Key(); part.Next(); {
			key, line = below(key, string(part.Node().Data)), p.Shape(part.Node().Raw).Start.Line
			lines[key] = cmp.Or(lines[key], line)
		}
		if n.Kind == unstable.KeyValue && n.Value().Kind == unstable.InlineTable {
			for inner := n.Value().Children(); inner.Next(); {
				note(key, inner.Node())
			}
		}
		return key, line
	}
	table, elements := "", map[string]int{}
	for p.Reset(text); p.NextExpression(); {
		switch n := p.Expression(); n.Kind {
		case unstable.Table:
			table, _ = note("", n)
		case unstable.ArrayTable:
			array, line := note("", n)
			table = element(array, elements[array])
			elements[array]++
			lines[table] = line
		case unstable.KeyValue:
			note(table, n)
		}
	}
	return lines
}

// element is the name of a table of an array. No key looks like it.
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
func (f *settingsFile) read(table entry) error {
	parts, err := table.parts()
	if err != nil {
		return err
	}
	for _, e := range parts {
		flag, known := f.known[e.key]
		switch {
		case known:
			err = e.set(flag.Value)
			f.entries[e.key] = e
		case e.key == schedulesKey:
			f.schedules, err = readSchedules(e)
		case e.key == limitsKey:
			f.limits, err = readLimits(e)
		case slices.Contains(admissionKeys, e.key):
			err = f.admission.read(e)
		case e.key == webhookKey:
			err = f.webhooks.read(e)
		case !f.isSection(e.key):
			err = f.unknown(e)
		default:
			err = f.read(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *settingsFile) isSection(key string) bool {
	for known := range f.known {
		if strings.HasPrefix(known, key+".") {
			return true
		}
	}
	return false
}

// unknown suggests a similar key, or the key of a flag with a similar name.
func (f *settingsFile) unknown(e entry) error {
	meant := map[string]string{schedulesKey: "[" + schedulesKey + ".NAME]", limitsKey: "[" + limitsKey + "]", webhookKey: "[" + webhookKey + "]", tokenKey: "[[" + tokenKey + "]]", userKey: "[[" + userKey + "]]"}
	for key, flag := range f.known {
		meant[key], meant[flag.Name] = key, key
		for i, c := range key {
			if c == '.' {
				meant[key[:i]] = "[" + key[:i] + "]"
			}
		}
	}
	err := usagef("%s:%d: there is no setting %s", f.path, e.line, e.key)
	for _, text := range []string{e.key, e.key[strings.LastIndexByte(e.key, '.')+1:]} {
		if name := similar(text, slices.Sorted(maps.Keys(meant))); name != "" {
			return withHint(err, "did you mean %s?", meant[name])
		}
	}
	return withHint(err, "stint config lists the settings")
}

// entry is a value in a file: of a key, or a table of an array.
type entry struct {
	file  *settingsFile
	line  int
	at    string // among the lines of the file
	key   string // for people: at without the numbers of tables in arrays
	name  string // the last part of the key
	value any
}

// place is the beginning of an error about the entry.
func (e entry) place() string { return fmt.Sprintf("%s:%d: %s", e.file.path, e.line, e.key) }

// refuse puts the place before an error; nil stays nil.
func (e entry) refuse(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{&settingError{flag: e.name, place: e.place(), err: err}}
}

// isNot refuses a value of the wrong type. Form is how to write it.
func (e entry) isNot(form string) error {
	return e.refuse(fmt.Errorf("it is %s; write %s", formOf(e.value), form))
}

// parts are the entries of a table in the order of their lines.
func (e entry) parts() ([]entry, error) {
	table, ok := e.value.(map[string]any)
	if !ok {
		return nil, e.isNot("a table: [" + e.key + "]")
	}
	var all []entry
	for _, name := range slices.Sorted(maps.Keys(table)) {
		at := below(e.at, name)
		all = append(all, entry{file: e.file, line: cmp.Or(e.file.lines[at], e.line), at: at, key: below(e.key, name), name: name, value: table[name]})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.line - b.line })
	return all, nil
}

// elements are the tables of an array.
func (e entry) elements() ([]entry, error) {
	values, ok := e.value.([]any)
	if !ok {
		return nil, e.isNot("a table for each: [[" + e.key + "]]")
	}
	var all []entry
	for i, value := range values {
		one := e
		one.at, one.value = element(e.at, i), value
		one.line = cmp.Or(e.file.lines[one.at], e.line)
		all = append(all, one)
	}
	return all, nil
}

// fill sets flags from the parts of a table, and marks those that it has. The needed
// ones must be there.
func (e entry) fill(flags *pflag.FlagSet, needed ...string) error {
	parts, err := e.parts()
	if err != nil {
		return err
	}
	for _, part := range parts {
		flag := flags.Lookup(part.name)
		if flag == nil {
			var names []string
			flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
			return withHint(usagef("%s:%d: there is no setting %s", e.file.path, part.line, part.key), "%s has %s", e.key, strings.Join(names, ", "))
		}
		if err := part.set(flag.Value); err != nil {
			return err
		}
		flag.Changed = true
	}
	for _, name := range needed {
		if !flags.Changed(name) {
			return e.refuse(fmt.Errorf("it has no %s", name))
		}
	}
	return nil
}

// ownForm is a flag whose value a file may give in another form than as text.
type ownForm interface{ setEntry(e entry) error }

// fileOnly is a setting that only a file gives.
type fileOnly func(e entry) error

func (fileOnly) Set(string) error         { return errors.New("only a file gives it") }
func (fileOnly) Type() string             { return "" }
func (fileOnly) String() string           { return "" }
func (f fileOnly) setEntry(e entry) error { return f(e) }

// set gives a flag the value. TOML has types, and a number in quotes is none.
func (e entry) set(v pflag.Value) error {
	if own, ok := v.(ownForm); ok {
		return own.setEntry(e)
	}
	fits, form := false, "a string"
	switch v.Type() {
	case "bool":
		_, fits = e.value.(bool)
		form = "true or false"
	case "int":
		_, fits = e.value.(int64)
		form = "a number"
	default:
		_, fits = e.value.(string)
	}
	if text, ok := v.(interface{ Form() string }); ok {
		form = text.Form()
	}
	if !fits {
		return e.isNot(form)
	}
	return e.refuse(v.Set(fmt.Sprint(e.value)))
}

// setParts gives each part of a table to a function. Form is how to write the table, and each
// how to write a part.
func setParts[T any](e entry, form, each string, set func(name string, value T) error) error {
	parts, err := e.parts()
	switch {
	case err != nil:
		return e.isNot(form)
	case len(parts) == 0:
		return e.refuse(errors.New("it is empty"))
	}
	for _, part := range parts {
		value, ok := part.value.(T)
		if !ok {
			return part.isNot(each)
		}
		if err := set(part.name, value); err != nil {
			return part.refuse(err)
		}
	}
	return nil
}

// formOf names the type of a value in a file.
func formOf(value any) string {
	switch value.(type) {
	case string:
		return "a string"
	case bool:
		return "a boolean"
	case int64:
		return "a number"
	case float64:
		return "a number with a fraction"
	case []any:
		return "an array"
	case map[string]any:
		return "a table"
	}
	return "a date or a time"
}
