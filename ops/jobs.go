package ops

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/dashboard/view"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// ListJobs lists jobs, the newest first.
var ListJobs = declare(&Op[JobsQuery, JobPage]{
	Decl: Decl{
		Name: "jobs list", Method: http.MethodGet, Path: "/jobs", Summary: "List jobs, the newest first",
		Doc: "Jobs that fit all of the filters. What is left over is reached by `before` with the `next` of the answer. " +
			"Filters by tag, urn, correlation, schedule, outcome, error, faulty, attempts, longer (than 5s at least) and the states " +
			"scheduled, retrying, failed and cancelled look only at jobs that may fit; with others alone, the search goes through all jobs until it has found enough, or, with `soon`, for a twentieth of a second.",
	},
	do: func(ctx context.Context, l *Local, in *JobsQuery) (JobPage, error) {
		f, err := l.filter(ctx, in.Filter, "query")
		if err != nil {
			return JobPage{}, err
		}
		f.Before, f.Limit = stint.ID(in.Before), cmp.Or(in.Limit, 50)
		if in.Text != "" && l.blind(ctx) {
			return JobPage{}, &ForbiddenError{Needs: guard.Operator}
		}
		found, err := view.Search{Inspector: l.Store, Text: in.Text, Soon: in.Soon}.Find(ctx, f)
		return JobPage{Jobs: l.seen(ctx, found.Jobs), Next: found.Next, Looked: found.Looked, Cut: found.Cut}, err
	},
})

// JobsQuery chooses jobs to be listed.
type JobsQuery struct {
	Filter
	Page
	Text string `query:"text" maxLength:"1000" doc:"What their arguments hold, upper and lower case told apart, or what one of them is: args.customer.id = 7. It is looked for in the newest 100,000 jobs that fit the rest"`
	Soon bool   `query:"soon" doc:"Search for a twentieth of a second only, but for what it is in the midst of then. What is found by then is the answer, even if it is nothing, and next says where to go on"`
}

// JobPage is a page of a list of jobs.
type JobPage struct {
	Jobs []stint.JobInfo `json:"items"`
	Next stint.ID        `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`

	// Cut is of a search by text or with soon, Looked of one by text.
	Looked int  `json:"searched,omitempty" doc:"How many jobs were looked at for the text"`
	Cut    bool `json:"cut_off,omitempty" doc:"Whether the search ended before it had found as many as were wanted, or seen all: it goes on at next"`
}

// FindJobs lists the ids of jobs.
var FindJobs = declare(&Op[IDsQuery, IDPage]{
	Decl: Decl{
		Name: "jobs find", Method: http.MethodGet, Path: "/jobs/ids", Summary: "List the ids of jobs, the newest first",
		Doc: "The same for those who want to name jobs, or to count them: many at once, and nothing else of them.",
	},
	do: func(ctx context.Context, l *Local, in *IDsQuery) (IDPage, error) {
		f, err := l.filter(ctx, in.Filter, "query")
		if err != nil {
			return IDPage{}, err
		}
		f.Before, f.Limit = stint.ID(in.Before), cmp.Or(in.Limit, 1000)
		ids, err := list(l.Store.Find(ctx, f))
		p := IDPage{IDs: ids}
		if err == nil && len(ids) == f.Limit {
			p.Next = ids[f.Limit-1]
		}
		return p, err
	},
})

// IDsQuery chooses jobs whose ids are listed.
type IDsQuery struct {
	Filter
	Before int64 `query:"before" minimum:"1" doc:"Only jobs with a lower id: the next of the page before"`
	Limit  int   `query:"limit" minimum:"1" maximum:"10000" default:"1000" doc:"How many at most"`
}

// IDPage is a page of a list of ids.
type IDPage struct {
	IDs  []stint.ID `json:"items"`
	Next stint.ID   `json:"next,omitempty" doc:"The before of the next page; absent on the last one"`
}

// MostWait is how long one request waits for the end of a job, at most.
const MostWait = time.Minute

