package load

import (
	"sync"
	"time"
)

// usage counts how long slots work, all together. The zero value is ready.
type usage struct {
	mu      sync.Mutex // guards the following
	running int
	busy    time.Duration // up to since
	since   time.Time
}

// reading is what usage had counted at a moment.
type reading struct {
	at   time.Time
	busy time.Duration
}

func (u *usage) enter() { u.add(1) }
func (u *usage) leave() { u.add(-1) }

func (u *usage) read() reading { return u.add(0) }

// add counts up to now, and from then on with so many more that run.
func (u *usage) add(n int) reading {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := time.Now()
	if u.running > 0 {
		u.busy += time.Duration(u.running) * now.Sub(u.since)
	}
	u.since = now
	u.running += n
	return reading{now, u.busy}
}

// until is the share of the time of so many slots that was used up to a later
// reading; 0 when there was no time.
func (r reading) until(later reading, slots int) float64 {
	available := time.Duration(slots) * later.at.Sub(r.at)
	if available <= 0 {
		return 0
	}
	return float64(later.busy-r.busy) / float64(available)
}
