package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/ops"
	"github.com/stint-go/stint/store"
)

// errNotEnded says that a job is not deleted, since it has not ended.
var errNotEnded = errors.New("the job has not ended: cancel it first")

// answered is what came of one job.
type answered[A any] struct {
	Answer A `json:"answer"`
}

type cancelOne struct {
	ops.JobName
	Body *ops.Why
}

type retryOne struct {
	ops.JobName
	Body *ops.Rerun
}

// registerOneJob adds the verbs of jobs for the one job that a path names. What they do
// are the operations on many jobs, under whose names they are in the log of changes.
func (c *Config) registerOneJob(a huma.API, caller ops.Caller, problems *huma.Response) {
	add := func(of ops.Operation, method, path, summary, doc string) huma.Operation {
		d := of.Describe()
		return huma.Operation{
			OperationID: d.ID() + "-one", Method: method, Path: Prefix + "/jobs/{id}" + path, Summary: summary, Tags: []string{d.Noun()},
			Description: doc + "\n\nFor the role " + d.Needs.String() + ".", MaxBodyBytes: maxBody, Responses: map[string]*huma.Response{"default": problems},
		}
	}
	huma.Register(a, add(ops.CancelJobs, http.MethodPost, "/cancel", "Cancel a job, also a running one",
		"What waits or is available is cancelled with the answer. A running job is asked to stop. A job that has ended is 409."),
		func(ctx context.Context, in *cancelOne) (*body[answered[stint.CancelStatus]], error) {
			named := ops.Cancelling{Selection: only(in.ID), Why: *cmp.Or(in.Body, &ops.Why{})}
			done, err := ops.CancelJobs.Call(ctx, caller, ops.CancelInput{Body: named})
			answer := done.Answers[stint.ID(in.ID)]
			if err == nil {
				err = c.refused(ctx, ops.CancelJobs, in.ID, map[stint.CancelStatus]error{stint.CancelNotFound: stint.ErrNotFound, stint.CancelTooLate: stint.ErrEnded}[answer])
			}
			return &body[answered[stint.CancelStatus]]{answered[stint.CancelStatus]{answer}}, err
		})
	huma.Register(a, add(ops.RetryJobs, http.MethodPost, "/retry", "Run a job again: one that waits now, one that ended as a new job",
		"The `id` of the answer is the job that runs again: a new one for a job that had ended, or the one that it was recovered as before, unless there is `force`. What jobs-retry says of flows holds here, too."),
		func(ctx context.Context, in *retryOne) (*body[stint.RerunResult], error) {
			named := ops.Retrying{Selection: only(in.ID), Rerun: *cmp.Or(in.Body, &ops.Rerun{})}
			done, err := ops.RetryJobs.Call(ctx, caller, ops.RetryInput{Body: named})
			result := done.Answers[stint.ID(in.ID)]
			if err == nil && result.Answer == stint.RerunNotFound {
				err = c.refused(ctx, ops.RetryJobs, in.ID, stint.ErrNotFound)
			}
			return &body[stint.RerunResult]{result}, err
		})
	huma.Register(a, add(ops.DeleteJobs, http.MethodDelete, "", "Delete a job that has ended", "With all of its attempts. A job that has not ended is 409."),
		func(ctx context.Context, in *ops.JobName) (*body[answered[store.DeleteStatus]], error) {
			done, err := ops.DeleteJobs.Call(ctx, caller, ops.DeleteInput{Body: only(in.ID)})
			answer := done.Answers[stint.ID(in.ID)]
			if err == nil {
				err = c.refused(ctx, ops.DeleteJobs, in.ID, map[store.DeleteStatus]error{store.DeleteNotFound: stint.ErrNotFound, store.DeleteNotFinal: errNotEnded}[answer])
			}
			return &body[answered[store.DeleteStatus]]{answered[store.DeleteStatus]{answer}}, err
		})
}

// only is a selection of one job.
func only(id int64) ops.Selection { return ops.Selection{IDs: []stint.ID{stint.ID(id)}} }

// refused is a reason why nothing came of it, as a client is told; nil for none.
func (c *Config) refused(ctx context.Context, of ops.Operation, id int64, why error) error {
	if why == nil {
		return nil
	}
	return c.told(ctx, of.Describe().Name, fmt.Errorf("job %d: %w", id, why))
}
