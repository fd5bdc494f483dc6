package engine

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// cancelPause spaces out the question who was cancelled: rings come with every
// enqueue.
const cancelPause = 100 * time.Millisecond

// heed cancels the handlers of jobs that somebody cancelled. Cancelling rings;
// where that is not heard, each beat's time is the floor.
func (s *session) heed(ctx context.Context) {
	store, ok := s.store.(stint.Canceller)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		s.cancelbell.wait(ctx, s.config.TimeToLive/4)
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
		pause(ctx, cancelPause)
	}
}
