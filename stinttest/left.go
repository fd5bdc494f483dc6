package stinttest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// open are the states of a job that has not ended.
var open = []stint.State{stint.Scheduled, stint.Retrying, stint.Blocked, stint.Available, stint.Running}

// left lists what a drain has not ended, oldest first, and why.
func (w *Worker) left(ctx context.Context) ([]Left, error) {
	paused := map[string]bool{}
	if p, ok := w.store.(store.Pauser); ok {
		names, err := p.Paused(ctx)
		if err != nil {
			return nil, fmt.Errorf("look for paused queues: %w", err)
		}
		for _, name := range names {
			paused[name] = true
		}
	}
	jobs, err := w.store.Jobs(ctx, store.Filter{States: open, Limit: 1000})
	if err != nil {
		return nil, fmt.Errorf("look for jobs that are left: %w", err)
	}
	slices.Reverse(jobs)
	all := make([]Left, len(jobs))
	for i := range jobs {
		all[i].Job = jobs[i]
		all[i].Why, all[i].err = w.why(&jobs[i], paused)
	}
	return all, nil
}

var (
	errNoHandler = errors.New("the mux has no handler for its kind")
	errNoFunc    = errors.New("the mux has no such retry function")
)

// why says what keeps a job from its end; the error, if that is a mistake of
// the test's.
func (w *Worker) why(job *stint.JobInfo, paused map[string]bool) (string, error) {
	queues := w.config.Queues
	switch {
	case job.PendingRetry != "":
		return "it waits for the retry function " + job.PendingRetry, errNoFunc
	case len(queues) > 0 && !slices.Contains(queues, "*") && !slices.Contains(queues, job.Queue):
		return "the worker does not work on the queue " + job.Queue, nil
	case w.mux.Handler(job.Kind) == nil:
		return errNoHandler.Error(), errNoHandler
	case paused[job.Queue]:
		return "the queue " + job.Queue + " is paused", nil
	case job.State == stint.Running:
		return "somebody else runs it", nil
	case job.State == stint.Scheduled || job.State == stint.Retrying:
		return "it is not due yet", nil
	}
	return "it is " + string(job.State), nil
}
