package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/store"
)

// clock gives the store's time by this process's monotonic clock, so that policies judge by the
// same time on every machine. Either clock may be set at any time, so each beat brings a new
// reading.
type clock struct{ last atomic.Pointer[reading] }

// reading is what the store's clock showed at a moment of this process's clock.
type reading struct {
	shown time.Time
	at    time.Time
}

func (r *reading) when(t time.Time) time.Time { return r.shown.Add(t.Sub(r.at)) }

// sample asks a store that has a clock of its own.
func (c *clock) sample(ctx context.Context, st store.Store) {
	k, ok := st.(store.Clock)
	if !ok {
		return // the store's clock is this machine's
	}
	before := time.Now()
	if t, err := k.Now(ctx); err == nil {
		c.note(t, before, time.Now())
	}
}

// note keeps what the store's clock showed between two moments of ours, unless the last reading
// agrees with it within that precision.
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

// at returns the store's time at a moment of ours; until the first reading that is our time.
func (c *clock) at(t time.Time) time.Time {
	if last := c.last.Load(); last != nil {
		return last.when(t)
	}
	return t
}
