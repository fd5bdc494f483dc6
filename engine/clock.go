package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// clock tells the store's time by this process's monotonic clock: what
// policies judge by must be the same wherever they are asked.
type clock struct{ ahead atomic.Int64 } // the store's time less ours, in nanoseconds

func (c *clock) sample(ctx context.Context, store stint.Store) {
	k, ok := store.(stint.Clock)
	if !ok {
		return // the store's clock is this machine's
	}
	before := time.Now()
	if t, err := k.Now(ctx); err == nil {
		half := time.Since(before) / 2
		c.ahead.Store(int64(t.Sub(before.Add(half))))
	}
}

func (c *clock) at(t time.Time) time.Time { return t.Add(time.Duration(c.ahead.Load())) }
