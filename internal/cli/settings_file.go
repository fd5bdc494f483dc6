package cli

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

// entry is a setting in a file, or a part of one that is a table.
type entry struct {
	file  string
	line  int
	key   string // from the top of the file
	name  string // in its table
	value any
	parts []entry // of a table, in the order of their lines
}

// place is what an error about the entry begins with.
func (e entry) place() string { return fmt.Sprintf("%s:%d: %s", e.file, e.line, e.key) }

// refuse says what is wrong with the entry; nil for nothing.
func (e entry) refuse(err error) error {
	if err == nil {
		return nil
	}
	return &usageError{&settingError{flag: e.name, place: e.place(), err: err}}
}

// listValue, slotsValue and retentionValue take more than text: a list, in which a
// name may hold a comma, and a table of numbers or of texts, one part after the
// other.
type (
	takesList  interface{ SetList(names []string) error }
	takesTable interface {
		SetPart(name string, n int64) error
	}
	takesAny   interface{ SetAny(value any) error }
	takesTexts interface{ SetText(name, text string) error }
)

// set gives a flag what stands in the file. TOML knows types, and a file is held
// to them: a number in quotes is none.
func (e entry) set(v pflag.Value) error {
	if some, ok := v.(takesAny); ok {
		return e.refuse(some.SetAny(e.value))
	}
	list, isList := v.(takesList)
	table, isTable := v.(takesTable)
	texts, isTexts := v.(takesTexts)
	isBool := v.Type() == "bool"
	switch x := e.value.(type) {
	case string:
		if !isList && !isTable && !isBool && v.Type() != "int" {
			return e.refuse(v.Set(x))
		}
	case bool:
		if isBool {
			return e.refuse(v.Set(strconv.FormatBool(x)))
		}
	case int64:
		if isTable || v.Type() == "int" {
			return e.refuse(v.Set(strconv.FormatInt(x, 10)))
		}
	case []any:
		if isList {
			return e.setList(list)
		}
	case map[string]any:
		if isTable {
			return e.setTable(table)
		}
		if isTexts {
			return e.setTexts(texts)
		}
	}
	form := cmp.Or(forms[v.Type()], "a string")
	if own, ok := v.(interface{ Form() string }); ok {
		form = own.Form()
	}
	return e.refuse(fmt.Errorf("it is %s; write %s", formOf(e.value), form))
}

func (e entry) setList(v takesList) error {
	var names []string
	for _, item := range e.value.([]any) {
		name, ok := item.(string)
		if !ok {
			return e.refuse(fmt.Errorf("there is %s in it; write %s", formOf(item), forms["names"]))
		}
		names = append(names, name)
	}
	if names == nil {
		return e.refuse(errors.New("it is empty"))
	}
	return e.refuse(v.SetList(names))
}

func (e entry) setTable(v takesTable) error {
	if len(e.parts) == 0 {
		return e.refuse(errors.New("it is empty"))
	}
	for _, part := range e.parts {
		n, ok := part.value.(int64)
		if !ok {
			return part.refuse(fmt.Errorf("it is %s; write a number", formOf(part.value)))
		}
		if err := v.SetPart(part.name, n); err != nil {
			return part.refuse(err)
		}
	}
	return nil
}

func (e entry) setTexts(v takesTexts) error {
	if len(e.parts) == 0 {
		return e.refuse(errors.New("it is empty"))
	}
	for _, part := range e.parts {
		text, ok := part.value.(string)
		if !ok {
			return part.refuse(fmt.Errorf("it is %s; write a string", formOf(part.value)))
		}
		if err := v.SetText(part.name, text); err != nil {
			return part.refuse(err)
		}
	}
	return nil
}

// forms are how values are written in a file, by the types of flags; those that
// are missing are strings.
var forms = map[string]string{
	"bool":     "true or false",
	"int":      "a number",
	"duration": `a string: "90s"`,
	"time":     `a string: "2s"`,
	"size":     `a string: "512MiB"`,
	"names":    `an array of strings: ["mail", "default"]`,
	"ages":     `a string, "5d", or a table: {failed = "30d", "mail:completed" = "1h"}`,
	"slots":    `a number, or a table: {mail = 4, "*" = 8}`,
}

// formOf names what stands in a file.
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
