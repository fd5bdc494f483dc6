package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// workflows is a library of durable workflows, with a database of its own. A workflow is a number
// from 0. What it records survives a power cut, and it keeps its history.
type workflows interface {
	// Work starts to perform workflows. Each of their parts calls did. Stop is called when all have ended.
	Work(ctx context.Context, did func(workflow, part int)) (stop func() error, err error)

	// Start starts n workflows of a shape, numbered from the first. They are durable when it returns.
	Start(ctx context.Context, shape string, first, n int) error

	// Signal sends a signal to a workflow that waits for one.
	Signal(ctx context.Context, workflow int) error

	Close() error
}

// The shapes of workflows, and their parts.
const (
	shapeSteps    = "steps"    // parts 0 to stepsEach-1, steps one after the other that do nothing
	shapeHop      = "hop"      // part 0, a step; then a wait for a signal; then part 1
	shapeChildren = "children" // parts 0 to children-1, each by a child; then, with their results, part children
)

const (
	stepsEach = 20
	atOnce    = 100 // workflows that each library performs at once, in one process
)

// workflowContestant is a library of workflows at some settings.
type workflowContestant struct {
	name, settings string
	few            int // children are enough, more take long; 0: as many as are asked for

	// history is a query of how many workflows have completed, counted with children, and how many steps were recorded.
	history string

	open func(ctx context.Context, url string, children int) (workflows, error)
}

// on opens the library on a database of its own, hands it to f, and drops the database.
func (c workflowContestant) on(ctx context.Context, s *server, children int, f func(w workflows, url string) error) error {
	return s.database(ctx, func(url string) error {
		w, err := c.open(ctx, url, children)
		if err != nil {
			return err
		}
		return errors.Join(f(w, url), w.Close())
	})
}

// parts counts how often each part of each workflow was done.
type parts struct {
	each  int
	times []atomic.Int64 // each of the first workflow, then each of the next
	left  atomic.Int64   // that were not done
	done  chan struct{}  // closed when none is left
}

func newParts(workflows, each int) *parts {
	p := &parts{each: each, times: make([]atomic.Int64, workflows*each), done: make(chan struct{})}
	p.left.Store(int64(len(p.times)))
	return p
}

func (p *parts) did(workflow, part int) {
	if p.times[workflow*p.each+part].Add(1) == 1 && p.left.Add(-1) == 0 {
		close(p.done)
	}
}

// once fails unless each part was done once.
func (p *parts) once() error {
	for i := range p.times {
		if n := p.times[i].Load(); n != 1 {
			return fmt.Errorf("part %d of workflow %d was done %d times", i%p.each, i/p.each, n)
		}
	}
	return nil
}
