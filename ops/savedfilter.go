package ops

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// SavedFilter is a saved filter as who asks may see it.
type SavedFilter struct {
	store.SavedFilter
	Problem string `json:"problem,omitempty" doc:"Why this version cannot read the filter: an older or a newer one saved it"`
}

// ListFilters lists the saved filters.
var ListFilters = declare(&Op[None, List[SavedFilter]]{
	Decl: Decl{
		Name: "filters list", Method: http.MethodGet, Path: "/filters", Summary: "List the filters of jobs that people saved, by name",
		Doc: "A `query` has the parameters of a list of jobs. A server that hides arguments from viewers leaves out filters that compare arguments or what errors say, and those that it cannot read.",
	},
	do: func(ctx context.Context, l *Local, _ *None) (List[SavedFilter], error) {
		saved, err := l.Store.SavedFilters(ctx)
		var all []SavedFilter
		for _, f := range saved {
			query, in, err := readFilter(f.Query)
			shown := SavedFilter{SavedFilter: f}
			if err != nil {
				shown.Problem = err.Error()
			} else {
				shown.Query = query
			}
			if !l.blind(ctx) || err == nil && in.Text == "" && in.Error == "" {
				all = append(all, shown)
			}
		}
		return listed(all, err)
	},
})

// FilterName is where the name of a saved filter stands.
type FilterName struct {
	Name string `path:"name" maxLength:"255"`
}

func (n FilterName) check() error { return inError("path", store.CheckFilterName(n.Name)) }

// NewFilter is a filter to be saved under a name.
type NewFilter struct {
	FilterName
	Body FilterQuery
}

// FilterQuery says what a filter compares.
type FilterQuery struct {
	Query string `json:"query" minLength:"1" maxLength:"8000" doc:"Parameters of a list of jobs as in an address, without those of its pages: kind=mail&state=failed&finished_after=1h"`
}

// FilterSaved is a filter that was saved.
type FilterSaved struct {
	store.SavedFilter
	Replaced bool `json:"replaced" doc:"Whether there was one of the name, which it replaces"`
}

// SaveFilter saves a filter, or is [store.ErrManyFilters].
var SaveFilter = declare(&Op[NewFilter, FilterSaved]{
	Decl: Decl{
		Name: "filters save", Method: http.MethodPut, Path: "/filters/{name}", Needs: guard.Operator, Summary: "Save a filter of jobs under a name, in place of any of that name",
		Doc: "Up to 100 are kept. Durations stay durations: `finished_after=1h` means the last hour whenever the filter is used.",
	},
	do: func(ctx context.Context, l *Local, in *NewFilter) (out FilterSaved, err error) {
		query, read, err := readFilter(in.Body.Query)
		if err == nil {
			_, err = l.filter(ctx, read.Filter, "")
		}
		if wrong, is := errors.AsType[*valid.Error](err); is {
			return out, inError("body", valid.Invalid("query", "%s", wrong.Error()))
		}
		if err != nil {
			return out, err
		}
		out.SavedFilter, out.Replaced, err = l.Store.SaveFilter(ctx, store.SavedFilter{Name: in.Name, Query: query, By: l.who(ctx).Name})
		return out, err
	},
	said: func(_ *NewFilter, out FilterSaved) string {
		if out.Replaced {
			return "the filter " + words.Visible(out.Name) + " is saved in place of the former one"
		}
		return "the filter " + words.Visible(out.Name) + " is saved"
	},
})

// FilterRename says how a saved filter is to be called.
type FilterRename struct {
	FilterName
	Body FilterTo
}

func (r FilterRename) check() error {
	if err := r.FilterName.check(); err != nil {
		return err
	}
	return inError("body", store.CheckFilterName(r.Body.To))
}

// FilterTo is the other name of a filter.
type FilterTo struct {
	To string `json:"to" minLength:"1" maxLength:"255" doc:"The new name, which no other filter has"`
}

