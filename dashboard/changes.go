package dashboard

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// changesPage lists who changed what.
type changesPage struct {
	Filter  url.Values // by, operation, subject, before: what of them is not empty
	Changes []store.Change
	Engines map[string]string // the names of those that changes are about, by their tokens
	Next    template.URL      // query of the next page
}

// Get is the value of a parameter.
func (p changesPage) Get(name string) string { return p.Filter.Get(name) }

const changesOnPage = 50

// changes lists the changes of a filter.
func (b *Dashboard) changes(r *http.Request) (any, error) {
	p := changesPage{Filter: url.Values{}}
	for _, name := range []string{"by", "operation", "subject", "before"} {
		if value := r.URL.Query().Get(name); value != "" {
			p.Filter.Set(name, value)
		}
	}
	in := ops.ChangesInput{Limit: changesOnPage}
	if err := ops.Fill(&in, "", p.Filter); err != nil {
		return nil, err
	}
	if p.Filter.Has("before") && in.Before < 1 {
		return nil, valid.Invalid("before", "%q is no number of a change", p.Get("before"))
	}
	list, err := ops.ListChanges.Call(r.Context(), b.api, in)
	if p.Changes = list.Changes; list.Next != 0 {
		next := maps.Clone(p.Filter)
		next.Set("before", strconv.FormatInt(list.Next, 10))
		p.Next = template.URL(next.Encode())
	}
	if err != nil {
		return nil, err
	}
	p.Engines, err = view.EnginesOf(r.Context(), b.store, p.Changes)
	return p, err
}

// Engine is the name of the engine that a change is about; empty if it is about something else, or that is not
// known any more.
func (p changesPage) Engine(c store.Change) string {
	if !strings.HasPrefix(c.Operation, "engines ") {
		return ""
	}
	return p.Engines[c.Subject]
}
