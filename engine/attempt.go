package engine

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stint-go/stint"
)

// attempt is one run of a handler while it goes on, and the handler's context.
type attempt struct {
	context.Context // leads to the job and its engine, and ends as life does
	stint.Attempt   // what the context leads to
	life            life

	s    *session
	task *task
	job  stint.Job // the handler's own: what it does to it changes nothing
	deaf deaf      // of the one who watches for it

	// mu guards what the handler's own completion changes of the task, until life
	// is closed: what the handler left running comes too late.
	mu sync.Mutex
}

// fate is what a handler's own completion came to.
type fate int8

const (
	open      fate = iota // it did not complete itself: what it returns decides
	completed             // it did, and that is recorded
	unknown               // it tried to, and nobody knows whether the commit arrived
)

type attemptKey struct{}

// attempts are the runs that go on now: of each slot at most one, and those of
// guests, by job.
type attempts struct {
	slots  []atomic.Pointer[attempt]
	guests *sync.Map
}

func newAttempts(slots int) attempts {
	return attempts{slots: make([]atomic.Pointer[attempt], slots), guests: &sync.Map{}}
}

func (l attempts) add(a *attempt) {
	if a.task.guest != nil {
		l.guests.Store(a.task.entry.ID, a)
		return
	}
	l.slots[a.task.done.Slot-1].Store(a)
}

func (l attempts) remove(a *attempt) {
	if a.task.guest != nil {
		l.guests.Delete(a.task.entry.ID)
		return
	}
	l.slots[a.task.done.Slot-1].Store(nil)
}

// all are the runs in no order.
func (l attempts) all(yield func(*attempt) bool) {
	for i := range l.slots {
		if a := l.slots[i].Load(); a != nil && !yield(a) {
			return
		}
	}
	l.guests.Range(func(_, a any) bool { return yield(a.(*attempt)) })
}

// jobs lists what runs.
func (l attempts) jobs() []stint.ID {
	ids := []stint.ID{}
	for a := range l.all {
		ids = append(ids, a.task.entry.ID)
	}
	return ids
}

// cancel cancels the run of a job, if there is one.
func (l attempts) cancel(id stint.ID, cause error) {
	for a := range l.all {
		if a.task.entry.ID == id {
			a.life.end().cancel(cause)
		}
	}
}

// heedless counts the runs that were to end with the session and did not.
func (l attempts) heedless() int {
	n := 0
	for a := range l.all {
		if !a.task.trade.keep {
			n++
		}
	}
	return n
}

// open makes the attempt a context that the handler can be given, until it is
// closed.
func (a *attempt) open() {
	parent, t := a.s.work, a.task
	if t.trade.keep {
		parent = a.s.kept
	}
	if t.guest != nil {
		parent = beside{parent, t.guest.caller}
	}
	a.life.parent = parent
	if t.guest != nil || t.entry.Timeout > 0 {
		a.life.limit(t)
	}
	a.Context = stint.WithAttempt(&a.life, &a.Attempt)
}

// Value lets [CompleteTx] find the attempt.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}
