package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/retry"
)

// jobs registers what is seen of jobs, and how they are enqueued.
func (a *api) jobs() {
	register(a, operation{
		method: http.MethodGet, path: "/jobs", id: "list-jobs", tag: "jobs", summary: "List jobs, the newest first",
		description: "Jobs that fit all of the filters. What is left over is reached by `before` with the `next` of the answer. " +
			"Filters by tag, urn, correlation, schedule, outcome, error, faulty, attempts, longer (than 5s at least) and the states " +
			"scheduled, retrying, failed and cancelled look only at jobs that may fit; with others alone, the search goes through all jobs until it has found enough, or, with `soon`, for a twentieth of a second.",
	}, a.listJobs)
	register(a, operation{
		method: http.MethodGet, path: "/job-ids", id: "find-jobs", tag: "jobs", summary: "List the ids of jobs, the newest first",
		description: "The same for those who want to name jobs, or to count them: many at once, and nothing else of them.",
	}, a.findJobs)
	register(a, operation{
		method: http.MethodGet, path: "/jobs/{id}", id: "show-job", tag: "jobs", summary: "Show a job with all of its attempts",
	}, a.showJob)
	register(a, operation{
		method: http.MethodPost, path: "/jobs", id: "enqueue-jobs", needs: guard.Operator, tag: "jobs", summary: "Enqueue jobs", status: http.StatusCreated,
		description: "Stores all of the jobs or none. With an `idempotency_key` a request whose answer was lost can be sent again: " +
			"the first stores the job, and a repetition is answered with its id and `duplicate`.",
	}, a.enqueueJobs)
	register(a, operation{
		method: http.MethodGet, path: "/counts", id: "count-jobs", tag: "jobs", summary: "Count the jobs in each state, at one moment", within: changeTime,
	}, a.countJobs)
}

// JobPage is a page of a list of jobs.
type JobPage struct {
	Jobs []stint.JobInfo `json:"jobs"`
	Next stint.ID        `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`

	// Cut is of a search by text or with soon, Looked of one by text.
	Looked int  `json:"looked,omitempty" doc:"How many jobs were looked at for the text"`
	Cut    bool `json:"cut,omitempty" doc:"Whether the search ended before it had found as many as were wanted, or seen all: it goes on at next"`
}

func (a *api) listJobs(ctx context.Context, in *struct {
	Filter
	Page
	Text string `query:"text" maxLength:"1000" doc:"What their arguments hold, upper and lower case told apart. It is looked for in the newest 100,000 jobs that fit the rest"`
	Soon bool   `query:"soon" doc:"Search for a twentieth of a second only, but for what it is in the midst of then. What is found by then is the answer, even if it is nothing, and next says where to go on"`
}) (*answer[JobPage], error) {
	f, err := a.filter(ctx, in.Filter, "query")
	if err != nil {
		return nil, err
	}
	f.Before, f.Limit = stint.ID(in.Before), in.Limit
	if in.Text != "" && a.Blind(ctx) {
		return nil, forbidden(guard.Operator)
	}
	found, err := view.Search{Inspector: a.store, Text: in.Text, Soon: in.Soon}.Find(ctx, f)
	if err != nil {
		return nil, err
	}
	return &answer[JobPage]{JobPage{Jobs: a.seen(ctx, found.Jobs), Next: found.Next, Looked: found.Looked, Cut: found.Cut}}, nil
}

// IDPage is a page of a list of ids.
type IDPage struct {
	IDs  []stint.ID `json:"ids"`
	Next stint.ID   `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`
}

func (a *api) findJobs(ctx context.Context, in *struct {
	Filter
	Before int64 `query:"before" minimum:"1" doc:"Only jobs with a lower id: the next of the page before"`
	Limit  int   `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"How many at most"`
}) (*answer[IDPage], error) {
	f, err := a.filter(ctx, in.Filter, "query")
	if err != nil {
		return nil, err
	}
	f.Before, f.Limit = stint.ID(in.Before), in.Limit
	ids, err := a.store.Find(ctx, f)
	if err != nil {
		return nil, err
	}
	p := IDPage{IDs: append([]stint.ID{}, ids...)}
	if len(ids) == in.Limit {
		p.Next = ids[len(ids)-1]
	}
	return &answer[IDPage]{p}, nil
}

