package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// prefetchTime is how much work, at the recent pace, an engine claims beyond its free slots: enough
// to bridge the next claim, too little to keep work from others.
const prefetchTime = 25 * time.Millisecond

// maxPrefetch bounds the memory for it.
const maxPrefetch = 5000

// leastPrefetch is the share of that bound that each pool has at least.
const leastPrefetch = 100

// pace measures how fast jobs end.
type pace struct {
	ended atomic.Int64 // since then
	mu    sync.Mutex   // guards the rest
	since time.Time
	rate  float64 // jobs per second, smoothed
}

func newPace(now time.Time) *pace { return &pace{since: now} }

func (p *pace) add(n int) { p.ended.Add(int64(n)) }

// prefetch returns how many jobs to hold beyond the slots: none when jobs are slow.
func (p *pace) prefetch(now time.Time) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if elapsed := now.Sub(p.since); elapsed >= 5*time.Millisecond {
		rate := float64(p.ended.Swap(0)) / elapsed.Seconds()
		p.rate += (rate - p.rate) / 2
		p.since = now
	}
	return min(maxPrefetch, int(p.rate*prefetchTime.Seconds()))
}

// slow resets the pace, which turned out to be wrong.
func (p *pace) slow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = 0
}
