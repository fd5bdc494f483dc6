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
	"regexp"
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
