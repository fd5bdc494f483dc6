package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/event"
)

// watchUnresponsive reports each handler that goes on for long after its context ended by timeout
// or cancellation. Such a handler cannot be stopped and keeps a slot, and from outside it looks
// like a slow one. Handlers that should end with the session are reported at its end.
func (s *session) watchUnresponsive(ctx context.Context) {
	every(ctx, cancelGrace/5, func() {
		for a := range s.attempts.all {
			s.reportIfUnresponsive(ctx, a, time.Now())
		}
	})
}

// reportIfUnresponsive is called by the watching goroutine only.
func (s *session) reportIfUnresponsive(ctx context.Context, a *attempt, now time.Time) {
	switch cause := context.Cause(&a.runContext); {
	case cause == nil || a.unresponsive.reported || s.work.Err() != nil:
	case a.unresponsive.since.IsZero():
		a.unresponsive.since = now
	case now.Sub(a.unresponsive.since) >= cancelGrace:
		a.unresponsive.reported = true
		job := a.task.entry.Job
		s.tellTrouble(ctx, event.Event{
			Job: &job, Doing: "end a handler of the kind " + job.Kind, About: job.Kind,
			Err: fmt.Errorf("it ignores the end of its context, and keeps a slot: %w", cause),
		})
	}
}

// unresponsive is the state of an attempt that does not end with its context.
type unresponsive struct {
	since    time.Time // when its context was first seen to have ended
	reported bool
}