// ShowInput says which job to show, and how long to wait for its end.
type ShowInput struct {
	ID   int64  `path:"id" minimum:"1"`
	Wait string `query:"wait" maxLength:"32" doc:"Answer when the job has ended, or after this time, as in 30s; a minute at most"`
}

func (s ShowInput) check() error {
	if d, err := ReadDuration("wait", s.Wait); err != nil || d > MostWait {
		return inError("query", valid.Invalid("wait", "%q is not a duration from 0 to %v, such as 30s", s.Wait, retry.FormatDuration(MostWait)))
	}
	return nil
}

// Waits is how much longer than another question this one may take.
func (s ShowInput) Waits() time.Duration { d, _ := ReadDuration("wait", s.Wait); return d }

// ShowJob shows a job, or is [stint.ErrNotFound]. It can wait for the job to end.
var ShowJob = declare(&Op[ShowInput, view.Job]{
	Decl: Decl{
		Name: "jobs show", Method: http.MethodGet, Path: "/jobs/{id}", Summary: "Show a job with all of its attempts",
		Doc: "With `wait` the answer comes as soon as the job has ended, or when that time is over: its `state` says which. Ask again to go on waiting. " +
			"Those who wait on one server share its queries. It answers 503 when it stops; ask again then, too.",
	},
	do: func(ctx context.Context, l *Local, in *ShowInput) (view.Job, error) {
		id := stint.ID(in.ID)
		shown, err := l.ended(ctx, id, in.Waits())
		if err == nil && shown.JobInfo == nil {
			shown, err = view.JobOf(ctx, l.Store, id)
		}
		if err == nil {
			shown.JobInfo = &l.seen(ctx, []stint.JobInfo{*shown.JobInfo})[0]
			l.seenSteps(ctx, shown.Steps)
			l.seenSignals(ctx, shown.Signals)
			l.seenLog(ctx, &shown)
		}
		return shown, err
	},
})

// ended waits for the end of a job. It returns no job when the time is over first.
func (l *Local) ended(ctx context.Context, id stint.ID, wait time.Duration) (view.Job, error) {
	if wait <= 0 {
		return view.Job{}, nil
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	job, err := l.Store.Await(limited, id)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		err = nil
	}
	if err != nil || job == nil {
		return view.Job{}, err
	}
	return view.JobFrom(ctx, l.Store, job)
}

// JobName is where a job's id stands.
type JobName struct {
	ID int64 `path:"id" minimum:"1"`
}

// ListSteps lists the steps of a job, or is [stint.ErrNotFound].
var ListSteps = declare(&Op[JobName, List[view.Step]]{
	Decl: Decl{
		Name: "jobs steps", Method: http.MethodGet, Path: "/jobs/{id}/steps", Summary: "List the recorded steps of a job, with their whole results",
		Doc: "In the order in which they ended. A job has up to 10,000, whose results have 16 MiB together.",
	},
	do: func(ctx context.Context, l *Local, in *JobName) (List[view.Step], error) {
		id := stint.ID(in.ID)
		steps, err := listed(view.StepsOf(ctx, l.Store, id))
		if err == nil && len(steps.Items) == 0 {
			_, err = l.Store.Job(ctx, id)
		}
		l.seenSteps(ctx, steps.Items)
		return steps, err
	},
})

// CountJobs counts the jobs in each state.
var CountJobs = declare(&Op[None, map[stint.State]int64]{
	Decl: Decl{Name: "jobs count", Method: http.MethodGet, Path: "/jobs/counts", Summary: "Count the jobs in each state, at one moment", Within: changeTime},
	do: func(ctx context.Context, l *Local, _ *None) (map[stint.State]int64, error) {
		return l.Store.Counts(ctx)
	},
})

// ListKinds lists the kinds that engines declared.
var ListKinds = lists(Decl{Name: "kinds list", Path: "/kinds", Summary: "List the kinds that engines declared, with the defaults of their jobs"}, Store.Kinds)
