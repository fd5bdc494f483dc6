package engine

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// bell wakes one sleeper. A ring while nobody sleeps is kept: whoever waits
// next returns at once, so that nothing is lost between looking and sleeping.
type bell struct{ c chan struct{} }

func newBell() *bell { return &bell{make(chan struct{}, 1)} }

func (b *bell) ring() {
	select {
	case b.c <- struct{}{}:
	default:
	}
}

// wait sleeps until a ring, the time is over, or ctx ends; it reports whether
// it rang.
func (b *bell) wait(ctx context.Context, d time.Duration) bool { return b.waitBeside(ctx, d, nil) == b }

// waitBeside does the same beside another bell, which may be nil, and returns
// the one that rang.
func (b *bell) waitBeside(ctx context.Context, d time.Duration, other *bell) *bell {
	var beside chan struct{}
	if other != nil {
		beside = other.c
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.c:
		return b
	case <-beside:
		return other
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// longestBackoff is what a backoff comes to in the end.
const longestBackoff = 2 * time.Second

// backoff spaces out what is tried again, from 50 ms to 2 s, with jitter so
// that many do not come back at the same instant.
type backoff struct{ next time.Duration }

func newBackoff() *backoff { return &backoff{} }

func (b *backoff) reset() { b.next = 0 }

// sleep waits for the next time; false says that ctx ended.
func (b *backoff) sleep(ctx context.Context) bool {
	b.next = min(max(2*b.next, 50*time.Millisecond), longestBackoff)
	timer := time.NewTimer(b.next/2 + rand.N(b.next/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// slots tells what each slot works on now; index 0 is the first slot.
type slots []atomic.Int64

func newSlots(n int) slots { return make(slots, n) }