// RenameFilter renames a saved filter, or is [store.ErrNoFilter] or [store.ErrFilterExists].
var RenameFilter = declare(&Op[FilterRename, Changed]{
	Decl: Decl{Name: "filters rename", Method: http.MethodPost, Path: "/filters/{name}/rename", Needs: guard.Operator, Summary: "Give a saved filter another name"},
	do: func(ctx context.Context, l *Local, in *FilterRename) (Changed, error) {
		return changed(true, l.Store.RenameFilter(ctx, in.Name, in.Body.To))
	},
	said: func(in *FilterRename, _ Changed) string {
		return "the filter " + words.Visible(in.Name) + " is now " + words.Visible(in.Body.To)
	},
})

// DeleteFilter deletes a saved filter.
var DeleteFilter = declare(&Op[FilterName, Changed]{
	Decl: Decl{Name: "filters delete", Method: http.MethodDelete, Path: "/filters/{name}", Needs: guard.Operator, Summary: "Delete a saved filter", Confirm: true},
	do: func(ctx context.Context, l *Local, in *FilterName) (Changed, error) {
		return changed(l.Store.DeleteFilter(ctx, in.Name))
	},
	said: func(in *FilterName, c Changed) string {
		return "the filter " + words.Visible(in.Name) + " " + c.either("is deleted", "was not there")
	},
})

// parameter bounds one that a saved filter may have, as its tags in [JobsQuery] do.
type parameter struct {
	list    bool // whether it may be repeated
	longest int  // characters
	number  bool
	least   int
}

// savable are the parameters that a saved filter may have: those of a list of jobs, but for its pages.
var savable = func() map[string]parameter {
	all := map[string]parameter{}
	text, _ := reflect.TypeFor[JobsQuery]().FieldByName("Text")
	for f := range reflect.TypeFor[Filter]().Fields() {
		all[f.Tag.Get("query")] = parameterOf(f)
	}
	delete(all, "after")
	all["text"] = parameterOf(text)
	return all
}()

func parameterOf(f reflect.StructField) parameter {
	p := parameter{list: f.Type.Kind() == reflect.Slice, longest: 50}
	if text, ok := f.Tag.Lookup("maxLength"); ok {
		p.longest, _ = strconv.Atoi(text)
	}
	if text, ok := f.Tag.Lookup("minimum"); ok {
		p.number = true
		p.least, _ = strconv.Atoi(text)
	}
	return p
}

// check reports what is wrong with the values of a parameter.
func (p parameter) check(name string, values []string) error {
	if len(values) > 1 && !p.list {
		return valid.Invalid(name, "it is there %d times", len(values))
	}
	for _, v := range values {
		if valid.Clean(v) != v {
			return valid.Invalid(name, "%q is not UTF-8, or has a NUL", v)
		}
		if n := utf8.RuneCountInString(v); n > p.longest {
			return valid.Invalid(name, "it has %d characters, more than %d", n, p.longest)
		}
		if n, err := strconv.Atoi(v); p.number && err == nil && n < p.least {
			return valid.Invalid(name, "%d is less than %d", n, p.least)
		}
	}
	return nil
}

// readFilter reads a saved filter, and returns it as [EncodeFilter] writes it.
func readFilter(query string) (string, JobsQuery, error) {
	var in JobsQuery
	all, err := url.ParseQuery(query)
	if err != nil {
		return "", in, valid.Invalid("query", "%v", err)
	}
	for name, values := range all {
		p, ok := savable[name]
		if !ok {
			return "", in, valid.Invalid(name, "a saved filter has no such parameter")
		}
		all[name] = trimmed(values)
		if err := p.check(name, all[name]); err != nil {
			return "", in, err
		}
	}
	if err := Fill(&in.Filter, "", all); err != nil {
		return "", in, err
	}
	in.Text = all.Get("text")
	if query = EncodeFilter(all); query == "" {
		return "", in, valid.Invalid("query", "the filter has no condition")
	}
	_, err = in.read()
	return query, in, err
}

// EncodeFilter writes the parameters of a filter so that those that mean the same are the same text.
func EncodeFilter(query url.Values) string {
	sorted := url.Values{}
	for name, values := range query {
		if values = slices.Compact(slices.Sorted(slices.Values(values))); len(values) > 0 {
			sorted[name] = values
		}
	}
	return sorted.Encode()
}
