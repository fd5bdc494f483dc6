package main

import (
	"context"
	"slices"

	"github.com/stint-go/stint"
)

// crew are the engines of the roster: who may come to perform a job.
type crew []stint.EngineInfo

// crewFor looks for those that jobs wait for; nobody where none does.
func crewFor(ctx context.Context, db *database, jobs ...stint.JobInfo) (crew, error) {
	if !slices.ContainsFunc(jobs, func(j stint.JobInfo) bool { return j.State == stint.Available }) {
		return nil, nil
	}
	return db.Engines(ctx)
}

// waitsFor says for which engine an available job waits: any that has time, or
// one that is not there.
func (c crew) waitsFor(j stint.JobInfo) string {
	able := slices.DeleteFunc(slices.Clone(c), func(e stint.EngineInfo) bool { return !slices.Contains(e.Kinds, j.Kind) })
	willing := slices.ContainsFunc(able, func(e stint.EngineInfo) bool {
		return len(e.Queues) == 0 || slices.Contains(e.Queues, "*") || slices.Contains(e.Queues, j.Queue)
	})
	switch {
	case len(c) == 0 || willing:
		return "waits for an engine"
	case len(able) == 0:
		return "waits for an engine that performs " + visible(j.Kind)
	}
	return "waits for an engine that works on the queue " + visible(j.Queue)
}
