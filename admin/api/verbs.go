package api

import (
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
	"github.com/stint-go/stint/admin/view"
	"github.com/stint-go/stint/retry"
)

// verbs registers what is done to jobs that are named by id or chosen by a filter.
func (a *api) verbs() {
	register(a, operation{
		method: http.MethodPost, path: "/jobs/cancel", id: "cancel-jobs", needs: guard.Operator, tag: "jobs", summary: "Cancel jobs, also running ones",
		description: "What waits or is available is cancelled with the answer. A running job is asked to stop. " + selectionDoc +
			" A filter without states chooses among the jobs that have not ended.",
	}, a.cancelJobs)
	register(a, operation{
		method: http.MethodPost, path: "/jobs/retry", id: "retry-jobs", needs: guard.Operator, tag: "jobs", summary: "Run jobs again: what waits now, what ended as a new job",
		description: "A job that ended is recovered as a new one, which names the old one as its provenance. " + selectionDoc +
			" A filter without states chooses the jobs that are failed or retrying; what was recovered before is then not recovered again.",
	}, a.retryJobs)
	register(a, operation{
		method: http.MethodPost, path: "/jobs/delete", id: "delete-jobs", needs: guard.Operator, tag: "jobs", summary: "Delete jobs that have ended",
		description: "With all of their attempts. " + selectionDoc + " A filter without states chooses among the jobs that have ended.",
	}, a.deleteJobs)
}

const selectionDoc = "Jobs are named by `ids`, and then it is done to all of them or to none, or chosen by a `filter`, the newest first. One request sees to `limit` of those that fit, or " +
	"to fewer when something goes wrong on the way; as long as the answer has a `next`, ask again with that as `before`. With `dry_run` nothing is changed: the answer says how many fit."

// Selection names jobs, or chooses them.
type Selection struct {
	IDs    []stint.ID `json:"ids,omitempty" maxItems:"500" nullable:"false" doc:"The jobs, by name"`
	Filter *Filter    `json:"filter,omitempty" doc:"The jobs that fit; an empty one is every job"`
	Before stint.ID   `json:"before,omitempty" minimum:"1" doc:"Of those that fit only jobs with a lower id: the next of the answer before"`
	Limit  int        `json:"limit,omitempty" minimum:"1" maximum:"10000" default:"10000" doc:"How many of those that fit, at most"`
	DryRun bool       `json:"dry_run,omitempty" doc:"Only tell how many fit, and show the first few"`
	Each   bool       `json:"each,omitempty" doc:"Tell also of each of those that fit what came of it, and not only how many"`
}

func (s Selection) dryRun() bool { return s.DryRun }

// subject is the job that is named alone.
func (s Selection) subject() string {
	if len(s.IDs) == 1 {
		return s.IDs[0].String()
	}
	return ""
}

// Done is what came of it.
type Done[A any] struct {
	// Answers are what came of jobs that were named, by id; with each, also of
	// those that were chosen.
	Answers map[stint.ID]A `json:"answers,omitempty"`

	// Counts are how many of the jobs that were chosen came to what.
	Counts map[string]int `json:"counts,omitempty"`

	// Matched and First are of a dry run: how many jobs fit, and the first of them.
	Matched int             `json:"matched,omitempty"`
	First   []stint.JobInfo `json:"first,omitempty"`

	// Next is there when more may fit: the before of the next request.
	Next stint.ID `json:"next,omitempty"`
}

const (
	batchSize = 500 // jobs that a transaction changes: nobody waits long for it
	firstFew  = 10  // jobs that a dry run shows
)

// verb is what is done to jobs.
type verb[A any] struct {
	states []stint.State // of the jobs that a filter chooses which says none
	do     func(ctx context.Context, ids []stint.ID, chosen bool) (map[stint.ID]A, error)
	word   func(A) string
}

// to does it to the jobs that are meant.
func to[A any](ctx context.Context, a *api, s Selection, v verb[A]) (*answer[Done[A]], error) {
	switch {
	case len(s.IDs) > 0 && (s.Filter != nil || s.DryRun || s.Before != 0):
		return nil, stint.Invalid("ids", "ids and filters exclude each other")
	case len(s.IDs) == 0 && s.Filter == nil:
		return nil, stint.Invalid("filter", "no jobs are named: give ids, or a filter; {} is every job")
	case s.Filter == nil:
		return toNamed(ctx, s.IDs, v)
	}
	f, err := a.filter(ctx, *s.Filter, "body.filter")
	if err != nil {
		return nil, err
	}
	if len(f.States) == 0 {
		f.States = v.states
	}
	f.Before, f.Limit = s.Before, s.Limit
	if s.DryRun {
		return tellChosen[A](ctx, a, f)
	}
	return toChosen(ctx, a, f, s.Each, v)
}

