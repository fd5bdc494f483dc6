package check

import (
	"math"
	"time"
)

// Instant is a moment on this machine in nanoseconds, comparable between
// processes until the next boot. Its zero point means nothing.
type Instant int64

// forever is the end of what never ended.
const forever Instant = math.MaxInt64

// origin ties this process's monotonic readings to the machine's clock.
// [time.Since] then does the rest without a system call, and follows fake
// time in a synctest bubble.
var origin = func() (o struct {
	at   Instant
	when time.Time
}) {
	// Being preempted between the two readings would shift every instant of
	// this process, so the closest pair of a few counts.
	best := time.Duration(math.MaxInt64)
	for range 10 {
		before := time.Now()
		at := machineClock()
		gap := time.Since(before)
		if gap < best {
			best = gap
			o.at, o.when = at, before.Add(gap/2)
		}
	}
	return o
}()

// Now is the present instant.
func Now() Instant { return origin.at.Add(time.Since(origin.when)) }

// Add moves an instant; it stops at the end of time rather than wrap.
func (i Instant) Add(d time.Duration) Instant {
	if d > 0 && i > forever-Instant(d) {
		return forever
	}
	return i + Instant(d)
}

// Sub is the time from j to i.
func (i Instant) Sub(j Instant) time.Duration { return time.Duration(i - j) }
