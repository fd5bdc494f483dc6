package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
)

// stintFlows awaits children by a flow, stintCalls by calls.
var (
	stintFlows = workflowContestant{
		name:     "stint",
		settings: fmt.Sprintf("1 engine with %d slots; children by a flow: a job, the children, and a job with their results", atOnce),
		history:  stintHistory,
		open:     openStint(false),
	}
	stintCalls = workflowContestant{
		name:     "stint, calls",
		few:      100, // with each call that ends the job that called runs again
		settings: fmt.Sprintf("1 engine with %d slots; Call in a goroutine for each child", atOnce),
		history:  stintHistory,
		open:     openStint(true),
	}
)

// stintHistory leaves out the jobs that begin and end a flow: they are parts of it.
const stintHistory = `
	select (select count(*) from stint.jobs where state = 'completed' and kind <> 'join' and (kind <> 'parent' or flow is null)),
	       (select count(*) from stint.steps)`

func openStint(calls bool) func(context.Context, string, int) (workflows, error) {
	return func(ctx context.Context, url string, children int) (workflows, error) {
		store, err := postgres.Open(ctx, url)
		if err != nil {
			return nil, err
		}
		return &stintWorkflows{store: store, client: stint.NewClient(store), calls: calls, children: children}, nil
	}
}

type stintWorkflows struct {
	store    *postgres.Store
	client   *stint.Client
	calls    bool
	children int
	ids      sync.Map // of the job of a workflow
}

// childArgs are a child of a workflow.
type childArgs struct{ Workflow, Child int }

var (
	stintSteps  = stint.NewKind[args](shapeSteps)
	stintHop    = stint.NewKind[args](shapeHop)
	stintParent = stint.NewKind[args]("parent")
	stintChild  = stint.NewResultKind[childArgs, int]("child")
	stintJoin   = stint.NewKind[args]("join")
)

// Work implements workflows.
func (w *stintWorkflows) Work(ctx context.Context, did func(workflow, part int)) (stop func() error, err error) {
	mux := stint.NewMux()
	stint.Handle(mux, stintSteps, func(ctx context.Context, _ *stint.Job, a args) error {
		for i := range stepsEach {
			if err := stintStep(ctx, did, a.N, i); err != nil {
				return err
			}
		}
		return nil
	})
	stint.Handle(mux, stintHop, func(ctx context.Context, _ *stint.Job, a args) error {
		if err := stintStep(ctx, did, a.N, 0); err != nil {
			return err
		}
		if _, err := stint.Await[int](ctx, "go on", time.Hour); err != nil {
			return err
		}
		did(a.N, 1)
		return nil
	})
	stint.HandleResult(mux, stintChild, func(_ context.Context, _ *stint.Job, a childArgs) (int, error) {
		did(a.Workflow, a.Child)
		return a.Child, nil
	})
	stint.Handle(mux, stintJoin, func(ctx context.Context, _ *stint.Job, a args) error {
		var results []int
		for result, err := range stintChild.Needed(ctx) {
			if err != nil {
				return err
			}
			results = append(results, result)
		}
		return joined(did, a.N, w.children, results)
	})
	stint.Handle(mux, stintParent, func(ctx context.Context, _ *stint.Job, a args) error {
		if !w.calls {
			return nil
		}
		results := make([]int, w.children)
		var all errgroup.Group
		for i := range w.children {
			all.Go(func() (err error) {
				results[i], err = stintChild.Call(ctx, strconv.Itoa(i), childArgs{a.N, i})
				return err
			})
		}
		if err := all.Wait(); err != nil {
			return err
		}
		return joined(did, a.N, w.children, results)
	})
	e, err := engine.New(w.store, mux, engine.Config{Slots: atOnce})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // only stop ends the work
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	return func() error {
		cancel()
		return <-ended
	}, nil
}

func stintStep(ctx context.Context, did func(workflow, part int), workflow, part int) error {
	_, err := stint.Step(ctx, strconv.Itoa(part), func(context.Context) (int, error) {
		did(workflow, part)
		return part, nil
	})
	return err
}

// joined does the last part of a workflow with children. Each of them returned its number.
func joined(did func(workflow, part int), workflow, children int, results []int) error {
	sum := 0
	for _, result := range results {
		sum += result
	}
	if len(results) != children || sum != children*(children-1)/2 {
		return fmt.Errorf("workflow %d got %d results of %d, with the sum %d", workflow, len(results), children, sum)
	}
	did(workflow, children)
	return nil
}

// Start implements workflows.
func (w *stintWorkflows) Start(ctx context.Context, shape string, first, n int) error {
	if shape == shapeChildren && !w.calls {
		return w.startFlows(ctx, first, n)
	}
	kind := map[string]stint.Kind[args]{shapeSteps: stintSteps, shapeHop: stintHop, shapeChildren: stintParent}[shape]
	jobs := make([]stint.NewJob, n)
	for i := range jobs {
		var err error
		if jobs[i], err = kind.New(args{first + i}); err != nil {
			return err
		}
	}
	if n == 1 {
		id, err := w.client.Enqueue(ctx, jobs[0])
		w.ids.Store(first, id)
		return err
	}
	ids, err := w.client.EnqueueMany(ctx, jobs)
	for i, id := range ids {
		w.ids.Store(first+i, id)
	}
	return err
}

// startFlows starts each workflow as a flow: a job, the children, and a job with their results.
func (w *stintWorkflows) startFlows(ctx context.Context, first, n int) error {
	for workflow := first; workflow < first+n; workflow++ {
		f := stint.NewFlow("flow")
		begin := stintParent.Add(f, "begin", args{workflow})
		children := make([]childArgs, w.children)
		for i := range children {
			children[i] = childArgs{workflow, i}
		}
		stintJoin.Add(f, "end", args{workflow}, stint.Needs(stintChild.Each(f, children, stint.Needs(begin))...))
		if _, err := f.Enqueue(ctx, w.client); err != nil {
			return err
		}
	}
	return nil
}

// Signal implements workflows.
func (w *stintWorkflows) Signal(ctx context.Context, workflow int) error {
	id, _ := w.ids.Load(workflow)
	return w.client.Signal(ctx, id.(stint.ID), "go on", workflow)
}

// Close implements workflows.
func (w *stintWorkflows) Close() error {
	w.store.Close()
	return nil
}
