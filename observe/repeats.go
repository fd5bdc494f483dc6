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

// repeats counts log lines that were left out. The zero value is ready.
type repeats struct {
	mu    sync.Mutex // guards the rest
	known map[string]*repeated
	said  []time.Time // of the last minute: at most maxTrouble
	more  int         // lines left out that no kind counts
}

// repeated is the state of one kind of trouble.
type repeated struct {
	said   time.Time
	unsaid int
}

// due reports whether to log now, and how many lines were left out before: of this kind since its
// last line, and of any kind when the minute was full or the kind was forgotten. No line is counted
// twice. A negative time leaves nothing out.
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

// of returns the state of a kind. When there are too many kinds all are forgotten, except how many
// lines were left out.
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
