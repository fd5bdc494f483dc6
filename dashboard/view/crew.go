package view

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Crew is who may come to perform a job: the engines of the roster, but for
// queues that are paused.
type Crew struct {
	Engines []store.EngineInfo
	Paused  []string
}

// Muster tells who there is.
type Muster interface {
	Engines(ctx context.Context) ([]store.EngineInfo, error) // see [store.Roster]
	Paused(ctx context.Context) ([]string, error)            // see [store.Pauser]
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
	WantsBeat               // an engine that beats: all that would take it are silent
	WantsOpen               // an engine that takes jobs: all that would take it drain
	WantsSlot               // a slot: all of those that would take it are busy
)

// WaitsFor says what an available job waits for at a time of the store's clock.
// Slots are how many are busy, of a job that waits for one.
func (c Crew) WaitsFor(j stint.JobInfo, now time.Time) (w Want, slots int) {
	able := those(c.Engines, func(e store.EngineInfo) bool { return e.Performs(j.Kind) })
	willing := those(able, func(e store.EngineInfo) bool { return e.WorksOn(j.Queue) })
	awake := those(willing, func(e store.EngineInfo) bool { return !e.Silent(now) })
	open := those(awake, func(e store.EngineInfo) bool { return !e.Draining })
	switch {
	case slices.Contains(c.Paused, j.Queue):
		return WantsResume, 0
	case len(c.Engines) == 0:
		return WantsTime, 0
	case len(able) == 0:
		return WantsKind, 0
	case len(willing) == 0:
		return WantsQueue, 0
	case len(awake) == 0:
		return WantsBeat, 0
	case len(open) == 0:
		return WantsOpen, 0
	}
	for _, e := range open {
		if len(e.Running) < e.Slots {
			return WantsTime, 0
		}
		slots += e.Slots
	}
	return WantsSlot, slots
}

func those(all []store.EngineInfo, are func(store.EngineInfo) bool) []store.EngineInfo {
	return slices.DeleteFunc(slices.Clone(all), func(e store.EngineInfo) bool { return !are(e) })
}
