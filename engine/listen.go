package engine

import (
	"context"
	"time"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// listen wakes all loops whenever the store has news, and once after each new connection, so that
// what came meanwhile is found. A connection that soon breaks counts as a failed one: the next try
// waits longer and longer.
func (s *session) listen(ctx context.Context) {
	l, ok := s.store.(store.Listener)
	if !ok {
		return
	}
	wait := new(backoff)
	for began := false; ctx.Err() == nil; {
		first, since := true, time.Now()
		err := l.Listen(ctx, func() {
			s.meters.with(func(m *report.Metrics) {
				switch {
				case !first:
					m.Listener.Notifications++
				case began:
					m.Listener.Reconnects++
				}
			})
			first, began = false, true
			s.listening.Store(true)
			s.wakeups.notifyAll()
		})
		s.listening.Store(false)
		s.wakeups[work].notify() // it may be waiting for long, believing that it would be called
		if err != nil {
			s.trouble(ctx, "listen", err)
		}
		if time.Since(since) > longestBackoff {
			wait.reset()
		}
		wait.sleep(ctx)
	}
}
