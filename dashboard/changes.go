package dashboard

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"strconv"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// changesPage lists who changed what.
type changesPage struct {
	Filter  url.Values // by, operation, subject, before: what of them is not empty
	Changes []store.Change
	Next    template.URL // query of the next page
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
	f := store.ChangeFilter{By: p.Get("by"), Operation: p.Get("operation"), Subject: p.Get("subject"), Limit: changesOnPage}
	if text := p.Get("before"); text != "" {
		var err error
		if f.Before, err = strconv.ParseInt(text, 10, 64); err != nil || f.Before < 1 {
			return nil, valid.Invalid("before", "%q is no number of a change", text)
		}
	}
	var err error
	if p.Changes, err = b.store.Changes(r.Context(), f); err != nil {
		return nil, err
	}
	if n := len(p.Changes); n == changesOnPage {
		next := url.Values{}
		maps.Copy(next, p.Filter)
		next.Set("before", strconv.FormatInt(p.Changes[n-1].ID, 10))
		p.Next = template.URL(next.Encode())
	}
	return p, nil
}
