package engine

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// listen rings the bells whenever the store has news. After each new
// connection it rings once, so that what came meanwhile is found. One that soon
// breaks is no better than one that cannot be made: it is tried again more and more
// seldom.
func (s *session) listen(ctx context.Context) {
	l, ok := s.store.(stint.Listener)
	if !ok {
		return
	}
	wait := newBackoff()
	for began := false; ctx.Err() == nil; {
		first, since := true, time.Now()
		err := l.Listen(ctx, func() {
			s.meters.heard(first, began)
			first, began = false, true
			s.hears.Store(true)
			s.waitbell.ring()
			s.cancelbell.ring()
			s.decidebell.ring()
			s.pausebell.ring()
			s.schedulebell.ring()
			s.ringLeases()
			s.bell.ring() // last, so that it is the first to run
		})
		s.hears.Store(false)
		s.bell.ring() // it may be waiting for long, believing that it would be called
		if err != nil {
			s.trouble(ctx, "listen", err)
		}
		if time.Since(since) > longestBackoff {
			wait.reset()
		}
		wait.sleep(ctx)
	}
}