func (a *api) showJob(ctx context.Context, in *struct {
	ID int64 `path:"id" minimum:"1"`
}) (*answer[view.Job], error) {
	shown, err := view.JobOf(ctx, a.store, stint.ID(in.ID))
	if err != nil {
		return nil, err
	}
	shown.JobInfo = &a.seen(ctx, []stint.JobInfo{*shown.JobInfo})[0]
	return &answer[view.Job]{shown}, nil
}

// NewJob is a job to be enqueued. What is not said is what the kind's declaration
// says.
type NewJob struct {
	Kind           string          `json:"kind" minLength:"1" maxLength:"255"`
	Args           json.RawMessage `json:"args,omitempty" doc:"Any JSON value; {} unless given"`
	Queue          string          `json:"queue,omitempty" maxLength:"255"`
	Priority       *int            `json:"priority,omitempty" minimum:"-100" maximum:"100" doc:"Lower first"`
	At             time.Time       `json:"at,omitzero" doc:"Not to be started before; the database's clock decides"`
	In             string          `json:"in,omitempty" doc:"The same counted from now by the database's clock: 90s, 2h. Not both"`
	Retry          string          `json:"retry,omitempty" doc:"What happens after a failure: none, fixed:2:1s, exponential:10:1m, ..."`
	Timeout        string          `json:"timeout,omitempty" doc:"Bounds each attempt: 30s"`
	StartBy        time.Time       `json:"start_by,omitzero" doc:"The instant after which no attempt begins"`
	StartWithin    string          `json:"start_within,omitempty" doc:"The same counted from when it is due. Not both"`
	MaxLosses      *int            `json:"max_losses,omitempty" minimum:"0" maximum:"1000" doc:"How often it may be lost with an engine that died; 0 is at most once"`
	Tags           []string        `json:"tags,omitempty" maxItems:"50"`
	URN            string          `json:"urn,omitempty" maxLength:"255"`
	Source         string          `json:"source,omitempty" maxLength:"255"`
	Metadata       json.RawMessage `json:"metadata,omitempty" doc:"A JSON object that travels beside the arguments"`
	Correlation    string          `json:"correlation,omitempty" maxLength:"255"`
	IdempotencyKey string          `json:"idempotency_key,omitempty" maxLength:"255"`
}

// job fills in what the kind's declaration says.
func (j *NewJob) job(of stint.Declaration) (stint.NewJob, error) {
	var opts []stint.Option
	duration := func(field, text string, option func(time.Duration) stint.Option) error {
		if text == "" {
			return nil
		}
		d, err := retry.ParseDuration(text)
		if err != nil {
			return stint.Invalid(field, "%v", err)
		}
		opts = append(opts, option(d))
		return nil
	}
	if j.In != "" && !j.At.IsZero() {
		return stint.NewJob{}, stint.Invalid("at", "a job has a delay or an instant, not both")
	}
	if j.StartWithin != "" && !j.StartBy.IsZero() {
		return stint.NewJob{}, stint.Invalid("start by", "a job begins by an instant or within a time, not both")
	}
	if !j.At.IsZero() {
		opts = append(opts, stint.At(j.At))
	}
	if !j.StartBy.IsZero() {
		opts = append(opts, stint.StartBy(j.StartBy))
	}
	for _, d := range []struct {
		field, text string
		option      func(time.Duration) stint.Option
	}{{"in", j.In, stint.In}, {"timeout", j.Timeout, stint.Timeout}, {"start within", j.StartWithin, stint.StartWithin}} {
		if err := duration(d.field, d.text, d.option); err != nil {
			return stint.NewJob{}, err
		}
	}
	if j.Retry != "" {
		p, err := retry.Parse(j.Retry)
		if err != nil {
			return stint.NewJob{}, stint.Invalid("retry", "%v", err)
		}
		opts = append(opts, stint.Retry(p))
	}
	if j.Queue != "" {
		opts = append(opts, stint.Queue(j.Queue))
	}
	if j.Priority != nil {
		opts = append(opts, stint.Priority(*j.Priority))
	}
	if j.MaxLosses != nil {
		opts = append(opts, stint.MaxLosses(*j.MaxLosses))
	}
	opts = append(opts, stint.Tag(j.Tags...), stint.URN(j.URN), stint.Source(j.Source), stint.Metadata(j.Metadata),
		stint.Correlation(j.Correlation), stint.IdempotencyKey(j.IdempotencyKey))
	return of.Job(j.Args, opts...), nil
}

