package observe

import (
	"slices"
	"sync"
	"time"
)

const (
	// maxRepeats bounds what is remembered of trouble.
	maxRepeats = 1000

	// maxTrouble bounds the lines about trouble of all kinds in a minute: kinds
	// may be as many as the engines of a fleet that falls apart.
	maxTrouble = 30
)

// repeats counts what was not said. The zero value is ready.
type repeats struct {
	mu    sync.Mutex // guards the rest
	known map[string]*repeated
	said  []time.Time // of the last minute: at most maxTrouble
	more  int         // not said, and of no kind that tells
}

// repeated is what is known of one kind.
type repeated struct {
	said   time.Time
	unsaid int
}

// due reports whether something is to be said now, and how much was not before
// it: of its kind, since the last time, and of any kind for which there was no
// room, or which is forgotten. Nothing is counted twice. A negative time leaves
// nothing out.
func (r *repeats) due(what string, now time.Time, every time.Duration) (bool, int) {
	if every < 0 {
		return true, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.of(what)
	if !one.said.IsZero() && now.Sub(one.said) < every {
		one.unsaid++
		return false, 0
	}
	r.said = slices.DeleteFunc(r.said, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(r.said) >= maxTrouble {
		r.more++
		return false, 0
	}
	r.said = append(r.said, now)
	unsaid := one.unsaid + r.more
	one.said, one.unsaid, r.more = now, 0, 0
	return true, unsaid
}

// of is what is known of a kind. Of too many, all are forgotten but what was
// not said.
func (r *repeats) of(what string) *repeated {
	if one := r.known[what]; one != nil {
		return one
	}
	if r.known == nil || len(r.known) >= maxRepeats {
		for _, one := range r.known {
			r.more += one.unsaid
		}
		r.known = map[string]*repeated{}
	}
	one := &repeated{}
	r.known[what] = one
	return one
}
