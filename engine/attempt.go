package engine

import (
	"context"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// attempt is one run of a handler while it goes on.
type attempt struct {
	s      *session
	slot   int
	began  time.Time
	cancel context.CancelCauseFunc
	keep   bool // it goes on when the engine is fenced

	mu   sync.Mutex // guards what the handler's own completion changes
	over bool       // the handler has returned; what it left running comes too late
	outcome
}

// fate is what a handler's own completion came to.
type fate int

const (
	open      fate = iota // it did not complete itself: what it returns decides
	completed             // it did, and that is recorded
	unknown               // it tried to, and nobody knows whether the commit arrived
)

type attemptKey struct{}

// attempts are the runs that go on now.
type attempts struct {
	mu   sync.Mutex
	runs map[stint.ID]*attempt
}

func newAttempts() *attempts { return &attempts{runs: map[stint.ID]*attempt{}} }

func (l *attempts) add(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[a.entry.ID] = a
}

func (l *attempts) remove(a *attempt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.runs, a.entry.ID)
}

// jobs lists what runs.
func (l *attempts) jobs() []stint.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	ids := make([]stint.ID, 0, len(l.runs))
	for id := range l.runs {
		ids = append(ids, id)
	}
	return ids
}

// cancel cancels the run of a job, if there is one.
func (l *attempts) cancel(id stint.ID, cause error) {
	l.mu.Lock()
	a := l.runs[id]
	l.mu.Unlock()
	if a != nil {
		a.cancel(cause)
	}
}

// heedless counts the runs that were to end with the session and did not.
func (l *attempts) heedless() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, a := range l.runs {
		if !a.keep {
			n++
		}
	}
	return n
}

// context is what the handler gets: it ends with the work, with the job's
// timeout, or when somebody cancels the job, and what is enqueued with it
// belongs to the job.
func (a *attempt) context() (context.Context, context.CancelFunc) {
	parent := a.s.work
	if a.keep {
		parent = a.s.kept
	}
	ctx, cancel := context.WithCancelCause(parent)
	a.cancel = cancel
	end := func() { cancel(nil) }
	if timeout := a.entry.Timeout; timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, timeout, stint.ErrTimeout)
		end = func() { stop(); cancel(nil) }
	}
	ctx = stint.WithCorrelation(ctx, a.entry.Correlation)
	return context.WithValue(ctx, attemptKey{}, a), end
}