// NewJobs are jobs to be enqueued, all of them or none.
type NewJobs struct {
	Jobs  []NewJob `json:"jobs" minItems:"1" maxItems:"10000" nullable:"false"`
	Force bool     `json:"force,omitempty" doc:"Also of kinds that no engine ever declared"`
	Exact bool     `json:"exact,omitempty" doc:"What a job does not say is the default, whatever its kind's declaration says"`
}

// details are how many jobs of which kinds these are.
func (n NewJobs) details() any {
	kinds := map[string]int{}
	for _, j := range n.Jobs {
		kinds[j.Kind]++
	}
	return map[string]any{"jobs": len(n.Jobs), "kinds": kinds}
}

func (a *api) enqueueJobs(ctx context.Context, in *struct{ Body NewJobs }) (*answer[[]stint.Receipt], error) {
	declare, err := a.declarations(ctx, in.Body.Force, in.Body.Exact)
	if err != nil {
		return nil, err
	}
	jobs := make([]stint.NewJob, len(in.Body.Jobs))
	for i := range in.Body.Jobs {
		if jobs[i], err = declare(&in.Body.Jobs[i], fmt.Sprintf("body.jobs[%d]", i)); err != nil {
			return nil, err
		}
	}
	receipts, err := a.client.EnqueueReceipts(ctx, jobs)
	if err != nil {
		return nil, err
	}
	return &answer[[]stint.Receipt]{receipts}, nil
}

// restricted reports whether a job may do whatever its arguments say.
func (a *api) restricted(j NewJob) bool { return slices.Contains(a.Restricted, j.Kind) }

// declarations returns what makes jobs of what requests say and the declarations
// of their kinds. An unknown kind is an error unless it is forced, so that a
// misspelt name does not wait for ever. Exact jobs get nothing of a declaration.
func (a *api) declarations(ctx context.Context, force, exact bool) (func(j *NewJob, path string) (stint.NewJob, error), error) {
	known, err := a.store.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	return func(j *NewJob, path string) (stint.NewJob, error) {
		declared := stint.Declaration{Name: j.Kind}
		switch k := slices.IndexFunc(known, func(d stint.Declaration) bool { return d.Name == j.Kind }); {
		case k >= 0 && !exact:
			declared = known[k]
		case k < 0 && !force:
			return stint.NewJob{}, &at{path, stint.Invalid("kind", "no engine ever declared the kind %q; force enqueues it all the same", j.Kind)}
		}
		if a.restricted(*j) && guard.Of(ctx).Role < guard.Admin {
			return stint.NewJob{}, huma.Error403Forbidden("jobs of the kind "+j.Kind+" do whatever they say: this is for the role admin", &huma.ErrorDetail{Location: path + ".kind", Message: "it is restricted"})
		}
		job, err := j.job(declared)
		if err == nil {
			err = job.Check(a.Limits)
		}
		if err != nil {
			return stint.NewJob{}, &at{path, err}
		}
		return job, nil
	}, nil
}

func (a *api) countJobs(ctx context.Context, _ *struct{}) (*answer[map[stint.State]int64], error) {
	counts, err := a.store.Counts(ctx)
	if err != nil {
		return nil, err
	}
	return &answer[map[stint.State]int64]{counts}, nil
}
