package ops

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/dashboard/guard"
)

// OpenedJob is what was sealed of a job, in clear.
type OpenedJob struct {
	ID     stint.ID        `json:"id"`
	Kind   string          `json:"kind"`
	Args   json.RawMessage `json:"args" doc:"Its arguments, without the parts that its kind redacts"`
	Result json.RawMessage `json:"result,omitempty" doc:"Of the last attempt that has one"`
	Steps  []OpenedStep    `json:"steps,omitempty" doc:"In the order in which they ended"`
}

// OpenedStep is what a step recorded.
type OpenedStep struct {
	Name   string          `json:"name"`
	Result json.RawMessage `json:"result"`
}

// OpenJob shows what is sealed of a job in clear, to admins, or is [stint.ErrNotFound]. It counts as a change: it
// is written down who looks before they see anything. Without the key it is [stint.ErrNoKey].
var OpenJob = declare(&Op[JobName, OpenedJob]{
	Decl: Decl{
		Name: "jobs open", Method: http.MethodPost, Path: "/jobs/{id}/open", Needs: guard.Admin, Summary: "Show in clear what is sealed of a job, and write down who looks",
		Doc: "Its arguments, its result, and what its steps recorded. Who looks is in the log of changes before they see anything. " +
			"A server that has no keys, or not this one, answers 409. What the kind redacts stays redacted.",
	},
	do: func(ctx context.Context, l *Local, in *JobName) (OpenedJob, error) {
		id, st := stint.ID(in.ID), inClear(l.Store)
		job, err := st.Job(ctx, id)
		switch {
		case err != nil:
			return OpenedJob{}, err
		case l.Keys == nil:
			return OpenedJob{}, fmt.Errorf("there are no keys here to open it with: %w", stint.ErrNoKey)
		}
		client, shown := stint.NewClient(nil).Seal(l.Keys), *job
		if shown.Args, err = client.OpenArgs(ctx, job.Kind, job.Args); err != nil {
			return OpenedJob{}, fmt.Errorf("open the arguments of job %d: %w", id, err)
		}
		if job, err = Show(l.Store).job(ctx, &shown, nil); err != nil {
			return OpenedJob{}, err
		}
		open := OpenedJob{ID: id, Kind: job.Kind, Args: job.Args}
		for _, x := range job.Attempts {
			if x.Result != nil {
				open.Result = x.Result
			}
		}
		if open.Result, err = client.OpenResult(ctx, job.Kind, open.Result); err != nil {
			return OpenedJob{}, fmt.Errorf("open the result of job %d: %w", id, err)
		}
		steps, err := st.Steps(ctx, id)
		if err != nil {
			return OpenedJob{}, err
		}
		for _, s := range steps {
			result, err := client.OpenStep(ctx, job.Kind, s.Name, s.Result)
			if err != nil {
				return OpenedJob{}, fmt.Errorf("open the step %q of job %d: %w", s.Name, id, err)
			}
			if s.Result != nil {
				open.Steps = append(open.Steps, OpenedStep{s.Name, result})
			}
		}
		return open, nil
	},
})
