package dashboard

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/chart"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/sample"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// errorsPage shows errors in groups, or one group with its newest jobs.
type errorsPage struct {
	Kind, Queue string
	Hours       string // how far back; empty for all that is there
	Key, State  string // empty for all groups, and for those that are open or returned
	Skip        int    // how many groups come before the first that is shown
	Report      sample.Seen[report.ErrorReport]
	Blind       bool // messages are hidden from the role

	Jobs []stint.JobInfo // of the one group
	Crew view.Crew
}

// frozen: reading errors costs much.
func (errorsPage) frozen() {}

// Retrying are the parameters of what retries the jobs of a group that have failed or wait
// for their next attempt.
func (p errorsPage) Retrying(g report.ErrorGroup) url.Values {
	q := url.Values{"verb": {ops.RetryJobs.Verb()}, "state": {string(stint.Failed), string(stint.Retrying)}}
	for name, value := range map[string]string{"group": g.Key, "kind": g.Kind, "queue": p.Queue, "hours": p.Hours} {
		if value != "" {
			q.Set(name, value)
		}
	}
	return q
}

// Retry is the query of the page that shows them first.
func (p errorsPage) Retry(g report.ErrorGroup) template.URL {
	return template.URL(p.Retrying(g).Encode())
}

// errorRange is a time that the page offers.
type errorRange struct {
	Label  string
	Query  template.URL
	Chosen bool
}

// Ranges are the times that people look at most.
func (p errorsPage) Ranges() (all []errorRange) {
	for _, r := range []struct{ label, hours string }{{"Last hour", "1"}, {"Last day", "24"}, {"Last week", "168"}, {"All", ""}} {
		q, _ := query("kind", p.Kind, "queue", p.Queue, "state", p.State, "key", p.Key, "hours", r.hours) // they are pairs
		all = append(all, errorRange{r.label, q, r.hours == p.Hours})
	}
	return all
}

// groupsShown is how many groups a page shows.
const groupsShown = 100

// first is how many groups come before those of the page, which may have become fewer.
func (p errorsPage) first() int {
	return min(p.Skip, max(0, len(p.Report.Value.Groups)-1)/groupsShown*groupsShown)
}

// Shown are the groups of the page.
func (p errorsPage) Shown() []report.ErrorGroup {
	rest := p.Report.Value.Groups[p.first():]
	return rest[:min(groupsShown, len(rest))]
}

// Cut says which groups those are where they are not all.
func (p errorsPage) Cut() string {
	all, shown := len(p.Report.Value.Groups), len(p.Shown())
	if shown == all {
		return ""
	}
	return fmt.Sprintf("Groups %d to %d of %d.", p.first()+1, p.first()+shown, all)
}

// From is the query of the page that shows the groups before these, or after them; empty
// where there are none.
func (p errorsPage) From(step int) (q template.URL) {
	skip := max(0, p.first()+step*groupsShown)
	if skip == p.first() || skip >= len(p.Report.Value.Groups) {
		return ""
	}
	q, _ = query("kind", p.Kind, "queue", p.Queue, "state", p.State, "hours", p.Hours, "skip", skip)
	return q
}

// Only is the query of the page that shows one group.
func (p errorsPage) Only(g report.ErrorGroup) template.URL {
	q, _ := query("key", g.Key, "kind", g.Kind, "queue", p.Queue, "hours", p.Hours)
	return q
}

// errorStates are the states by which the page is filtered: what the address says, and what
// people call it.
var errorStates = []struct{ Value, Label string }{
	{"", "open and returned"}, {string(report.ErrorsReturned), "returned"}, {string(report.ErrorsResolved), "resolved"}, {string(report.ErrorsMuted), "muted"}, {ops.AnyErrors, "all"},
}

// States are those to choose from.
func (errorsPage) States() any { return errorStates }

// Filtered reports whether groups are left out, but for those that are hidden.
func (p errorsPage) Filtered() bool {
	return p.Kind != "" || p.Queue != "" || p.Hours != "" || p.Key != "" || p.State != ""
}

