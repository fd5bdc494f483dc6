// Package steps reads the steps in which a schema comes to its newest version.
//
// The first version is the schema as it is installed into an empty database:
// the files schema/0001*.sql, in the order of their names, in one transaction.
// Each later version is one file that begins with a line about itself:
//
//	-- step: transactional, oldest 1
//	-- step: online, oldest 1
//
// A transactional step is one transaction. An online one is for what cannot be
// in a transaction: indexes that are built or dropped concurrently. It may be
// cut off anywhere and is done again, so its statements say "if not exists" or
// "if exists". The oldest is the version which a program must know to work on
// the schema after the step; it may be raised in a step of its own.
//
// A step says nothing of the version itself: whoever runs it records that with it.
package steps

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Step brings a schema from the version before to its own.
type Step struct {
	Version int
	Online  bool   // its statements are run one by one, outside of any transaction
	Oldest  int    // the version that programs must know to work on the schema from then on
	Text    string // SQL, without the first line
}

var (
	named  = regexp.MustCompile(`^schema/([0-9]{4})[a-z0-9_]*\.sql$`)
	header = regexp.MustCompile(`^-- step: (transactional|online), oldest ([0-9]+)\n`)
	online = regexp.MustCompile(`^(?:create (?:unique )?index concurrently if not exists (\w+) on|drop index concurrently if exists) `)
)

// Read reads the files schema/*.sql. The steps are numbered from 1 without a gap.
func Read(files fs.FS) ([]Step, error) {
	names, err := fs.Glob(files, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names) // version, then the order in which the parts build on each other
	var steps []Step
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		if steps, err = add(steps, name, string(text)); err != nil {
			return nil, fmt.Errorf("schema step %s: %w", name, err)
		}
	}
	return steps, nil
}

// Later are steps after those that are part of the program, for tests that run
// a program of tomorrow. They are set before anything is opened.
var Later []Step

// Must is Read of files that are part of the program.
func Must(files fs.FS) []Step {
	steps, err := Read(files)
	if err != nil {
		panic(err)
	}
	return steps
}

// add appends a file to the steps.
func add(steps []Step, name, text string) ([]Step, error) {
	m := named.FindStringSubmatch(name)
	if m == nil {
		return nil, fmt.Errorf("its name does not begin with a version of four digits")
	}
	version, err := strconv.Atoi(m[1])
	if err != nil {
		return nil, err
	}
	switch {
	case version == 1 && len(steps) == 0:
		return append(steps, Step{Version: 1, Oldest: 1, Text: text}), nil
	case version == 1:
		steps[0].Text += "\n" + text
		return steps, nil
	case version != len(steps)+1:
		return nil, fmt.Errorf("it follows version %d, and there is one file for each", len(steps))
	}
	s, err := later(version, text)
	if err != nil {
		return nil, err
	}
	if before := steps[len(steps)-1].Oldest; s.Oldest < before || s.Oldest > version {
		return nil, fmt.Errorf("its oldest, %d, is not between %d and %d", s.Oldest, before, version)
	}
	return append(steps, s), nil
}

func later(version int, text string) (Step, error) {
	m := header.FindStringSubmatch(text)
	if m == nil {
		return Step{}, fmt.Errorf(`its first line is not "-- step: transactional, oldest 1" or "-- step: online, oldest 1"`)
	}
	oldest, err := strconv.Atoi(m[2])
	if err != nil {
		return Step{}, err
	}
	if !strings.HasSuffix(strings.TrimSpace(text), ";") {
		return Step{}, fmt.Errorf("its last statement does not end with a semicolon")
	}
	s := Step{Version: version, Online: m[1] == "online", Oldest: oldest, Text: text[len(m[0]):]}
	for _, statement := range s.Statements() {
		if s.Online && !online.MatchString(statement) {
			return Step{}, fmt.Errorf(`an online step has "create index concurrently if not exists" and "drop index concurrently if exists" only, not %q`, statement)
		}
	}
	return s, nil
}

// Statements are those of an online step.
func (s Step) Statements() []string {
	var text strings.Builder
	for line := range strings.Lines(s.Text) {
		code, _, _ := strings.Cut(line, "--")
		text.WriteString(code + " ")
	}
	var statements []string
	for statement := range strings.SplitSeq(text.String(), ";") {
		if words := strings.Fields(statement); len(words) > 0 {
			statements = append(statements, strings.Join(words, " "))
		}
	}
	return statements
}

// Builds is the name of the index that an online statement builds. When it was
// cut off, one of that name is there and of no use.
func Builds(statement string) (index string) {
	if m := online.FindStringSubmatch(statement); m != nil {
		return m[1]
	}
	return ""
}

// AtOnce is the step's text for a schema in which nobody works yet: there an
// index need not be built concurrently, and all steps are one transaction.
func (s Step) AtOnce() string {
	if s.Online {
		return strings.ReplaceAll(s.Text, "index concurrently ", "index ")
	}
	return s.Text
}

// Record is the statement that goes with a step but the first, which says for
// itself what it is. The table is where the version stands.
func (s Step) Record(table string) string {
	if s.Version == 1 {
		return ""
	}
	return fmt.Sprintf("update %s set version = %d, oldest = %d where version = %d;\n", table, s.Version, s.Oldest, s.Version-1)
}

// Install is what brings an empty database to the last of the steps, as one
// transaction.
func Install(steps []Step, table string) string {
	var b strings.Builder
	for _, s := range steps {
		b.WriteString(s.AtOnce() + "\n" + s.Record(table))
	}
	return b.String()
}

// Print is the text of the steps after a version, for people who run it with a
// tool of their own.
func Print(steps []Step, table string, from int) (string, error) {
	if from < 0 || from > len(steps) {
		return "", fmt.Errorf("there is no version %d: this program knows 1 to %d", from, len(steps))
	}
	var b strings.Builder
	for _, s := range steps[from:] {
		how := "transactional: run it as one transaction"
		if s.Online {
			how = "online: run each statement by itself, outside of any transaction, and the update last"
		}
		fmt.Fprintf(&b, "-- Version %d, %s.\n", s.Version, how)
		if s.Oldest > 1 {
			fmt.Fprintf(&b, "-- Programs that know version %d or newer may work on it.\n", s.Oldest)
		}
		if s.Version > 1 && !s.Online {
			b.WriteString("-- Set lock_timeout to a few seconds, and try again when it strikes.\n")
		}
		b.WriteString(strings.TrimSpace(s.Text) + "\n" + s.Record(table) + "\n")
	}
	return b.String(), nil
}