// toNamed does it in one transaction: a request that failed can be sent again.
func toNamed[A any](ctx context.Context, ids []stint.ID, v verb[A]) (*answer[Done[A]], error) {
	answers, err := v.do(ctx, ids, false)
	if err != nil {
		return nil, err
	}
	return &answer[Done[A]]{Done[A]{Answers: answers}}, nil
}

// toChosen does it in batches. What went wrong behind the first is found again by
// who goes on from there.
func toChosen[A any](ctx context.Context, a *api, f stint.Filter, each bool, v verb[A]) (*answer[Done[A]], error) {
	done := Done[A]{Counts: map[string]int{}}
	if each {
		done.Answers = map[stint.ID]A{}
	}
	n := 0
	for ids, err := range stint.Selected(ctx, a.store, f, batchSize) {
		var got map[stint.ID]A
		if err == nil {
			got, err = v.do(ctx, ids, true)
		}
		switch {
		case err != nil && n == 0:
			return nil, err
		case err != nil:
			return &answer[Done[A]]{done}, nil
		}
		for _, one := range got {
			done.Counts[v.word(one)]++
		}
		if each {
			maps.Copy(done.Answers, got)
		}
		n += len(ids)
		done.Next = ids[len(ids)-1]
	}
	if n < f.Limit {
		done.Next = 0
	}
	return &answer[Done[A]]{done}, nil
}

// tellChosen is a dry run.
func tellChosen[A any](ctx context.Context, a *api, f stint.Filter) (*answer[Done[A]], error) {
	var done Done[A]
	for ids, err := range stint.Selected(ctx, a.store, f, 10*batchSize) {
		if err != nil {
			return nil, err
		}
		done.Matched += len(ids)
		done.Next = ids[len(ids)-1]
	}
	if done.Matched < f.Limit {
		done.Next = 0
	}
	f.Limit = min(f.Limit, firstFew)
	first, err := a.store.Jobs(ctx, f)
	if err != nil {
		return nil, err
	}
	done.First = a.seen(ctx, first)
	return &answer[Done[A]]{done}, nil
}

// Cancelling says which jobs to cancel, and why.
type Cancelling struct {
	Selection
	Why
}

func (a *api) cancelJobs(ctx context.Context, in *struct{ Body Cancelling }) (*answer[Done[stint.Cancellation]], error) {
	return to(ctx, a, in.Body.Selection, verb[stint.Cancellation]{
		states: view.Cancellable,
		do: func(ctx context.Context, ids []stint.ID, _ bool) (map[stint.ID]stint.Cancellation, error) {
			return a.store.Cancel(ctx, ids, in.Body.Why.Why)
		},
		word: func(c stint.Cancellation) string { return string(c) },
	})
}

// Retrying says which jobs to run again, and when.
type Retrying struct {
	Selection
	At time.Time `json:"at,omitzero" doc:"Not to be started before"`
	In string    `json:"in,omitempty" doc:"The same counted from now by the database's clock: 90s, 2h. Not both"`

	Once bool `json:"once,omitempty" doc:"Leave alone what was recovered before; of what a filter chooses that is always so"`
}

func (a *api) retryJobs(ctx context.Context, in *struct{ Body Retrying }) (*answer[Done[stint.Retried]], error) {
	again := stint.Again{At: in.Body.At}
	if in.Body.In != "" {
		d, err := retry.ParseDuration(in.Body.In)
		if err != nil {
			return nil, stint.Invalid("in", "%v", err)
		}
		again.In = d
	}
	if err := again.Check(); err != nil {
		return nil, err
	}
	return to(ctx, a, in.Body.Selection, verb[stint.Retried]{
		states: view.Retriable,
		do: func(ctx context.Context, ids []stint.ID, chosen bool) (map[stint.ID]stint.Retried, error) {
			again.Once = chosen || in.Body.Once
			return a.store.Retry(ctx, ids, again)
		},
		word: func(r stint.Retried) string { return string(r.Answer) },
	})
}

func (a *api) deleteJobs(ctx context.Context, in *struct{ Body Selection }) (*answer[Done[stint.Deletion]], error) {
	return to(ctx, a, in.Body, verb[stint.Deletion]{
		states: view.Deletable,
		do: func(ctx context.Context, ids []stint.ID, _ bool) (map[stint.ID]stint.Deletion, error) {
			return a.store.Delete(ctx, ids)
		},
		word: func(d stint.Deletion) string { return string(d) },
	})
}
