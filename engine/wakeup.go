package engine

import (
	"context"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// wakeup wakes one goroutine. A notification while none waits is kept: the next wait returns at
// once, so that nothing is lost between looking and sleeping.
type wakeup struct{ c chan struct{} }

func newWakeup() *wakeup { return &wakeup{make(chan struct{}, 1)} }

// topic says what a loop waits for that the store notifies of.
type topic int

const (
	work          topic = iota // entries to claim
	dueTimes                   // a waiting job that is due earlier than was known
	cancellations              // cancelled jobs
	failures                   // failures to decide about
	pausedQueues               // paused or resumed queues
	schedules                  // changed schedules
	leases                     // free leases: a wakeup for each singleton task, from here on
)

// wakeups are the loops of a session, by topic.
type wakeups []*wakeup

func newWakeups(tasks int) wakeups {
	w := make(wakeups, int(leases)+tasks)
	for i := range w {
		w[i] = newWakeup()
	}
	return w
}

// notifyAll wakes all loops, the claim stage last, so that it is the first to run.
func (w wakeups) notifyAll() {
	for _, one := range slices.Backward(w) {
		one.notify()
	}
}

// leasesFree wakes the loops that wait for leases.
func (w wakeups) leasesFree() { w[leases:].notifyAll() }

func (b *wakeup) notify() {
	select {
	case b.c <- struct{}{}:
	default:
	}
}

// wait sleeps until a notification, for d at most, or until ctx ends. It reports whether there was
// a notification.
func (b *wakeup) wait(ctx context.Context, d time.Duration) bool {
	return b.waitEither(ctx, d, nil) == b
}

// waitEither waits for either of two wakeups, of which other may be nil, and returns the one that
// was notified, or nil.
func (b *wakeup) waitEither(ctx context.Context, d time.Duration, other *wakeup) *wakeup {
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

// slots holds the position that each slot works on now; index 0 is the first slot.
type slots []atomic.Int64

// sleep waits for d; false means that ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
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
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			f()
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
		*err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
	}
}
