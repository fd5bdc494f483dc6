// Package schemapage writes docs/schema.md: every table, column, index, view and
// function of both schemas, with what it is for. It is for tests; make
// schema-page writes the page, and a test fails when that is due.
//
// What there is comes from the catalogue of an installed schema, and what it
// means from the comments of the files that install it: the block above a
// statement is about what it creates, and the end of a column's line about the
// column. Nothing may be without.
package schemapage

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Source is what a schema's files say, by names without schema and prefix.
type Source struct {
	Intro     string              // the first block of the first file
	Order     map[string]int      // of tables, sequences and views, as they are created
	Tables    map[string]string   // what each of those is for
	Columns   map[string]string   // by table.column
	Indexes   map[string]string   // why each is there
	Functions map[string]Function // by name
}

// Function is one as its file has it.
type Function struct{ Comment, Text string }

var (
	creates   = regexp.MustCompile(`^create (?:or replace )?(?:unique )?(table|view|index|sequence|function) (?:concurrently )?(?:if not exists )?(?:stint[._])?(\w+)`)
	column    = regexp.MustCompile(`^  (\w+) `)
	noColumns = regexp.MustCompile(`^  (check|constraint|primary|unique|foreign)\b`)
)

// Read reads the files of a schema.
func Read(files ...string) *Source {
	s := &Source{Order: map[string]int{}, Tables: map[string]string{}, Columns: map[string]string{}, Indexes: map[string]string{}, Functions: map[string]Function{}}
	for _, text := range files {
		p := parser{source: s}
		for line := range strings.Lines(text) {
			p.line(strings.TrimSuffix(line, "\n"))
		}
	}
	return s
}

// parser goes through a file line by line.
type parser struct {
	source *Source
	block  []string // comment lines right above
	index  string   // the comment of the index that was the last statement

	table, column string // that is being created
	function      string
	text          strings.Builder
	until         string // how the statement ends
}

func (p *parser) line(line string) {
	switch {
	case p.function != "":
		p.text.WriteString(line + "\n")
		if strings.HasSuffix(line, "$$;") {
			f := p.source.Functions[p.function]
			f.Text = p.text.String()
			p.source.Functions[p.function], p.function = f, ""
		}
	case p.table != "":
		p.inTable(line)
	case p.until != "":
		if strings.HasSuffix(line, p.until) {
			p.until = ""
		}
	case strings.HasPrefix(line, "--"):
		p.block = append(p.block, strings.TrimPrefix(strings.TrimPrefix(line, "--"), " "))
	case line == "":
		if p.source.Intro == "" && len(p.block) > 0 {
			p.source.Intro = paragraphs(p.block)
		}
		p.block, p.index = nil, ""
	default:
		p.statement(line)
	}
}

// statement begins one.
func (p *parser) statement(line string) {
	comment := paragraphs(p.block)
	p.block = nil
	if p.until = ";"; strings.HasPrefix(line, "do $$") {
		p.until = "$$;"
	}
	if m := creates.FindStringSubmatch(line); m != nil {
		kind, name := m[1], m[2]
		p.source.Order[name] = len(p.source.Order)
		switch kind {
		case "table":
			p.source.Tables[name], p.table, p.until = comment, name, ""
			return
		case "view", "sequence":
			p.source.Tables[name] = comment
		case "index":
			// Those that stand together share what is said above the first.
			if comment == "" {
				comment = p.index
			}
			p.source.Indexes[name] = comment
			p.index = comment
		case "function":
			p.source.Functions[name], p.function, p.until = Function{Comment: comment}, name, ""
			p.text.Reset()
			p.line(line)
			return
		}
	}
	if code, _, _ := strings.Cut(line, " -- "); strings.HasSuffix(strings.TrimSpace(code), p.until) {
		p.until = ""
	}
}

