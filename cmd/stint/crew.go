package main

import (
	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/view"
)

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
