package dashboard

import (
	"context"
	"errors"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/ops"
)

// jobsPage is a list of jobs.
type jobsPage struct {
	Filter chosen
	Text   string // that the arguments contain
	Jobs   []stint.JobInfo
	Crew   view.Crew `json:"-"` // heartbeats are no change of the page
	Kinds  []string
	Queues []string
	Next   template.URL      // query of the next page
	Before string            // what this page is before
	Looked int               // how many jobs were looked at for the text
	Cut    bool              // whether the search ended before it had seen all
	Seen   stint.ID          `json:"-"` // the oldest job that it saw, which differs each time
	Behind template.URL      `json:"-"` // query of the page after that
	All    template.URL      `json:"-"` // query of this page as a longer search
	Wrong  map[string]string // what is wrong with the filter, by its fields
	Saved  []savedFilter
	Query  string // of the filter, to be saved; empty for none
}

const jobsOnPage = 50

// jobs lists the jobs of a filter.
func (b *Dashboard) jobs(r *http.Request) (any, error) {
	all := r.URL.Query()
	p := jobsPage{Filter: choice(all), Text: all.Get("text"), Before: all.Get("before")}
	calm := all.Get("calm") != ""
	ask := ops.JobsQuery{Text: p.Text, Soon: p.Text == "" || !calm}
	err := errors.Join(ops.Fill(&ask.Filter, "", p.Filter.query), ops.Fill(&ask.Page, "", url.Values{"before": all["before"]}))
	if err := b.saved(r, &p); err != nil {
		return nil, err
	}
	var page ops.JobPage
	if ask.Limit = jobsOnPage; err == nil {
		page, err = ops.ListJobs.Call(r.Context(), b.api, ask)
	}
	if invalid, ok := errors.AsType[*stint.InvalidError](err); ok {
		p.Wrong = map[string]string{strings.TrimPrefix(invalid.Field, "query."): invalid.Problem}
		p.Kinds, p.Queues, err = b.offered(r)
		return wrongJobs{p}, err
	}
	if err != nil {
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
	if p.Crew, err = view.CrewFor(r.Context(), b.store, p.Jobs...); err != nil {
		return nil, err
	}
	if p.Kinds, p.Queues, err = b.offered(r); err != nil {
		return nil, err
	}
	if p.Text != "" || p.Before != "" {
		return stillJobs{p}, nil
	}
	return p, nil
}

// offered returns the names of kinds and of their queues, which forms offer.
func (b *Dashboard) offered(r *http.Request) (kinds, queues []string, err error) {
	all, err := b.store.Kinds(r.Context())
	for _, k := range all {
		kinds = append(kinds, k.Name)
		if !slices.Contains(queues, k.Queue) {
			queues = append(queues, k.Queue)
		}
	}
	return kinds, queues, err
}

// stillJobs is a list that costs much to make, or that does not change at its top.
type stillJobs struct{ jobsPage }

func (stillJobs) frozen() {}

// wrongJobs is the form of a filter that means nothing, with all that was entered.
type wrongJobs struct{ jobsPage }

func (wrongJobs) frozen()     {}
func (wrongJobs) status() int { return http.StatusUnprocessableEntity }

// bulkPage says what would be done to how many jobs, and asks to confirm it.
type bulkPage struct {
	Verb    *bulkVerb
	Filter  chosen
	Group   *chosenGroup  // of errors; nil for all jobs of the filter
	IDs     []stint.ID    // that are ticked, in place of a filter
	Back    string        // where those were ticked
	States  []stint.State // chosen when the filter has none
	Matched int
	More    bool // at least so many
	First   []stint.JobInfo
	Crew    view.Crew
}

func (bulkPage) frozen()         {}
func (p bulkPage) title() string { return p.Verb.Title }

// bulkVerb describes a verb of many jobs.
type bulkVerb struct {
	Name   string // of the verb
	Title  string
	Does   string // what it does, in a sentence
	Danger bool
	states []stint.State
}

// Word is the verb at the beginning of a sentence.
func (v bulkVerb) Word() string { return strings.ToUpper(v.Name[:1]) + v.Name[1:] }

var bulkVerbs = []bulkVerb{
	{"cancel", "Cancel jobs", "Waiting jobs are cancelled at once. Running jobs are asked to stop.", true, view.Cancellable},
	{"retry", "Retry jobs", "Waiting jobs are due now. Jobs that have ended are retried as new jobs, each once.", false, view.Retriable},
	{"delete", "Delete jobs", "Jobs that have ended are deleted with all of their attempts. This cannot be undone.", true, view.Deletable},
}

// verbNamed finds a verb of many jobs.
func verbNamed(name string) *bulkVerb {
	return &bulkVerbs[slices.IndexFunc(bulkVerbs, func(v bulkVerb) bool { return v.Name == name })]
}

// verbOf finds the operation on jobs that a form or a page names.
func verbOf(q url.Values) (ops.Operation, error) {
	if op := ops.Find("jobs", q.Get("verb")); op != nil && ops.SelectionOf(op.Input()) != nil {
		return op, nil
	}
	return nil, errNowhere
}

// bulk finds out what would be done.
func (b *Dashboard) bulk(r *http.Request) (any, error) {
	q := r.URL.Query()
	op, err := verbOf(q)
	if err != nil {
		return nil, err
	}
	p := bulkPage{Verb: verbNamed(op.Describe().Verb()), Filter: choice(q), Group: groupOf(q)}
	switch {
	case p.Group != nil:
		ids, err := b.groupJobs(r.Context(), op, p.Group, q)
		if err != nil {
			return nil, err
		}
		return b.bulkNamed(r, ids, p)
	case q.Get("ticked") != "":
		if p.Back = q.Get("back"); !isLocal(p.Back) {
			p.Back = "/jobs"
		}
		if err := ops.Fill(op.Input(), "", url.Values{"ids": q["id"]}); err != nil {
			return nil, err
		}
		for _, text := range q["id"] {
			id, _ := strconv.ParseInt(text, 10, 64) // it was checked
			p.IDs = append(p.IDs, stint.ID(id))
		}
		return b.bulkNamed(r, p.IDs, p)
	}
	in, out := op.Input(), op.Output()
	s := ops.SelectionOf(in)
	if s.Filter, err = p.Filter.filter(); err != nil {
		return nil, err
	}
	s.DryRun = true
	if err := b.api.Call(r.Context(), op, in, out); err != nil {
		return nil, err
	}
	done := out.(ops.Answered)
	p.Matched, p.First = done.Tried()
	p.More = done.More() != 0
	if len(p.Filter.query["state"]) == 0 {
		p.States = p.Verb.states
	}
	p.Crew, err = view.CrewFor(r.Context(), b.store, p.First...)
	return p, err
}

// bulkNamed shows jobs that are named, and not chosen by a filter: of a group of errors, or ticked.
func (b *Dashboard) bulkNamed(r *http.Request, ids []stint.ID, p bulkPage) (_ any, err error) {
	p.Matched = len(ids)
	p.First, p.Crew, err = b.firstOf(r.Context(), ids)
	return p, err
}

// firstOf reads the first few of jobs, and what must be known to tell their situation.
func (b *Dashboard) firstOf(ctx context.Context, ids []stint.ID) (first []stint.JobInfo, crew view.Crew, err error) {
	for _, id := range ids[:min(len(ids), 10)] {
		j, err := b.store.Job(ctx, id)
		if errors.Is(err, stint.ErrNotFound) {
			continue // it was deleted meanwhile
		}
		if err != nil {
			return nil, crew, err
		}
		first = append(first, *j)
	}
	crew, err = view.CrewFor(ctx, b.store, first...)
	return first, crew, err
}
