package engine

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/store"
)

// pauseSpacing spaces the queries out: every enqueue sends a notification.
const pauseSpacing = 50 * time.Millisecond

// pauses are the paused queues, as far as this engine knows. Each look tells the claim stage again;
// what is claimed already is checked against these before it starts.
type pauses struct {
	queues atomic.Pointer[map[string]bool]
}

func (p *pauses) has(queue string) bool {
	known := p.queues.Load()
	return known != nil && (*known)[queue]
}

// update replaces the paused queues, and reports whether they changed.
func (p *pauses) update(names []string) bool {
	var next *map[string]bool
	if len(names) > 0 {
		next = &map[string]bool{}
		for _, name := range names {
			(*next)[name] = true
		}
	}
	last := p.queues.Swap(next)
	return (last == nil) != (next == nil) || next != nil && !maps.Equal(*last, *next)
}

// watchPauses keeps the list of paused queues up to date. Pausing and resuming notify, and so does
// a look that sees something else; without both it asks once in each beat's time.
func (s *session) watchPauses(ctx context.Context) {
	pauser, ok := s.store.(store.Pauser)
	if !ok {
		return
	}
	s.repeat(ctx, pausedQueues, "look for paused queues", func(ctx context.Context) (pause, error) {
		names, err := pauser.Paused(ctx)
		if err != nil {
			return pause{}, err
		}
		if s.pauses.update(names) {
			s.wakeups[work].notify() // a look may have passed over what was resumed
		}
		sleep(ctx, pauseSpacing)
		return pause{next: s.config.TimeToLive / 4}, nil
	})
}

// claimable leaves out the lanes of paused queues, and those that are avoided for a while. The
// lanes of a queue that this engine believes to be paused are left out too, since it would return
// what it claimed there; but then one of both is out of date.
func (s *session) claimable(heads []store.LaneHead) []store.LaneHead {
	kept, news, now := heads[:0], false, time.Now()
	for _, head := range heads {
		believed := s.pauses.has(head.Queue)
		news = news || believed != head.Paused
		if !believed && !head.Paused && !s.pools.avoids(head.Lane, now) {
			kept = append(kept, head)
		}
	}
	if news {
		s.wakeups[pausedQueues].notify()
	}
	return kept
}
