package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"time"

	"github.com/dbos-inc/dbos-transact-golang/dbos"
	"golang.org/x/sync/errgroup"
)

// dbosSettings are those that matter to how fast DBOS is. Zero ones are its defaults.
type dbosSettings struct {
	direct bool          // the process that asks for a workflow performs it at once, without a queue
	poll   time.Duration // of the queue, and of a workflow for the end of a child that was queued
}

var (
	dbosDefaults = dbosSettings{}.contestant("DBOS, defaults")
	dbosDirect   = dbosSettings{direct: true}.contestant("DBOS, direct")
)

// dbosTuned polls faster than a second: seldom for many workflows, often for a single one.
func dbosTuned(poll time.Duration) workflowContestant {
	return dbosSettings{poll: poll}.contestant("DBOS, tuned")
}

// contestant makes one of it.
func (o dbosSettings) contestant(name string) workflowContestant {
	settings := fmt.Sprintf("a queue with a worker concurrency of %d, enqueued by %d goroutines", atOnce, dbosProducers)
	switch {
	case o.direct:
		settings = fmt.Sprintf("RunWorkflow without a queue, %d at once; of children all at once", atOnce)
	case o.poll > 0:
		settings += fmt.Sprintf("; polls of the queue and of results each %v", o.poll)
	default:
		settings += "; else its defaults: polls each second"
	}
	return workflowContestant{name: name, settings: settings, history: dbosHistory, open: o.open}
}

const dbosHistory = `
	select (select count(*) from dbos.workflow_status where status = 'SUCCESS'), (select count(*) from dbos.operation_outputs)`

// dbosProducers enqueue side by side, as DBOS has no call to enqueue many.
const dbosProducers = 16

func (o dbosSettings) open(_ context.Context, url string, children int) (workflows, error) {
	w := &dbosWorkflows{settings: o, children: children, free: make(chan struct{}, atOnce)}
	w.logged.Set(slog.LevelError)
	w.config = dbos.Config{AppName: "peers", DatabaseURL: url, Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: &w.logged}))}
	return w, nil
}

type dbosWorkflows struct {
	settings dbosSettings
	children int
	config   dbos.Config
	logged   slog.LevelVar
	ctx      dbos.Context // since Work
	queued   []dbos.WorkflowOption
	free     chan struct{} // has one for each workflow under way that was started directly
	did      func(workflow, part int)
}

// Work implements workflows.
func (w *dbosWorkflows) Work(ctx context.Context, did func(workflow, part int)) (stop func() error, err error) {
	w.did = did
	if w.ctx, err = dbos.NewContext(context.WithoutCancel(ctx), w.config); err != nil {
		return nil, err
	}
	dbos.RegisterWorkflow(w.ctx, w.steps)
	dbos.RegisterWorkflow(w.ctx, w.hop)
	dbos.RegisterWorkflow(w.ctx, w.parent)
	dbos.RegisterWorkflow(w.ctx, w.child)
	stop = func() error {
		w.logged.Set(slog.LevelError + 1) // a poll that the end interrupts is an error to it
		return dbos.Shutdown(w.ctx, 30*time.Second)
	}
	if err := dbos.Launch(w.ctx); err != nil {
		return nil, err // which has shut it down
	}
	if w.settings.direct {
		return stop, nil
	}
	options := []dbos.QueueOption{dbos.WithWorkerConcurrency(atOnce)}
	if w.settings.poll > 0 {
		options = append(options, dbos.WithQueueBasePollingInterval(w.settings.poll))
	}
	queue, err := dbos.RegisterQueue(w.ctx, "queue", options...)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	w.queued = []dbos.WorkflowOption{dbos.WithQueue(queue)}
	return stop, nil
}

func (w *dbosWorkflows) steps(ctx dbos.Context, a args) (int, error) {
	for i := range stepsEach {
		if err := w.step(ctx, a.N, i); err != nil {
			return 0, err
		}
	}
	return a.N, nil
}

func (w *dbosWorkflows) step(ctx dbos.Context, workflow, part int) error {
	_, err := dbos.RunAsStep(ctx, func(context.Context) (int, error) {
		w.did(workflow, part)
		return part, nil
	}, dbos.WithStepName(strconv.Itoa(part)))
	return err
}

func (w *dbosWorkflows) hop(ctx dbos.Context, a args) (int, error) {
	if err := w.step(ctx, a.N, 0); err != nil {
		return 0, err
	}
	if _, err := dbos.Recv[int](ctx, "go on", time.Hour); err != nil {
		return 0, err
	}
	w.did(a.N, 1)
	return a.N, nil
}

func (w *dbosWorkflows) parent(ctx dbos.Context, a args) (int, error) {
	handles := make([]dbos.WorkflowHandle[int], w.children)
	for i := range handles {
		var err error
		if handles[i], err = dbos.RunWorkflow(ctx, w.child, childArgs{a.N, i}, w.queued...); err != nil {
			return 0, err
		}
	}
	results := make([]int, w.children)
	for i, h := range handles {
		var err error
		if results[i], err = h.GetResult(dbos.WithHandlePollingInterval(w.settings.poll)); err != nil {
			return 0, err
		}
	}
	return a.N, joined(w.did, a.N, w.children, results)
}

func (w *dbosWorkflows) child(_ dbos.Context, a childArgs) (int, error) {
	w.did(a.Workflow, a.Child)
	return a.Child, nil
}

// Start implements workflows.
func (w *dbosWorkflows) Start(ctx context.Context, shape string, first, n int) error {
	// A parent is started directly: in a queue it would take a place of its children.
	workflow, options := w.parent, []dbos.WorkflowOption(nil)
	if shape != shapeChildren {
		workflow, options = map[string]dbos.Workflow[args, int]{shapeSteps: w.steps, shapeHop: w.hop}[shape], w.queued
	}
	all, ctx := errgroup.WithContext(ctx)
	all.SetLimit(dbosProducers)
	for i := first; i < first+n && ctx.Err() == nil; i++ {
		if w.settings.direct {
			w.free <- struct{}{}
		}
		all.Go(func() error {
			id := dbos.WithWorkflowID(strconv.Itoa(i))
			h, err := dbos.RunWorkflow(w.ctx, workflow, args{i}, append(options[:len(options):len(options)], id)...)
			if err != nil || !w.settings.direct {
				return err
			}
			go func() {
				_, _ = h.GetResult() // the history says whether it has completed
				<-w.free
			}()
			return nil
		})
	}
	return all.Wait()
}

// Signal implements workflows.
func (w *dbosWorkflows) Signal(ctx context.Context, workflow int) error {
	return dbos.Send(w.ctx, strconv.Itoa(workflow), workflow, "go on")
}

// Close implements workflows. The stop of Work has closed every connection.
func (w *dbosWorkflows) Close() error { return nil }
