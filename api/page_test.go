package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/internal/proof/pages"
)

// document is as much of the description of the API as the page shows.
type document struct {
	Paths      map[string]map[string]route
	Components struct{ Schemas map[string]schema }
}

type route struct {
	Summary, Description string
	Tags                 []string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                schema
	}
	RequestBody body
	Responses   map[string]body
}

type body struct {
	Content map[string]struct{ Schema schema }
}

type schema struct {
	Ref                  string `json:"$ref"`
	Type                 types
	Format, Description  string
	Enum                 []string
	Items                *schema
	AdditionalProperties json.RawMessage
	Properties           map[string]schema
	Required             []string
	Default              any
	Minimum, Maximum     *float64
}

// types are the type of a value; of one that may be null there are two, and that one says it.
type types string

func (t *types) UnmarshalJSON(text []byte) error {
	var several []types
	if json.Unmarshal(text, &several) == nil {
		*t = several[0]
		return nil
	}
	return json.Unmarshal(text, (*string)(t))
}

// inWords names the type of a value, with links to objects.
func (s schema) inWords() string {
	var of schema
	switch {
	case s.Ref != "":
		name := filepath.Base(s.Ref)
		return pages.Link(name, name)
	case len(s.Enum) > 0:
		return "`" + strings.Join(s.Enum, "`, `") + "`"
	case s.Type == "array" && s.Items != nil:
		return "list of " + s.Items.inWords()
	case s.Type == "object" && json.Unmarshal(s.AdditionalProperties, &of) == nil:
		return "map of " + of.inWords()
	case s.Format == "date-time":
		return "instant"
	case s.Type == "":
		return "any JSON"
	case s.Format == "instant-or-duration", s.Format == "duration":
		return strings.ReplaceAll(s.Format, "-", " ")
	}
	return string(s.Type)
}

// about is what there is to say of a value beyond its type.
func (s schema) about(text string) string {
	if s.Minimum != nil && s.Maximum != nil {
		text += fmt.Sprintf("; %v to %v", *s.Minimum, *s.Maximum)
	}
	if s.Default != nil {
		text += fmt.Sprintf("; %v if absent", s.Default)
	}
	return strings.TrimSpace(pages.Prose(strings.TrimPrefix(text, "; ")))
}

// fields are one line for each field with a description, and one for all others. Those that must be there are bold.
func (s schema) fields() string {
	var out strings.Builder
	var others []string
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		shown := "`" + name + "`"
		if slices.Contains(s.Required, name) {
			shown = "**" + shown + "**"
		}
		shown += " " + p.inWords()
		if about := p.about(p.Description); about != "" {
			fmt.Fprintf(&out, "- %s: %s\n", shown, about)
		} else {
			others = append(others, shown)
		}
	}
	if len(others) > 0 {
		out.WriteString("- " + strings.Join(others, "; ") + "\n")
	}
	return out.String()
}

func (b body) inWords() string {
	for _, kind := range slices.Sorted(maps.Keys(b.Content)) {
		return b.Content[kind].Schema.inWords()
	}
	return ""
}

func (r route) section(method, path string) string {
	var out strings.Builder
	text, role, _ := strings.Cut(r.Description, "For the role ")
	fmt.Fprintf(&out, "\n### %s %s\n\n%s.", method, path, r.Summary)
	if text = strings.TrimSpace(text); text != "" {
		out.WriteString(" " + strings.TrimSpace(pages.Prose(text)))
	}
	fmt.Fprintf(&out, "\n\nRole: %s", strings.TrimSuffix(role, "."))
	if sent := r.RequestBody.inWords(); sent != "" {
		out.WriteString(". Body: " + sent)
	}
	for _, status := range slices.Sorted(maps.Keys(r.Responses)) {
		if status != "default" {
			out.WriteString(". Answer " + strings.TrimSpace(status+" "+r.Responses[status].inWords()))
		}
	}
	out.WriteString(".\n")
	rows := [][]string{{"parameter", "value", "meaning"}}
	for _, p := range r.Parameters {
		if p.In != "path" {
			rows = append(rows, []string{"`" + p.Name + "`", p.Schema.inWords(), p.Schema.about(p.Description)})
		}
	}
	if len(rows) > 1 {
		out.WriteString("\n" + pages.Table(rows...))
	}
	return out.String()
}

func TestThePageOfTheAPIIsWhatTheDocumentSays(t *testing.T) {
	const how = "make reference-pages"
	text, err := os.ReadFile(filepath.Join("testdata", "openapi.json")) // which another test compares with what is served
	if err != nil {
		t.Fatal(err)
	}
	var doc document
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	index, routes := map[string][][]string{}, map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		short := strings.TrimPrefix(path, api.Prefix)
		for _, verb := range []string{"get", "post", "put", "delete"} {
			r, ok := doc.Paths[path][verb]
			if !ok {
				continue
			}
			method, noun := strings.ToUpper(verb), r.Tags[0]
			_, role, _ := strings.Cut(r.Description, "For the role ")
			index[noun] = append(index[noun], []string{pages.Link(method+" "+short, method+" "+short), strings.TrimSuffix(role, "."), r.Summary})
			routes[noun] += r.section(method, short)
			delete(doc.Paths[path], verb)
		}
		for verb := range doc.Paths[path] {
			t.Errorf("the page has no place for %s %s", verb, path)
		}
	}
	var out strings.Builder
	out.WriteString(`# The HTTP API

Everything below ` + "`" + api.Prefix + "`" + ` of a dashboard, from its OpenAPI document, ` + "`" + api.Prefix + "/openapi.json`" + `. How to use it, with
examples, tokens and errors: [dashboard.md](dashboard.md). Roles: a viewer sees, an operator does daily work as well, an admin
everything; a worker takes jobs and does nothing else.

Bodies and answers are JSON. Of an object, fields in **bold** are always in an answer, and must be in a body; a
body without any may be left out. Instants are as in RFC 3339; integers that are durations are nanoseconds. An error answers
with [Problem](#problem).
`)
	nouns := slices.Sorted(maps.Keys(index))
	for _, noun := range nouns {
		out.WriteString("\n" + pages.Link("**"+noun+"**", noun) + "\n\n" + pages.Table(append([][]string{{"request", "role", "what it does"}}, index[noun]...)...))
	}
	for _, noun := range nouns {
		fmt.Fprintf(&out, "\n## %s\n%s", noun, routes[noun])
	}
	out.WriteString("\n## Objects\n")
	inPlace := []string{" " + pages.Link("None", "None"), " nothing"} // what is too short to have a heading
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		object := doc.Components.Schemas[name]
		if items := object.Properties["items"]; len(object.Properties) == 1 && items.Type == "array" {
			inPlace = append(inPlace, pages.Link(name, name), "`items`, a "+items.inWords())
		} else if len(object.Properties) > 0 {
			fmt.Fprintf(&out, "\n### %s\n\n%s", name, object.fields())
		}
	}
	text = []byte(strings.NewReplacer(inPlace...).Replace(out.String()))
	pages.Written(t, "../docs/api.md", string(text), *update, how)
}
