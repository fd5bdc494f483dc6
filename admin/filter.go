package admin

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
)

// chosen is a filter as it stands in the address of a page.
type chosen struct {
	query url.Values // its parameters only, none of them empty
}

// filterFields are the parameters of a filter, with what people call them. They are
// the API's.
var filterFields = []struct {
	Name, Label string
	kind        string // of its JSON: list, bool, int; else string
}{
	{Name: "state", Label: "State", kind: "list"},
	{Name: "kind", Label: "Kind"},
	{Name: "queue", Label: "Queue"},
	{Name: "tag", Label: "Tag"},
	{Name: "urn", Label: "URN"},
	{Name: "source", Label: "Source"},
	{Name: "correlation", Label: "Correlation"},
	{Name: "schedule", Label: "Schedule"},
	{Name: "error", Label: "Error holds"},
	{Name: "error_class", Label: "Error class"},
	{Name: "outcome", Label: "An attempt"},
	{Name: "attempts", Label: "More attempts than", kind: "int"},
	{Name: "longer", Label: "Longer than"},
	{Name: "created_after", Label: "Enqueued from"},
	{Name: "created_before", Label: "Enqueued before"},
	{Name: "due_after", Label: "Due from"},
	{Name: "due_before", Label: "Due before"},
	{Name: "finished_after", Label: "Ended from"},
	{Name: "finished_before", Label: "Ended before"},
	{Name: "faulty", Label: "Faulty only", kind: "bool"},
}

// choice reads a filter from the parameters of a page.
func choice(all url.Values) chosen {
	c := chosen{url.Values{}}
	for _, f := range filterFields {
		for _, v := range all[f.Name] {
			if v = strings.TrimSpace(v); v != "" {
				c.query.Add(f.Name, v)
			}
		}
	}
	return c
}

// Get is the value of a parameter.
func (c chosen) Get(name string) string { return c.query.Get(name) }

// Has reports whether one of the states is chosen.
func (c chosen) Has(state stint.State) bool {
	return slices.Contains(c.query["state"], string(state))
}

// Any reports whether anything is chosen.
func (c chosen) Any() bool { return len(c.query) > 0 }

// More reports whether anything is chosen that is not among the first few fields.
func (c chosen) More() bool {
	for name := range c.query {
		switch name {
		case "state", "kind", "queue", "tag", "error":
		default:
			return true
		}
	}
	return false
}

// With is the query with one more parameter, in place of what it had of that name.
func (c chosen) With(name, value string) template.URL {
	q := url.Values{}
	maps.Copy(q, c.query)
	q.Set(name, value)
	return template.URL(q.Encode())
}

// Query are the parameters.
func (c chosen) Query() url.Values { return c.query }

// Encode is the query.
func (c chosen) Encode() template.URL { return template.URL(c.query.Encode()) }

// Part is one condition, for people, and the query without it.
type Part struct {
	Label, Value string
	Without      template.URL
}

// Parts are the conditions.
func (c chosen) Parts() []Part {
	var parts []Part
	for _, f := range filterFields {
		if values := c.query[f.Name]; len(values) > 0 {
			rest := url.Values{}
			for n, v := range c.query {
				if n != f.Name {
					rest[n] = v
				}
			}
			parts = append(parts, Part{f.Label, strings.Join(values, " or "), template.URL(rest.Encode())})
		}
	}
	return parts
}

// json is the filter as the API takes it in a body. What cannot be read goes along
// as text: the API says what is wrong with it.
func (c chosen) json() map[string]any {
	body := map[string]any{}
	for _, f := range filterFields {
		values := c.query[f.Name]
		if len(values) == 0 {
			continue
		}
		body[f.Name] = values[0]
		switch f.kind {
		case "list":
			body[f.Name] = values
		case "bool":
			if is, err := strconv.ParseBool(values[0]); err == nil {
				body[f.Name] = is
			}
		case "int":
			if n, err := strconv.Atoi(values[0]); err == nil {
				body[f.Name] = n
			}
		}
	}
	return body
}
