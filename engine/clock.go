package engine

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
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

// local returns when the store's clock shows a time, by this process's clock; zero for zero.
func (c *clock) local(t time.Time) time.Time {
	if last := c.last.Load(); last != nil && !t.IsZero() {
		return last.at.Add(t.Sub(last.shown))
	}
	return t
}

// longestBackoff is the greatest wait of a backoff.
const longestBackoff = 2 * time.Second

// backoff spaces out retries, from 50 ms to 2 s, with jitter so that many do not come back at the
// same instant.
type backoff struct{ next time.Duration }

func (b *backoff) reset() { b.next = 0 }

// sleep waits for the next retry; false means that ctx ended.
func (b *backoff) sleep(ctx context.Context) bool {
	b.next = min(max(2*b.next, 50*time.Millisecond), longestBackoff)
	return sleep(ctx, b.next/2+rand.N(b.next/2))
}

// sleep waits for d; false means that ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// every calls f after each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, f func()) {
	everyWhile(ctx, interval, func() bool { f(); return true })
}

// everyWhile is every until f reports false.
func everyWhile(ctx context.Context, interval time.Duration, f func() bool) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if !f() {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// spread returns up to a tenth less than an interval, so that engines which started together
// do not all work at once.
func spread(interval time.Duration) time.Duration {
	return max(1, interval-rand.N(max(1, interval/10)))
}

// ended returns a channel that is closed when a group has ended.
func ended(group *sync.WaitGroup) <-chan struct{} {
	c := make(chan struct{})
	go func() { group.Wait(); close(c) }()
	return c
}

// within reports whether a channel is closed within d.
func within(c <-chan struct{}, d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-c:
		return true
	case <-late.C:
		return false
	}
}

// recovered sets err to the panic of the function that defers it, if there is one.
func recovered(err *error) {
	if v := recover(); v != nil {
		if p, ok := v.(*stint.PanicError); ok { // of a batch, with the stack of its call
			*err = p
			return
		}
		*err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
	}
}
