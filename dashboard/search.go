package dashboard

import (
	"context"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/remote"
)

// searchPage is what one text is found to mean.
type searchPage struct {
	Text   string
	Names  []hit
	Jobs   []foundJobs
	Crew   view.Crew
	Filter template.URL // query of the page of jobs that goes on where this search stopped; empty if it did not
}

func (searchPage) frozen() {}

// hit is something that has a page.
type hit struct{ What, Name, Link string }

// foundJobs are the newest jobs that the text means in one way.
type foundJobs struct {
	How  string
	Jobs []stint.JobInfo
	All  template.URL // query of the page with all of them
}

// None reports whether nothing was found.
func (p searchPage) None() bool { return len(p.Names) == 0 && len(p.Jobs) == 0 }

// foundAtOnce is how many jobs, and names, each way of looking shows.
const foundAtOnce = 10

var (
	anID     = regexp.MustCompile(`^(?:(?i:job)\s*)?#?([0-9]{1,18})$`)
	argument = regexp.MustCompile(`^(?:args\.)?([^=\s]+)\s*=\s*(.+)$`)
)

// search looks for what people have in hand: the ID of a job, what it is about, a tag, an argument, or the
// name of anything that has a page. What is meant without doubt is shown at once.
func (b *Dashboard) search(r *http.Request) (any, error) {
	ctx := r.Context()
	p := searchPage{Text: strings.TrimSpace(r.URL.Query().Get("q"))}
	if p.Text == "" {
		return p, nil
	}
	if m := anID.FindStringSubmatch(p.Text); m != nil {
		id, _ := strconv.ParseInt(m[1], 10, 64) // so many digits fit
		switch _, err := b.store.Job(ctx, stint.ID(id)); {
		case err == nil:
			return nil, movedTo("/jobs/" + stint.ID(id).String())
		case !errors.Is(err, stint.ErrNotFound):
			return nil, err
		}
	}
	if err := b.names(r, &p); err != nil {
		return nil, err
	}
	for _, way := range waysOf(p.Text) {
		if way.last && len(p.Jobs)+len(p.Names) > 0 {
			continue
		}
		if err := b.findJobs(ctx, &p, way); err != nil {
			return nil, err
		}
	}
	switch {
	case len(p.Names) == 1 && len(p.Jobs) == 0:
		return nil, movedTo(p.Names[0].Link)
	case len(p.Names) == 0 && len(p.Jobs) == 1 && len(p.Jobs[0].Jobs) == 1 && p.Filter == "":
		return nil, movedTo("/jobs/" + p.Jobs[0].Jobs[0].ID.String())
	}
	var all []stint.JobInfo
	for _, f := range p.Jobs {
		all = append(all, f.Jobs...)
	}
	var err error
	p.Crew, err = view.CrewFor(ctx, b.store, all...)
	return p, err
}

// way is one in which a text may mean jobs.
type way struct {
	how   string
	query url.Values
	last  bool // only if the ways before it found nothing
}

// waysOf are those of a text: an index leads to the jobs of all but that of an argument, which looks at the
// newest jobs.
func waysOf(text string) []way {
	ways := []way{
		{"About " + text, url.Values{"urn": {text}}, false},
		{"With the tag " + text, url.Values{"tag": {text}}, false},
		{"That come from each other: " + text, url.Values{"correlation": {text}}, false},
	}
	if m := argument.FindStringSubmatch(text); m != nil {
		if tag := m[1] + "=" + view.Unquoted(m[2]); tag != text {
			ways = append(ways, way{"With the tag " + tag, url.Values{"tag": {tag}}, false})
		}
		ways = append(ways, way{"With the argument " + m[1], url.Values{"text": {"args." + m[1] + " = " + m[2]}}, false})
	}
	return append(ways, way{"About what begins with " + text, url.Values{"urn": {text + "*"}}, true})
}

// findJobs adds the jobs that a text means in one way. Who may not see arguments does not find jobs by them.
func (b *Dashboard) findJobs(ctx context.Context, p *searchPage, w way) error {
	ask := ops.JobsQuery{Text: w.query.Get("text"), Soon: true}
	filter := choice(w.query)
	if err := ops.Fill(&ask.Filter, "", filter.query); err != nil {
		return nil // no job has such a name
	}
	ask.Limit = foundAtOnce
	found, err := ops.ListJobs.Call(ctx, b.api, ask)
	if refused, ok := errors.AsType[*remote.Error](err); ok && (refused.Status == http.StatusForbidden || refused.Status == http.StatusUnprocessableEntity) {
		return nil
	}
	if err != nil {
		return err
	}
	all := template.URL(w.query.Encode())
	shown := func(j stint.JobInfo) bool {
		return slices.ContainsFunc(p.Jobs, func(f foundJobs) bool {
			return slices.ContainsFunc(f.Jobs, func(other stint.JobInfo) bool { return other.ID == j.ID })
		})
	}
	news := slices.ContainsFunc(found.Jobs, func(j stint.JobInfo) bool { return !shown(j) })
	if news || len(found.Jobs) == foundAtOnce { // or there may be more of them
		p.Jobs = append(p.Jobs, foundJobs{w.how, found.Jobs, all})
	}
	if found.Cut {
		p.Filter = all
	}
	return nil
}

// names adds what has a name that contains the text, upper or lower case.
func (b *Dashboard) names(r *http.Request, p *searchPage) error {
	ctx := r.Context()
	text := strings.ToLower(p.Text)
	seen := map[string]int{}
	add := func(what, name, link string) {
		at := hit{what, name, link}
		if !strings.Contains(strings.ToLower(name), text) || seen[what] == foundAtOnce || slices.Contains(p.Names, at) {
			return
		}
		seen[what]++
		p.Names = append(p.Names, at)
	}
	role := guard.Of(ctx).Role
	for _, page := range b.pages {
		if page.Label != "" && role >= page.needs {
			add("Page", page.Label, page.Link())
		}
	}
	kinds, err := b.store.Kinds(ctx)
	if err != nil {
		return err
	}
	for _, k := range kinds {
		add("Kind", k.Name, "/kinds/"+ops.Segment(k.Name))
	}
	queues, err := b.allQueues(ctx)
	if err != nil {
		return err
	}
	for _, q := range queues.Rows {
		add("Queue", q.Name, "/queues/"+ops.Segment(q.Name))
	}
	limits, err := b.store.Limits(ctx)
	if err != nil {
		return err
	}
	for _, l := range limits {
		add("Limit", l.Name, "/limits/"+ops.Segment(l.Name))
	}
	schedules, err := b.store.Schedules(ctx)
	if err != nil {
		return err
	}
	for _, s := range schedules {
		add("Schedule", s.Name, "/schedules/"+ops.Segment(s.Name))
	}
	engines, err := b.store.Engines(ctx)
	for _, e := range engines {
		add("Engine", e.Instance, "/engines/"+strconv.FormatInt(int64(e.Token), 10))
	}
	return err
}
