package observe

import (
	"sync"
	"time"
)

// maxRepeats bounds what is remembered of trouble.
const maxRepeats = 1000

// repeats counts what was not said. The zero value is ready.
type repeats struct {
	mu    sync.Mutex // guards the rest
	known map[string]*repeated
}

type repeated struct {
	said   time.Time
	unsaid int
}

// due reports whether something is to be said now, and how often it was not
// since the last time.
func (r *repeats) due(what string, now time.Time, every time.Duration) (bool, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil || len(r.known) >= maxRepeats {
		r.known = map[string]*repeated{}
	}
	one := r.known[what]
	if one == nil {
		one = &repeated{}
		r.known[what] = one
	}
	if !one.said.IsZero() && now.Sub(one.said) < every {
		one.unsaid++
		return false, 0
	}
	unsaid := one.unsaid
	one.said, one.unsaid = now, 0
	return true, unsaid
}
