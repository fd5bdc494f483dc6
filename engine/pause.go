package engine

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// pauseSpacing spaces out the question which queues are paused: rings come with
// every enqueue.
const pauseSpacing = 50 * time.Millisecond

// pauses are the queues that are paused, as far as this engine knows. Each
// look tells the claim stage anew; what is in hand already is compared with
// these before it begins.
type pauses struct {
	queues atomic.Pointer[map[string]bool]
}

func (p *pauses) has(queue string) bool {
	known := p.queues.Load()
	return known != nil && (*known)[queue]
}

// learn notes which queues are paused, and reports whether that is news.
func (p *pauses) learn(names []string) bool {
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

// mind keeps up with the queues that are paused. Pausing and resuming ring, and
// a look that sees something else does; where neither is heard, each beat's
// time is the floor.
func (s *session) mind(ctx context.Context) {
	store, ok := s.store.(stint.Pauser)
	if !ok {
		return
	}
	for ctx.Err() == nil {
		limit, cancel := s.limit(ctx)
		names, err := store.Paused(limit)
		cancel()
		if err != nil {
			s.trouble(ctx, "look for paused queues", err)
		} else if s.pauses.learn(names) {
			s.bell.ring() // a look may have passed over what was resumed
		}
		pause(ctx, pauseSpacing)
		s.pausebell.wait(ctx, s.config.TimeToLive/4)
	}
}

// unpaused leaves out what is seen of paused queues. A queue that this engine
// believes to be paused is left out too: what it claimed there it would hand
// back. But then one of both is out of date. Lanes that are left to others for a
// while rest likewise.
func (s *session) unpaused(sights []stint.Sight) []stint.Sight {
	kept, news, now := sights[:0], false, time.Now()
	for _, sight := range sights {
		believed := s.pauses.has(sight.Queue)
		news = news || believed != sight.Paused
		if !believed && !sight.Paused && !s.pools.leaves(sight.Lane, now) {
			kept = append(kept, sight)
		}
	}
	if news {
		s.pausebell.ring()
	}
	return kept
}
