package main

import (
	"context"
	"slices"

	"github.com/stint-go/stint"
)

// crew is who may come to perform a job: the engines of the roster, but for
// queues that are paused.
type crew struct {
	engines []stint.EngineInfo
	paused  []string
	runs    *stint.EngineInfo // who performs the job now, as far as it announced that
}

// crewFor looks for what jobs wait for that have not ended; it has nobody where
// all have.
func crewFor(ctx context.Context, db *database, jobs ...stint.JobInfo) (c crew, err error) {
	if !slices.ContainsFunc(jobs, func(j stint.JobInfo) bool { return !j.State.Final() }) {
		return c, nil
	}
	if c.paused, err = db.Paused(ctx); err != nil {
		return c, err
	}
	c.engines, err = db.Engines(ctx)
	return c, err
}

// findRunner finds who performs a job: the engine that announced it with its last
// beat.
func (c *crew) findRunner(ctx context.Context, db *database, j *stint.JobInfo) error {
	if j.State != stint.Running {
		return nil
	}
	var at []stint.Position
	for _, e := range c.engines {
		at = append(at, e.Running...)
	}
	entries, err := db.Fetch(ctx, at)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.ID != j.ID {
			continue
		}
		i := slices.IndexFunc(c.engines, func(e stint.EngineInfo) bool { return slices.Contains(e.Running, entry.Pos) })
		if i >= 0 {
			c.runs = &c.engines[i]
		}
	}
	return nil
}

// waitsFor says what an available job waits for: any engine that has time, one
// that is not there, or its queue.
func (c crew) waitsFor(j stint.JobInfo) string {
	able := slices.DeleteFunc(slices.Clone(c.engines), func(e stint.EngineInfo) bool { return !e.Performs(j.Kind) })
	willing := slices.ContainsFunc(able, func(e stint.EngineInfo) bool { return e.WorksOn(j.Queue) })
	switch {
	case slices.Contains(c.paused, j.Queue):
		return "its queue is paused"
	case len(c.engines) == 0 || willing:
		return "waits for an engine"
	case len(able) == 0:
		return "waits for an engine that performs " + visible(j.Kind)
	}
	return "waits for an engine that works on the queue " + visible(j.Queue)
}
