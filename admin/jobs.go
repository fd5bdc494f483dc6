package admin

import (
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/admin/view"
)

// jobsPage is a list of jobs.
type jobsPage struct {
	Filter chosen
	Text   string // that the arguments hold
	Jobs   []stint.JobInfo
	Crew   view.Crew `json:"-"` // whose beats are no news
	Kinds  []string
	Queues []string
	Next   template.URL // query of the next page
	Before string       // what this page is before
	Looked int          // how many jobs were looked at for the text
	Cut    bool         // whether the search ended before it had seen all
	Seen   stint.ID     `json:"-"` // down to which job it went then, which is another one each time
	Behind template.URL `json:"-"` // query of the page behind that
	All    template.URL `json:"-"` // query of this page without a hurry, where that finds more
}

const jobsOnPage = 50

// jobs lists the jobs of a filter.
func (b *Board) jobs(r *http.Request) (any, error) {
	all := r.URL.Query()
	p := jobsPage{Filter: choice(all), Text: all.Get("text"), Before: all.Get("before")}
	calm := all.Get("calm") != ""
	ask := url.Values{"limit": {strconv.Itoa(jobsOnPage)}, "soon": {strconv.FormatBool(p.Text == "" || !calm)}}
	maps.Copy(ask, p.Filter.query)
	if p.Before != "" {
		ask.Set("before", p.Before)
	}
	if p.Text != "" {
		ask.Set("text", p.Text)
	}
	var page api.JobPage
	if err := b.call(r.Context(), http.MethodGet, address("/jobs", ask), nil, &page); err != nil {
		return nil, err
	}
	p.Jobs, p.Looked, p.Cut = page.Jobs, page.Looked, page.Cut
	with := func(more url.Values) template.URL {
		query := url.Values{}
		maps.Copy(query, p.Filter.query)
		if p.Text != "" {
			query.Set("text", p.Text)
		}
		maps.Copy(query, more)
		return template.URL(query.Encode())
	}
	behind := with(url.Values{"before": {page.Next.String()}})
	switch {
	case p.Cut:
		p.Seen, p.Behind = page.Next, behind
		if p.Text != "" && !calm {
			p.All = with(url.Values{"before": all["before"], "calm": {"true"}})
		}
	case page.Next != 0:
		p.Next = behind
	}
	var err error
	if p.Crew, err = view.CrewFor(r.Context(), b.store, p.Jobs...); err != nil {
		return nil, err
	}
	kinds, err := b.store.Kinds(r.Context())
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		p.Kinds = append(p.Kinds, k.Name)
		if !slices.Contains(p.Queues, k.Queue) {
			p.Queues = append(p.Queues, k.Queue)
		}
	}
	if p.Text != "" || p.Before != "" {
		return stillJobs{p}, nil
	}
	return p, nil
}

// stillJobs is a list that is dear to look at, or that does not change at its top.
type stillJobs struct{ jobsPage }

func (stillJobs) frozen() {}

// bulkPage says what would be done to how many jobs, and asks whether to.
type bulkPage struct {
	Verb    *bulkVerb
	Filter  chosen
	Group   *chosenGroup  // of errors, whose jobs are meant; nil for all of the filter
	States  []stint.State // that are meant when the filter says none
	Matched int
	More    bool // at least so many
	First   []stint.JobInfo
	Crew    view.Crew
}

func (bulkPage) frozen()         {}
func (p bulkPage) title() string { return p.Verb.Title }

// bulkVerb is what is done to many jobs.
type bulkVerb struct {
	Name   string // of the verb, and of the API's operation
	Title  string
	Does   string // what it does, in a sentence
	Danger bool
	states []stint.State
}

var bulkVerbs = []bulkVerb{
	{"cancel", "Cancel jobs", "What waits is cancelled at once; what runs is asked to stop.", true, view.Cancellable},
	{"retry", "Run jobs again", "What waits is due now; what ended is done again as a new job, once.", false, view.Retriable},
	{"delete", "Delete jobs", "Jobs that have ended are removed with all of their attempts. There is no way back.", true, view.Deletable},
}

func verbOf(name string) (*bulkVerb, error) {
	i := slices.IndexFunc(bulkVerbs, func(v bulkVerb) bool { return v.Name == name })
	if i < 0 {
		return nil, errNowhere
	}
	return &bulkVerbs[i], nil
}

// bulk tells what would be done.
func (b *Board) bulk(r *http.Request) (any, error) {
	verb, err := verbOf(r.URL.Query().Get("verb"))
	if err != nil {
		return nil, err
	}
	p := bulkPage{Verb: verb, Filter: choice(r.URL.Query()), Group: groupOf(r.URL.Query())}
	if p.Group != nil {
		return b.bulkGroup(r, p)
	}
	var told api.Done[string]
	body := map[string]any{"filter": p.Filter.json(), "dry_run": true}
	if err := b.call(r.Context(), http.MethodPost, "/jobs/"+verb.Name, body, &told); err != nil {
		return nil, err
	}
	p.Matched, p.More, p.First = told.Matched, told.Next != 0, told.First
	if len(p.Filter.query["state"]) == 0 {
		p.States = verb.states
	}
	p.Crew, err = view.CrewFor(r.Context(), b.store, p.First...)
	return p, err
}

// bulkGroup tells what would be done to the jobs of a group of errors.
func (b *Board) bulkGroup(r *http.Request, p bulkPage) (any, error) {
	if p.Verb.Name != groupVerb {
		return nil, errNowhere
	}
	ids, err := b.groupJobs(r.Context(), r.URL.Query())
	if err != nil {
		return nil, err
	}
	p.Matched = len(ids)
	for _, id := range ids[:min(len(ids), firstOfGroup)] {
		j, err := b.store.Job(r.Context(), id)
		if errors.Is(err, stint.ErrNotFound) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		p.First = append(p.First, *j)
	}
	p.Crew, err = view.CrewFor(r.Context(), b.store, p.First...)
	return p, err
}

const (
	groupVerb    = "retry" // the only one for groups of errors
	firstOfGroup = 10      // jobs that are shown of one before something is done
)
