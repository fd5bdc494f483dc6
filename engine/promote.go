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
	)
	s.repeat(ctx, dueTimes, "promote due jobs", func(ctx context.Context) (pause, error) {
		if began := time.Now(); began.Sub(full) >= promoteFull {
			from, full = time.Time{}, began
		}
		p, err := s.store.Promote(ctx, from, promoteBatch)
		if err != nil {
			return pause{}, err
		}
		if p.Moved > 0 {
			from = p.Until
			s.wakeups[work].notify()
		}
		next := promoteFull
		switch {
		case p.Moved == promoteBatch:
			next = 0
		case p.Next > 0:
			next = min(next, p.Next)
		case p.Next == 0:
			next = promotePause // other engines move what is due
		}
		return pause{next, promotePause}, nil
	})
}
