package view

import (
	"context"
	"slices"

	"github.com/stint-go/stint"
)

// Crew is who may come to perform a job: the engines of the roster, but for
// queues that are paused.
type Crew struct {
	Engines []stint.EngineInfo
	Paused  []string
}

// Muster tells who there is.
type Muster interface {
	Engines(ctx context.Context) ([]stint.EngineInfo, error) // see [stint.Roster]
	Paused(ctx context.Context) ([]string, error)            // see [stint.Pauser]
}

// CrewFor looks for what jobs wait for that have not ended; it has nobody where
// all have.
func CrewFor(ctx context.Context, store Muster, jobs ...stint.JobInfo) (c Crew, err error) {
	if !slices.ContainsFunc(jobs, func(j stint.JobInfo) bool { return !j.State.Final() }) {
		return c, nil
	}
	if c.Paused, err = store.Paused(ctx); err != nil {
		return c, err
	}
	c.Engines, err = store.Engines(ctx)
	return c, err
}

// Want is what an available job waits for.
type Want int

// What it may wait for.
const (
	WantsTime   Want = iota // an engine that has time, or the first one to come
	WantsResume             // its queue is paused
	WantsKind               // an engine that performs its kind
	WantsQueue              // an engine that works on its queue
)

// WaitsFor says what an available job waits for.
func (c Crew) WaitsFor(j stint.JobInfo) Want {
	able := slices.DeleteFunc(slices.Clone(c.Engines), func(e stint.EngineInfo) bool { return !e.Performs(j.Kind) })
	willing := slices.ContainsFunc(able, func(e stint.EngineInfo) bool { return e.WorksOn(j.Queue) })
	switch {
	case slices.Contains(c.Paused, j.Queue):
		return WantsResume
	case len(c.Engines) == 0 || willing:
		return WantsTime
	case len(able) == 0:
		return WantsKind
	}
	return WantsQueue
}
