package main

import (
	"context"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

// crewFor looks for what jobs wait for that have not ended.
func crewFor(ctx context.Context, db *database, jobs ...stint.JobInfo) (view.Crew, error) {
	return view.CrewFor(ctx, db, jobs...)
}

// waitsFor says what an available job waits for: any engine that has time, one
// that is not there, or its queue.
func waitsFor(c view.Crew, j stint.JobInfo) string {
	switch c.WaitsFor(j) {
	case view.WantsResume:
		return "its queue is paused"
	case view.WantsKind:
		return "waits for an engine that performs " + visible(j.Kind)
	case view.WantsQueue:
		return "waits for an engine that works on the queue " + visible(j.Queue)
	}
	return "waits for an engine"
}