func (p *parser) inTable(line string) {
	code, comment, _ := strings.Cut(line, "--")
	comment = strings.TrimSpace(comment)
	switch m := column.FindStringSubmatch(code); {
	case strings.HasPrefix(line, ")"):
		p.table, p.column, p.block = "", "", nil
		if !strings.HasSuffix(line, ";") {
			p.until = ";"
		}
	case strings.TrimSpace(code) == "" && (p.column == "" || !strings.HasPrefix(line, "   ")):
		p.block = append(p.block, comment) // above a column
	case strings.TrimSpace(code) == "":
		p.source.Columns[p.column] += " " + comment // goes on
	case noColumns.MatchString(code):
		p.column, p.block = "", nil
	case m != nil:
		p.column = p.table + "." + m[1]
		p.source.Columns[p.column] = strings.TrimSpace(strings.Join(append(p.block, comment), " "))
		p.block = nil
	}
}

// paragraphs joins the lines of a comment; what is indented in it is code.
func paragraphs(lines []string) string {
	var b strings.Builder
	code := false
	for i, line := range lines {
		indented := strings.HasPrefix(line, "  ")
		switch {
		case indented && !code:
			b.WriteString("\n\n```sql\n")
		case !indented && code:
			b.WriteString("```\n")
		case i > 0 && !indented && line != "" && lines[i-1] != "":
			b.WriteString(" ")
		}
		code = indented
		switch {
		case indented:
			b.WriteString(strings.TrimPrefix(line, "  ") + "\n")
		case line == "":
			b.WriteString("\n\n")
		default:
			b.WriteString(line)
		}
	}
	if code {
		b.WriteString("```")
	}
	text := regexp.MustCompile(`\n{3,}`).ReplaceAllString(b.String(), "\n\n")
	text = strings.TrimSpace(strings.TrimPrefix(text, "stint: "))
	return strings.ToUpper(text[:min(1, len(text))]) + text[min(1, len(text)):]
}

// Schema is what is installed.
type Schema struct {
	Name    string // PostgreSQL or SQLite
	Prefix  string // of every name: "stint." or "stint_"
	Source  *Source
	Tables  []Table
	Seqs    []Table // sequences, which have a name only
	Views   []Table
	Public  []Routine // functions for people
	Others  []Routine // functions for the program
	Writers []Writer
}

// Table is one, or a view.
type Table struct {
	Name    string // without prefix
	Columns []Column
	Keys    []string // primary key first
	Checks  []string
	Indexes []Index
}

// Column is one of a table or view.
type Column struct{ Name, Type, Null, Default, Meaning string }

// Index is one beside the keys.
type Index struct{ Name, On string }

// Routine is a function with its signature.
type Routine struct{ Name, Signature, Returns string }

// Writer is a function or a file of the program with statements in it.
type Writer struct{ Name, Text string }

// Page is the page, and everything that lacks an explanation.
func Page(intro string, schemas ...*Schema) (page string, missing []string) {
	var b strings.Builder
	b.WriteString(intro)
	for _, s := range schemas {
		p := &printer{Schema: s, first: schemas[0]}
		p.schema()
		b.WriteString(p.String())
		missing = append(missing, p.missing...)
	}
	return b.String(), missing
}

// printer prints one schema. What it does not explain, the first one may.
type printer struct {
	*Schema
	strings.Builder
	first   *Schema
	missing []string
}

func (p *printer) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// said is a meaning, or a note that there is none.
func (p *printer) said(what string, meanings ...string) string {
	meaning := cmp.Or(meanings...)
	if meaning == "" {
		p.missing = append(p.missing, p.Name+": "+what+" is not explained")
	}
	return meaning
}

