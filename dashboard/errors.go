package dashboard

import (
	"context"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// errorsPage shows errors in groups.
type errorsPage struct {
	Kind, Queue string
	Hours       string // how far back; empty for all that is there
	Report      sample.Seen[report.ErrorReport]
	Blind       bool // messages are hidden from the role
}

// frozen: reading errors costs much.
func (errorsPage) frozen() {}

// Retry is the query of the page that retries the jobs of a group that have failed or wait
// for their next attempt.
func (p errorsPage) Retry(g report.ErrorGroup) template.URL {
	q := url.Values{"verb": {ops.RetryJobs.Verb()}, "group": {"errors"}, "state": {string(stint.Failed), string(stint.Retrying)}}
	rest, _ := query("kind", g.Kind, "error_class", g.Class, "place", g.Place, "queue", p.Queue, "hours", p.Hours)
	return template.URL(q.Encode()) + "&" + rest
}

// errors groups errors. Without a filter pages share a sample.
func (b *Dashboard) errors(r *http.Request) (any, error) {
	q := r.URL.Query()
	p := errorsPage{Kind: q.Get("kind"), Queue: q.Get("queue"), Hours: q.Get("hours"), Blind: b.config.API.Blind(r.Context())}
	if p.Kind == "" && p.Queue == "" && p.Hours == "" {
		p.Report = b.figures.errors.Get(r.Context())
		return p, nil
	}
	f, err := b.errorFilter(r.Context(), q)
	if err != nil {
		return nil, err
	}
	at := time.Now()
	rep, err := b.store.Errors(r.Context(), f)
	p.Report = sample.Seen[report.ErrorReport]{Value: rep, At: at}
	return p, err
}

// errorFilter reads which errors are meant from the parameters of a page.
func (b *Dashboard) errorFilter(ctx context.Context, q url.Values) (report.ErrorFilter, error) {
	f := report.ErrorFilter{Kind: q.Get("kind"), Queue: q.Get("queue")}
	if text := q.Get("hours"); text != "" {
		hours, err := time.ParseDuration(text + "h")
		if err != nil || hours <= 0 {
			return f, valid.Invalid("hours", "%q is not a number of hours", text)
		}
		now, err := view.Now(ctx, b.store)
		if err != nil {
			return f, err
		}
		f.Since = now.Add(-hours)
	}
	return f, nil
}

// chosenGroup is a group of errors that the parameters of a page name. Filters of jobs
// have no places.
type chosenGroup struct {
	Place, Hours string
	Errors       template.URL // query of the page of errors that shows it
}

// groupOf reads it; nil if none is named. A group may have no place.
func groupOf(q url.Values) *chosenGroup {
	if q.Get("group") == "" {
		return nil
	}
	g := chosenGroup{Place: q.Get("place"), Hours: q.Get("hours")}
	g.Errors, _ = query("kind", q.Get("kind"), "queue", q.Get("queue"), "hours", g.Hours)
	return &g
}

// groupJobs finds the jobs of the group that a page's parameters name, of the
// states that they name, by falling ID.
func (b *Dashboard) groupJobs(ctx context.Context, op ops.Operation, q url.Values) ([]stint.ID, error) {
	if op != ops.Operation(ops.RetryJobs) {
		return nil, errNowhere // retry is the only verb for groups of errors
	}
	f, err := b.errorFilter(ctx, q)
	if err != nil {
		return nil, err
	}
	rep, err := b.store.Errors(ctx, f)
	if err != nil {
		return nil, err
	}
	class, place := q.Get("error_class"), q.Get("place")
	i := slices.IndexFunc(rep.Groups, func(g report.ErrorGroup) bool { return g.Class == class && g.Place == place && g.Kind == f.Kind })
	if i < 0 {
		return nil, nil
	}
	all := rep.Groups[i].IDs
	in := make(map[stint.ID]bool, len(all))
	for _, id := range all {
		in[id] = true
	}
	var found []stint.ID
	such := store.Filter{Kind: f.Kind, Class: class, Before: all[0] + 1}
	for _, state := range q["state"] {
		such.States = append(such.States, stint.State(state))
	}
	for ids, err := range store.FindEach(ctx, b.store, such, report.MaxErrors) {
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if in[id] {
				found = append(found, id)
			}
		}
		if ids[len(ids)-1] <= all[len(all)-1] {
			break // the group has no older ones
		}
	}
	return found, nil
}
