package schemapage

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

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
