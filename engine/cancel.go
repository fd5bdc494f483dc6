package engine

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// cancelPause spaces the queries out: every enqueue sends a notification.
const cancelPause = 100 * time.Millisecond

// watchCancellations cancels the handlers of jobs that were cancelled. A cancellation notifies;
// without notifications it looks once in each beat's time.
func (s *session) watchCancellations(ctx context.Context) {
	store, ok := s.store.(store.Canceller)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		s.wakeups[cancellations].wait(ctx, s.config.TimeToLive/4)
		ids := s.attempts.jobs()
		if len(ids) > 0 && ctx.Err() == nil {
			limit, cancel := s.limit(ctx)
			gone, err := store.Cancelling(limit, ids)
			cancel()
			if err != nil {
				s.trouble(ctx, "look for cancelled jobs", err)
			}
			for _, id := range gone {
				s.attempts.cancel(id, stint.ErrCancelled)
			}
		}
		sleep(ctx, cancelPause)
	}
}
