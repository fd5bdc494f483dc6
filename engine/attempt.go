package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint"
)

// attempt is one run of a handler while it goes on, and the handler's context.
type attempt struct {
	context.Context // leads to the job and its engine; ends with lifetime
	stint.Run       // what the context leads to
	runContext      runContext

	s            *session
	task         *task
	job          stint.Job    // the handler's copy: changing it has no effect
	unresponsive unresponsive // of the goroutine that watches for it

	// mu guards what the handler's own completion changes in the task, until lifetime is closed: a
	// goroutine that the handler left running comes too late.
	mu sync.Mutex
}

// txOutcome is the result of a handler's own completion.
type txOutcome int8

const (
	txNone      txOutcome = iota // it did not complete itself: what it returns decides
	txCompleted                  // it did, and that is recorded
	txUnknown                    // it tried, and whether the commit arrived is unknown
)

type attemptKey struct{}

// attempts are the runs that go on now: at most one for each slot, and inline runs by job.
type attempts struct {
	slots  []atomic.Pointer[attempt]
	inline *sync.Map
}

func newAttempts(slots int) attempts {
	return attempts{slots: make([]atomic.Pointer[attempt], slots), inline: &sync.Map{}}
}

func (l attempts) add(a *attempt) {
	if a.task.inline != nil {
		l.inline.Store(a.task.entry.ID, a)
	} else {
		l.slots[a.task.done.Slot-1].Store(a)
	}
}

func (l attempts) remove(a *attempt) {
	if a.task.inline != nil {
		l.inline.Delete(a.task.entry.ID)
	} else {
		l.slots[a.task.done.Slot-1].Store(nil)
	}
}

func (l attempts) all(yield func(*attempt) bool) {
	for i := range l.slots {
		if a := l.slots[i].Load(); a != nil && !yield(a) {
			return
		}
	}
	l.inline.Range(func(_, a any) bool { return yield(a.(*attempt)) })
}

func (l attempts) jobs() []stint.ID {
	ids := []stint.ID{}
	for a := range l.all {
		ids = append(ids, a.task.entry.ID)
	}
	return ids
}

func (l attempts) cancel(id stint.ID, cause error) {
	for a := range l.all {
		if a.task.entry.ID == id {
			a.runContext.cancellable().cancel(cause)
		}
	}
}

// sessionBound counts the runs that should end with the session.
func (l attempts) sessionBound() int {
	n := 0
	for a := range l.all {
		if !a.task.runner.keep {
			n++
		}
	}
	return n
}

// open makes the handler's context, which lasts until close.
func (a *attempt) open() {
	parent, t := a.s.work, a.task
	if t.runner.keep {
		parent = a.s.kept
	}
	if t.inline != nil {
		parent = withValues{parent, t.inline.caller}
	}
	a.runContext.parent = parent
	if t.inline != nil || t.entry.Timeout > 0 {
		a.runContext.limit(t)
	}
	a.Context = a.Run.Context(&a.runContext)
}

// Value lets [CompleteTx] find the attempt.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}
