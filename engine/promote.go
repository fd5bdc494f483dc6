package engine

import (
	"context"
	"time"
)

const (
	// promoteBatch bounds one promotion, so that its transaction stays short.
	promoteBatch = 1000

	// promoteFull is how often the scan starts at the beginning. Within this time it finds a due
	// job that was committed late, below where the scan had come.
	promoteFull = time.Second

	// promotePause spaces promotions out: every enqueue sends a notification, which may mean that
	// something is due earlier than was known.
	promotePause = 5 * time.Millisecond
)

// promote moves jobs to the log when they are due. It sleeps until the next one is due; an enqueue
// that is due earlier notifies.
func (s *session) promote(ctx context.Context) {
	var (
		from time.Time // where the next scan starts
		full time.Time // when the last one started at the beginning
		wait = new(backoff)
	)
	for ctx.Err() == nil {
		began := time.Now()
		if began.Sub(full) >= promoteFull {
			from, full = time.Time{}, began
		}
		limit, cancel := s.limit(ctx)
		p, err := s.store.Promote(limit, from, promoteBatch)
		cancel()
		if err != nil {
			s.trouble(ctx, "promote due jobs", err)
			wait.sleep(ctx)
			continue
		}
		wait.reset()
		if p.Moved > 0 {
			from = p.Until
			s.wakeups[work].notify()
		}
		if p.Moved == promoteBatch {
			continue
		}
		next := promoteFull
		if p.Next >= 0 {
			// Less than the pause only while other engines move what is due.
			next = min(next, max(p.Next, promotePause))
			if p.Next > 0 {
				next = min(promoteFull, p.Next)
			}
		}
		if s.wakeups[dueTimes].wait(ctx, next) {
			sleep(ctx, promotePause)
		}
	}
}
