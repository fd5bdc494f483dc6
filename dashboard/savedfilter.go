package dashboard

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/stint-go/stint/ops"
)

// savedFilter is a saved filter as a link to the jobs that fit.
type savedFilter struct {
	ops.SavedFilter
	Link   template.URL // query
	Chosen bool         // whether the page shows it
}

// saved reads the saved filters for a list of jobs.
func (b *Dashboard) saved(r *http.Request, p *jobsPage) error {
	query := url.Values{}
	if maps.Copy(query, p.Filter.query); p.Text != "" {
		query.Set("text", p.Text)
	}
	p.Query = ops.EncodeFilter(query)
	all, err := ops.Items(ops.ListFilters.Call(r.Context(), b.api, ops.None{}))
	for _, f := range all {
		p.Saved = append(p.Saved, savedFilter{SavedFilter: f, Link: template.URL(f.Query), Chosen: f.Query == p.Query})
	}
	return err
}

// saveFilter saves the filter of a list of jobs under the name that was typed.
func (b *Dashboard) saveFilter(r *http.Request) (flash, error) {
	return b.operate(r, ops.SaveFilter, strings.TrimSpace(r.PostForm.Get("name")))
}
