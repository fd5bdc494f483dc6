package view

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// Crew says which engines may perform a job: those of the roster, except for queues that
// are paused.
type Crew struct {
	Engines []store.EngineInfo
	Paused  []string

	Gates []store.GateInfo // of one job that is shown: see [GatesOf]
}

// Muster finds a crew.
type Muster interface {
	Engines(ctx context.Context) ([]store.EngineInfo, error) // see [store.Roster]
	Paused(ctx context.Context) ([]string, error)            // see [store.Pauser]
}

// CrewFor finds the crew for jobs; it is empty if all of them have ended.
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

// WaitsForInWords says what an available job waits for at a time of the store's clock: any
// engine, one that would take it, a slot, its limits, or its queue.
func (c Crew) WaitsForInWords(j stint.JobInfo, now time.Time) string {
	able := those(c.Engines, func(e store.EngineInfo) bool { return e.Performs(j.Kind) })
	willing := those(able, func(e store.EngineInfo) bool { return e.WorksOn(j.Queue) })
	awake := those(willing, func(e store.EngineInfo) bool { return !e.Silent(now) })
	open := those(awake, func(e store.EngineInfo) bool { return !e.Draining })
	slots := 0
	for _, e := range open {
		slots += e.Slots
	}
	limits := WaitsForGates(c.Gates, now)
	switch {
	case slices.Contains(c.Paused, j.Queue):
		return "its queue is paused"
	case len(c.Engines) == 0:
		return "waits for an engine" // the first one to come
	case len(able) == 0:
		return "waits for an engine that handles " + words.Visible(j.Kind)
	case len(willing) == 0:
		return "waits for an engine that works on the queue " + words.Visible(j.Queue)
	case len(awake) == 0:
		return "waits for an engine: those that would take it do not beat"
	case len(open) == 0:
		return "waits for an engine: those that would take it drain"
	case limits != "":
		return limits
	case slices.ContainsFunc(open, func(e store.EngineInfo) bool { return len(e.Running) < e.Slots }):
		if len(j.Limits) > 0 {
			return "waits for an engine, or for its limits"
		}
		return "waits for an engine" // that has time
	case slots == 1:
		return "waits for a slot: the only one is busy"
	}
	return "waits for a slot: all " + words.Count(slots) + " are busy"
}

func those(all []store.EngineInfo, are func(store.EngineInfo) bool) []store.EngineInfo {
	return slices.DeleteFunc(slices.Clone(all), func(e store.EngineInfo) bool { return !are(e) })
}