// Hidden is how many groups are not shown since they are resolved or muted.
func (p errorsPage) Hidden() int {
	if p.Key != "" || p.State != "" {
		return 0
	}
	c := p.Report.Value.Counts
	return c.Resolved + c.Muted
}

// Trend draws how many attempts of a group failed from the beginning of the time to now.
func (p errorsPage) Trend(g report.ErrorGroup) template.HTML {
	c := chart.Sparkline{Title: "Attempts, in steps of " + words.Rough(p.Report.Value.Step), Unit: chart.Count, Class: chart.Bad}
	for _, n := range g.Trend {
		c.Values = append(c.Values, float64(n))
	}
	return template.HTML(c.SVG()) // what it says is escaped by it
}

// errors groups errors. Without a filter pages share a sample, but for the page that says
// what came of a form.
func (b *Dashboard) errors(r *http.Request) (any, error) {
	q := r.URL.Query()
	p := errorsPage{Kind: q.Get("kind"), Queue: q.Get("queue"), Hours: q.Get("hours"), Key: q.Get("key"), State: q.Get("state"), Blind: b.config.API.Blind(r.Context())}
	if p.Blind && p.Key != "" {
		return nil, errNowhere // a key is made of what messages say
	}
	if text := q.Get("skip"); text != "" {
		n, err := strconv.ParseUint(text, 10, 31)
		if err != nil {
			return nil, valid.Invalid("skip", "%q is not a number of groups", text)
		}
		p.Skip = int(n)
	}
	if _, err := r.Cookie(flashCookie); err != nil && !p.Filtered() {
		p.Report = b.figures.errors.Get(r.Context())
		return p, nil
	}
	f, err := b.errorFilter(r.Context(), q)
	if err != nil {
		return nil, err
	}
	if f.Key = p.Key; f.Key != "" {
		err = report.CheckErrorKey(f.Key)
	}
	if err == nil {
		f.State, err = ops.ErrorsInput{Key: p.Key, State: p.State}.InState()
	}
	if err != nil {
		return nil, err
	}
	at := time.Now()
	rep, err := b.store.Errors(r.Context(), f)
	if err != nil {
		return nil, err
	}
	p.Report = sample.Seen[report.ErrorReport]{Value: rep, At: at}
	if p.Key != "" && len(rep.Groups) == 1 {
		p.Jobs, p.Crew, err = b.firstOf(r.Context(), rep.Groups[0].IDs)
	}
	return p, err
}

// errorFilter reads which attempts are meant from the parameters of a page.
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

// chosenGroup is a group of errors that the parameters of a page name by its key. Filters
// of jobs have none.
type chosenGroup struct {
	Key, Hours string
	Errors     template.URL // query of the page of errors that shows it
	Found      *report.ErrorGroup
}

// groupOf reads it; nil if none is named.
func groupOf(q url.Values) *chosenGroup {
	if q.Get("group") == "" {
		return nil
	}
	g := chosenGroup{Key: q.Get("group"), Hours: q.Get("hours")}
	g.Errors, _ = query("kind", q.Get("kind"), "queue", q.Get("queue"), "hours", g.Hours)
	return &g
}

// groupJobs finds the group of errors that a page's parameters name, and its jobs of the
// states that they name, by falling ID.
func (b *Dashboard) groupJobs(ctx context.Context, op ops.Operation, g *chosenGroup, q url.Values) ([]stint.ID, error) {
	if op != ops.Operation(ops.RetryJobs) {
		return nil, errNowhere // retry is the only verb for groups of errors
	}
	f, err := b.errorFilter(ctx, q)
	if err != nil {
		return nil, err
	}
	if f.Key = g.Key; report.CheckErrorKey(f.Key) != nil {
		return nil, report.CheckErrorKey(f.Key)
	}
	rep, err := b.store.Errors(ctx, f)
	if err != nil || len(rep.Groups) == 0 {
		return nil, err
	}
	g.Found = &rep.Groups[0]
	all := g.Found.IDs
	in := make(map[stint.ID]bool, len(all))
	for _, id := range all {
		in[id] = true
	}
	var found []stint.ID
	such := store.Filter{Kind: g.Found.Kind, Class: g.Found.Class, Before: all[0] + 1}
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
