package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// clock tells the store's time by this process's monotonic clock: what
// policies judge by must be the same wherever they are asked. Either clock may be
// set at any time, so each beat brings what the store's one shows.
type clock struct{ last atomic.Pointer[reading] }

// reading is what the store's clock showed at a moment of ours.
type reading struct {
	shown time.Time
	at    time.Time
}

func (r *reading) when(t time.Time) time.Time { return r.shown.Add(t.Sub(r.at)) }

// sample asks a store that has a clock of its own.
func (c *clock) sample(ctx context.Context, store stint.Store) {
	k, ok := store.(stint.Clock)
	if !ok {
		return // the store's clock is this machine's
	}
	before := time.Now()
	if t, err := k.Now(ctx); err == nil {
		c.note(t, before, time.Now())
	}
}

// note takes over what the store's clock showed at some moment between two of ours,
// unless what is known agrees with that as closely as it says.
func (c *clock) note(shown, from, to time.Time) {
	if shown.IsZero() {
		return
	}
	half := to.Sub(from) / 2
	now := &reading{shown: shown, at: from.Add(half)}
	if last := c.last.Load(); last != nil && last.when(now.at).Sub(shown).Abs() <= half {
		return
	}
	c.last.Store(now)
}

// at is what the store's clock shows at a moment of ours. Until that was told once it
// is ours.
func (c *clock) at(t time.Time) time.Time {
	if last := c.last.Load(); last != nil {
		return last.when(t)
	}
	return t
}
