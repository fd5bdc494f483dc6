package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/coalesce"
	"github.com/stint-go/stint/store"
)

// cancelPause spaces the queries out: every enqueue sends a notification.
const cancelPause = 100 * time.Millisecond

// watchCancellations cancels the handlers of jobs that were cancelled. A cancellation notifies;
// without notifications it looks once in each beat's time. So it does while nothing runs but something is claimed: a
// job that was cancelled on its way to a slot starts after the notification. Many are cancelled at once: those that
// start in place of handlers that were told are looked at soon.
func (s *session) watchCancellations(ctx context.Context) {
	canceller, ok := s.store.(store.Canceller)
	if !ok {
		return
	}
	parked := false // until something is claimed
	s.repeat(ctx, cancellations, "look for cancelled jobs", func(ctx context.Context) (pause, error) {
		var ids []stint.ID
		for a := range s.attempts {
			ids = append(ids, a.task.entry.ID)
		}
		if len(ids) > 0 {
			gone, err := canceller.Cancelling(ctx, ids)
			if err != nil {
				return pause{}, err
			}
			told := false
			for a := range s.attempts {
				if slices.Contains(gone, a.task.entry.ID) && context.Cause(&a.runContext) == nil {
					a.runContext.cancellable().cancel(stint.ErrCancelled)
					told = true
				}
			}
			if told {
				return pause{next: cancelPause, spacing: cancelPause}, nil
			}
		}
		// What was parked waits first: or each job of an engine that has few would cost a look.
		if parked = !parked && s.inflight.park(s.wakeups[cancellations]); parked {
			return pause{next: time.Hour}, nil
		}
		return pause{next: coalesce.Wait(s.config.TimeToLive / 4), spacing: cancelPause}, nil
	})
}

// watchUnresponsive reports each handler that goes on for long after its context ended by timeout
// or cancellation. Such a handler cannot be stopped and keeps a slot, and from outside it looks
// like a slow one. A call for a batch may go on as long as one of its jobs may. Handlers that should
// end with the session are reported at its end.
func (s *session) watchUnresponsive(ctx context.Context) {
	every(ctx, cancelGrace/5, func() {
		for a := range s.attempts {
			s.reportIfUnresponsive(ctx, a, time.Now())
		}
	})
}

// reportIfUnresponsive is called by the watching goroutine only.
func (s *session) reportIfUnresponsive(ctx context.Context, a *attempt, now time.Time) {
	switch cause := context.Cause(&a.runContext); {
	case cause == nil || a.reported || s.work.Err() != nil || a.task.batch.goesOn():
	case a.ignoredSince.IsZero():
		a.ignoredSince = now
	case now.Sub(a.ignoredSince) >= cancelGrace:
		a.reported = true
		job := a.task.entry.Job
		s.tellTrouble(ctx, event.Event{
			Job: &job, Doing: "end a handler of the kind " + job.Kind, About: job.Kind,
			Err: fmt.Errorf("it ignores the end of its context, and keeps a slot: %w", cause),
		})
	}
}