func (p *printer) schema() {
	p.printf("\n## %s\n\n%s\n", p.Name, p.Source.Intro)
	for _, list := range [][]Table{p.Tables, p.Views} {
		slices.SortFunc(list, func(a, b Table) int { return p.Source.Order[a.Name] - p.Source.Order[b.Name] })
	}
	for _, t := range p.Tables {
		p.table(t)
	}
	for _, q := range p.Seqs {
		p.printf("\n### Sequence `%s%s`\n\n%s\n", p.Prefix, q.Name, p.said("sequence "+q.Name, p.Source.Tables[q.Name]))
	}
	for _, v := range p.Views {
		p.printf("\n### View `%s%s`\n\n%s\n", p.Prefix, v.Name, p.said("view "+v.Name, p.Source.Tables[v.Name]))
		p.printf("\n| column | type | meaning |\n|---|---|---|\n")
		for _, c := range v.Columns {
			p.printf("| `%s` | %s | %s |\n", c.Name, c.Type, cell(p.said("column "+v.Name+"."+c.Name, p.meanings(v.Name, c)...)))
		}
	}
	if len(p.Public) > 0 {
		p.printf("\n### Functions for people and programs in any language\n")
	}
	for _, f := range p.Public {
		p.printf("\n#### `%s%s`\n\n```\n%s\n  returns %s\n```\n\n%s\n", p.Prefix, f.Name, f.Signature, f.Returns, p.said("function "+f.Name, p.Source.Functions[f.Name].Comment))
	}
	if len(p.Others) > 0 {
		p.printf("\n### Functions that the program calls\n\n| function | what it does |\n|---|---|\n")
	}
	for _, f := range p.Others {
		p.printf("| `%s` | %s |\n", f.Name, cell(p.said("function "+f.Name, p.Source.Functions[f.Name].Comment)))
	}
}

func (p *printer) table(t Table) {
	p.printf("\n### `%s%s`\n\n%s\n", p.Prefix, t.Name, p.said("table "+t.Name, p.Source.Tables[t.Name]))
	p.printf("\n| column | type | null | default | meaning |\n|---|---|---|---|---|\n")
	for _, c := range t.Columns {
		p.printf("| `%s` | %s | %s | %s | %s |\n", c.Name, c.Type, c.Null, code(c.Default), cell(p.said("column "+t.Name+"."+c.Name, p.meanings(t.Name, c)...)))
	}
	p.printf("\n")
	for _, key := range t.Keys {
		p.printf("- %s\n", strings.ToUpper(key[:1])+key[1:])
	}
	for _, check := range t.Checks {
		p.printf("- Holds: %s\n", code(check))
	}
	for _, verb := range verbs {
		if by := p.by(verb.pattern, t.Name); len(by) > 0 {
			p.printf("- %s by %s\n", verb.done, strings.Join(by, ", "))
		}
	}
	if len(t.Indexes) > 0 {
		p.printf("\n| index | on | why |\n|---|---|---|\n")
	}
	for _, i := range t.Indexes {
		p.printf("| `%s` | %s | %s |\n", i.Name, code(i.On), cell(p.said("index "+i.Name, p.Source.Indexes[i.Name], p.first.Source.Indexes[i.Name])))
	}
}

// meanings are where a column may be explained: by itself, in the other
// schema, and for a view in the tables that it is made of.
func (p *printer) meanings(table string, c Column) []string {
	all := []string{c.Meaning, p.Source.Columns[table+"."+c.Name], p.first.Source.Columns[table+"."+c.Name]}
	if !slices.ContainsFunc(p.Views, func(v Table) bool { return v.Name == table }) {
		return all
	}
	for _, v := range p.first.Views {
		for _, of := range v.Columns {
			if v.Name == table && of.Name == c.Name {
				all = append(all, of.Meaning)
			}
		}
	}
	for _, of := range []string{"entries", "waiting", "executions"} {
		all = append(all, p.first.Source.Columns[of+"."+c.Name])
	}
	return all
}

var verbs = []struct{ pattern, done string }{
	{"insert into", "Inserted"}, {"update", "Updated"}, {"delete from", "Deleted"},
}

// by lists who has a statement of that sort on a table.
func (p *printer) by(verb, table string) []string {
	pattern := regexp.MustCompile(verb + ` ` + regexp.QuoteMeta(p.Prefix+table) + `\b`)
	var names []string
	for _, w := range p.Writers {
		if pattern.MatchString(w.Text) {
			names = append(names, "`"+w.Name+"`")
		}
	}
	return names
}

// cell is a text for a table: in one line.
func cell(text string) string {
	text = regexp.MustCompile("(?s)```sql\n(.*?)\n```").ReplaceAllString(text, "`$1`")
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + cell(text) + "`"
}
