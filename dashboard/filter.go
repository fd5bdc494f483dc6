package dashboard

import (
	"html/template"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
)

// chosen is a filter as it stands in the address of a page.
type chosen struct {
	query url.Values // its parameters only, none of them empty
}

// filterFields are the parameters of a filter, with what people call them. They are
// the API's.
var filterFields = []struct{ Name, Label string }{
	{"state", "State"},
	{"kind", "Kind"},
	{"queue", "Queue"},
	{"tag", "Tag"},
	{"urn", "URN"},
	{"source", "Source"},
	{"correlation", "Correlation"},
	{"schedule", "Schedule"},
	{"flow", "Jobs of flow"},
	{"error", "Error contains"},
	{"error_class", "Error class"},
	{"outcome", "Attempt outcome"},
	{"attempts", "Attempts more than"},
	{"longer", "Attempt longer than"},
	{"created_after", "Enqueued since"},
	{"created_before", "Enqueued before"},
	{"due_after", "Due since"},
	{"due_before", "Due before"},
	{"finished_after", "Finished since"},
	{"finished_before", "Finished before"},
	{"flows", "Flows only"},
	{"faulty", "Faulty only"},
	{"not_retried", "Not retried yet"},
}

// choice reads a filter from the parameters of a page.
func choice(all url.Values) chosen {
	c := chosen{url.Values{}}
	for _, f := range filterFields {
		for _, v := range all[f.Name] {
			if v = strings.TrimSpace(v); v != "" {
				c.query.Add(f.Name, instant(f.Name, v))
			}
		}
	}
	return c
}

// instant is a time as the API takes it, of one that was entered without a zone, which is UTC: scripts see to the
// viewer's. Whatever else is entered stays as it is.
func instant(field, entered string) string {
	if !strings.HasSuffix(field, "_after") && !strings.HasSuffix(field, "_before") {
		return entered
	}
	if t, ok := inUTC(entered); ok {
		return t.Format(time.RFC3339)
	}
	return entered
}

// inUTC reads a time without a zone, as people write it.
func inUTC(entered string) (time.Time, bool) {
	for _, form := range []string{time.DateOnly, "2006-01-02 15:04", time.DateTime} {
		if t, err := time.Parse(form, strings.Replace(entered, "T", " ", 1)); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
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
		if !slices.Contains([]string{"state", "kind", "queue", "tag", "error", "finished_after", "finished_before"}, name) {
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
			rest := maps.Clone(c.query)
			delete(rest, f.Name)
			parts = append(parts, Part{f.Label, strings.Join(values, " or "), template.URL(rest.Encode())})
		}
	}
	return parts
}

// filter is what operations take.
func (c chosen) filter() (*ops.Filter, error) {
	var f ops.Filter
	return &f, ops.Fill(&f, "", c.query)
}
