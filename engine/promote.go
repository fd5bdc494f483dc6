package engine

import (
	"context"
	"time"
)

const (
	// promoteBatch bounds one promotion, so that its transaction stays short.
	promoteBatch = 1000

	// promoteFull is how often the scan starts at the beginning: the bound
	// within which a due job is found that was committed late, below where the
	// scan had come.
	promoteFull = time.Second

	// promotePause spaces promotions out: every ring may mean that something
	// is due earlier than was known, and rings come with every enqueue.
	promotePause = 5 * time.Millisecond
)

// promote moves jobs to the log when their time has come. It sleeps until the
// next one is due; an enqueue that is due earlier rings.
func (s *session) promote(ctx context.Context) {
	var (
		from time.Time // where the next scan starts
		full time.Time // when the last one started at the beginning
		wait = newBackoff()
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
			s.bell.ring()
		}
		if p.Moved == promoteBatch {
			continue
		}
		next := promoteFull
		if p.Next >= 0 {
			// Less than the pause only when others are moving what is due.
			next = min(next, max(p.Next, promotePause))
			if p.Next > 0 {
				next = min(promoteFull, p.Next)
			}
		}
		if s.waitbell.wait(ctx, next) {
			pause(ctx, promotePause)
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
