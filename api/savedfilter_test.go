package api_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/api"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// saveFilter asks for a filter to be saved.
func (s *site) saveFilter(status int, name, query string) api.Problem {
	s.Helper()
	return get[api.Problem](s, status, "PUT", "/filters/"+ops.Segment(name), ops.FilterQuery{Query: query})
}

// filters are those that who asks sees, as their names with their queries.
func (s *site) filters() (all []string) {
	s.Helper()
	for _, f := range items[ops.SavedFilter](s, 200, "GET", "/filters", nil) {
		all = append(all, f.Name+": "+f.Query+f.Problem)
	}
	return all
}

func TestFiltersAreSavedRenamedAndDeleted(t *testing.T) {
	s := open(t)
	wants := func(want ...string) {
		t.Helper()
		if got := s.filters(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("saved are %q, want %q", got, want)
		}
	}
	wants()
	put := func(name, query string) ops.FilterSaved {
		t.Helper()
		return get[ops.FilterSaved](s, 200, "PUT", "/filters/"+ops.Segment(name), ops.FilterQuery{Query: query})
	}
	if f := put("a/b ..", "state=retrying&kind=+mail+&queue=&state=failed&state=failed&finished_after=1h"); f.Replaced || f.By != "tester" || f.At.IsZero() || f.Query != "finished_after=1h&kind=mail&state=failed&state=retrying" {
		t.Errorf("it is saved as %+v", f)
	}
	put("..", "text=a%26b&error=no")
	if f := put("..", "faulty=true"); !f.Replaced {
		t.Errorf("the second one is %+v", f)
	}
	wants("..: faulty=true", "a/b ..: finished_after=1h&kind=mail&state=failed&state=retrying")
	if c := get[ops.Changed](s, 200, "POST", "/filters/a%2Fb%20../rename", `{"to":"b"}`); !c.Changed {
		t.Error("it is not renamed")
	}
	wants("..: faulty=true", "b: finished_after=1h&kind=mail&state=failed&state=retrying")
	for status, path := range map[int]string{404: "/filters/none/rename", 409: "/filters/%2E%2E/rename"} {
		want := map[int]error{404: store.ErrNoFilter, 409: store.ErrFilterExists}[status]
		if p := get[api.Problem](s, status, "POST", path, `{"to":"b"}`); !errors.Is(&p, want) {
			t.Errorf("%s answers %+v, want %v", path, p, want)
		}
	}
	for _, want := range []bool{true, false} {
		if c := get[ops.Changed](s, 200, "DELETE", "/filters/b", nil); c.Changed != want {
			t.Errorf("deleted: %v, want %v", c.Changed, want)
		}
	}
	wants("..: faulty=true")
	for n := range store.MaxSavedFilters - 1 {
		put(fmt.Sprint(n), "faulty=true")
	}
	if p := s.saveFilter(http.StatusConflict, "more", "faulty=true"); !errors.Is(&p, store.ErrManyFilters) {
		t.Errorf("one too many is answered with %+v", p)
	}
}

func TestAFilterIsReadWhenItIsSaved(t *testing.T) {
	s := open(t)
	for query, want := range map[string]string{
		"before=7":                          "no such parameter",
		"limit=7":                           "no such parameter",
		"after=7":                           "no such parameter",
		"soon=true":                         "no such parameter",
		"calm=true&kind=k":                  "no such parameter",
		"colour=red":                        "no such parameter",
		"kind=":                             "no condition",
		"&":                                 "no condition",
		"kind=a&kind=b":                     "2 times",
		"kind=%zz":                          "invalid URL escape",
		"state=odd":                         `no state "odd"`,
		"outcome=odd":                       "odd",
		"longer=x":                          "longer",
		"attempts=x":                        "whole number",
		"attempts=-1":                       "less than 0",
		"flow=0":                            "less than 1",
		"flows=maybe":                       "neither true nor false",
		"due_after=soon":                    "neither an instant",
		"due_after=1h&due_before=2h":        "not later than the beginning",
		"error=%ff":                         "not UTF-8",
		"text=a%00b":                        "NUL",
		"kind=%0A":                          "no condition",
		"kind=a%0Ab":                        "control character",
		"text=" + strings.Repeat("x", 1001): "1001 characters",
		"urn=" + strings.Repeat("x", 256):   "256 characters",
		"state=failed;kind=k":               "semicolon",
	} {
		if p := s.saveFilter(422, "f", query); !strings.Contains(p.Detail, want) || p.Errors[0].Location != "body.query" {
			t.Errorf("%.40s is answered with %s at %v, want %q", query, p.Detail, p.Errors[0], want)
		}
	}
	for _, name := range []string{" f", "f\n", strings.Repeat("f", 256)} {
		if p := s.saveFilter(422, name, "kind=k"); !errors.Is(&p, stint.ErrInvalid) {
			t.Errorf("the name %.10q is answered with %+v", name, p)
		}
	}
	if got := s.filters(); got != nil {
		t.Errorf("saved are %q", got)
	}
	// Each parameter of a list, and nothing of its pages, may be saved.
	for _, p := range parameters(s.doc.Paths[api.Prefix+"/jobs"].Get) {
		status := 200
		switch p.Name {
		case "before", "limit", "after", "soon":
			status = 422
		}
		value := "7"
		switch {
		case p.Schema.Enum != nil:
			value = fmt.Sprint(p.Schema.Enum[0])
		case p.Schema.Items != nil:
			value = fmt.Sprint(p.Schema.Items.Enum[0])
		case p.Schema.Type == "boolean":
			value = "true"
		case p.Name == "longer" || p.Schema.Format == "instant-or-duration":
			value = "7s"
		}
		s.saveFilter(status, "f", url.Values{p.Name: {value}}.Encode())
	}
}

func TestFiltersThatCannotBeReadAreListedWithWhatIsWrong(t *testing.T) {
	s := open(t)
	for name, query := range map[string]string{"newer": "colour=red&kind=k", "odd": "state=odd", "broken": "%zz"} { // as another version would
		if _, _, err := s.store.SaveFilter(t.Context(), store.SavedFilter{Name: name, Query: query}); err != nil {
			t.Fatal(err)
		}
	}
	for i, f := range items[ops.SavedFilter](s, 200, "GET", "/filters", nil) {
		if want := []string{"invalid URL escape", "colour: a saved filter has no such parameter", `no state "odd"`}[i]; !strings.Contains(f.Problem, want) {
			t.Errorf("%s has the problem %q, want %q", f.Name, f.Problem, want)
		}
	}
	s.who.Role = guard.Viewer
	if got := s.filters(); got != nil {
		t.Errorf("a viewer sees %q", got)
	}
}

func TestFiltersThatCompareWhatIsHiddenAreHidden(t *testing.T) {
	s := open(t)
	const secret = "4111-1111"
	for name, query := range map[string]string{"card": "text=" + secret, "said": "error=" + secret + "&kind=k", "open": "error_class=io&kind=k"} {
		s.saveFilter(200, name, query)
	}
	if got := s.filters(); len(got) != 3 {
		t.Errorf("an operator sees %q", got)
	}
	s.who.Role = guard.Viewer
	if got := fmt.Sprint(s.filters()); got != "[open: error_class=io&kind=k]" {
		t.Errorf("a viewer sees %s", got)
	}
}
