package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

// watchDeaf tells of each handler that goes on for long after its context ended,
// by its job's timeout or because somebody cancelled it: nobody can end it, it
// keeps a slot, and from elsewhere it looks like any other that takes its time.
// What is to end with the session is told of by the session's own end.
func (s *session) watchDeaf(ctx context.Context) {
	tick := time.NewTicker(cancelGrace / 5)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for a := range s.attempts.all {
			s.tellIfDeaf(ctx, a, time.Now())
		}
	}
}

// tellIfDeaf is for the one goroutine that watches.
func (s *session) tellIfDeaf(ctx context.Context, a *attempt, now time.Time) {
	switch cause := context.Cause(&a.life); {
	case cause == nil || a.deaf.told || s.work.Err() != nil:
	case a.deaf.since.IsZero():
		a.deaf.since = now
	case now.Sub(a.deaf.since) >= cancelGrace:
		a.deaf.told = true
		job := a.task.entry.Job
		s.tellTrouble(ctx, stint.Event{
			Job: &job, Doing: "end a handler of the kind " + job.Kind, About: job.Kind,
			Err: fmt.Errorf("it takes no notice of the end of its context, and keeps a slot: %w", cause),
		})
	}
}

// deaf is what is known of an attempt that does not end with its context.
type deaf struct {
	since time.Time // when it was first seen to be at its end
	told  bool
}
