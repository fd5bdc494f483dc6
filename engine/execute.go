package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

const (
	maxResult = 1 << 20  // bytes of a result
	maxError  = 16 << 10 // bytes of an error's text
	maxStack  = 4 << 10  // bytes of a stack

	// stale is how long a prefetched entry may wait for a slot before it is
	// given to others.
	stale = time.Second
)

// execute is the second stage: slots that run handlers, and a steward that
// hands back what is not to be run here. It returns when both of its inputs
// are closed and everything has ended.
func (s *session) execute(in inputs, ended chan<- task) {
	var all sync.WaitGroup
	for i := range s.slots {
		s.slot(&all, i, in, ended)
	}
	all.Go(func() { s.steward(in, ended) })
	all.Wait()
}

// slot runs one task after the other. A handler that ends its goroutine
// (runtime.Goexit, as a test's FailNow does) takes the slot's with it: its
// attempt failed, and the slot goes on in a new one.
//
// The first slot is the only one that runs the entries that are to be run
// alone: at most one at a time.
func (s *session) slot(all *sync.WaitGroup, i int, in inputs, ended chan<- task) {
	if i > 0 {
		in.alone = nil
	}
	all.Go(func() {
		var current task
		var began time.Time
		over := true
		defer func() {
			if over {
				return
			}
			end := stint.Ending{Outcome: stint.OutcomeFailed, Err: errGoexit}
			s.slots[i].Store(0)
			s.pass(s.conclude(current, end, began, i+1), ended)
			s.slot(all, i, in, ended)
		}()
		for in.next(&current) {
			s.begun.Add(1)
			if current.entry.Cancelled {
				s.pass(s.conclude(current, stint.Ending{Outcome: stint.OutcomeCancelled}, time.Time{}, 0), ended)
				continue
			}
			if !s.mayBegin(current.entry, i) {
				s.pass(s.giveUp(current), ended)
				continue
			}
			over, began = false, time.Now()
			current, end := s.perform(current, i)
			over = true
			s.slots[i].Store(0)
			s.pass(s.conclude(current, end, began, i+1), ended)
		}
	})
}

// inputs are the channels from the claim stage to the slots and the steward.
type inputs struct {
	ready   chan task // to run
	alone   chan task // to run one at a time
	foreign chan task // of kinds that this engine does not know
}

func newInputs(slots int) inputs {
	return inputs{
		ready: make(chan task, readyRoom+slots), alone: make(chan task, readyRoom+slots), foreign: make(chan task, readyRoom+slots),
	}
}

// send puts a task where it belongs. There is always room.
func (in inputs) send(t task, known bool) {
	switch {
	case !known:
		in.foreign <- t
	case t.entry.Suspect >= alone:
		in.alone <- t
	default:
		in.ready <- t
	}
}

func (in inputs) close() {
	close(in.foreign)
	close(in.alone)
	close(in.ready)
}

// next takes the next task for a slot; false says that none will come.
func (in *inputs) next(t *task) bool {
	for in.alone != nil {
		var ok bool
		select {
		case *t, ok = <-in.alone:
			if ok {
				return true
			}
			in.alone = nil
		case *t, ok = <-in.ready:
			if ok {
				return true
			}
			// Closed, as alone is by now: what that still holds comes first.
			*t, ok = <-in.alone
			return ok
		}
	}
	var ok bool
	*t, ok = <-in.ready
	return ok
}

// mayBegin tells whether an entry may be run now: not when the engine stops;
// a suspect, or what must run at most once, not before a beat has announced
// it; and none when the engine may have been buried since its last beat.
func (s *session) mayBegin(e *stint.Entry, slot int) bool {
	select {
	case <-s.stopping:
		return false
	default:
	}
	s.slots[slot].Store(int64(e.Pos))
	if (e.Suspect == 0 && e.MaxLosses > 0 || s.announce()) && !s.expired() {
		return true
	}
	s.slots[slot].Store(0)
	return false
}

// pass sends a task on to the last stage.
func (s *session) pass(t task, ended chan<- task) {
	ended <- t
	s.held.ended(1)
	s.pace.add(1)
	s.capacity.ring()
}

// giveUp hands an entry back that was not begun.
func (s *session) giveUp(t task) task {
	return s.conclude(t, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, time.Time{}, 0)
}

// steward hands back entries of kinds that this engine does not know, and
// prefetched entries that found no slot in a while: others may have one.
func (s *session) steward(in inputs, ended chan<- task) {
	tick := time.NewTicker(stale / 2)
	defer tick.Stop()
	var seen int64
	quiet := 0
	for {
		select {
		case t, ok := <-in.foreign:
			if !ok {
				// The engine stops: what the slots do not get to is not begun.
				for t := range in.alone {
					s.pass(s.giveUp(t), ended)
				}
				for t := range in.ready {
					s.pass(s.giveUp(t), ended)
				}
				return
			}
			s.pass(s.conclude(t, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartKind}, time.Time{}, 0), ended)
		case <-tick.C:
			if now := s.begun.Load(); now != seen || len(in.ready) == 0 {
				seen, quiet = now, 0
				continue
			}
			// Entries wait, and no slot has begun anything for two ticks.
			if quiet++; quiet >= 2 {
				s.pace.slow()
				s.returnReady(in.ready, ended)
			}
		}
	}
}

// returnReady hands back everything that waits for a slot now.
func (s *session) returnReady(ready <-chan task, ended chan<- task) {
	n := 0
	defer func() { s.emit(stint.Event{Type: stint.EventReturned, Engine: s.token, Count: n}) }()
	for {
		select {
		case t, ok := <-ready:
			if !ok {
				return
			}
			s.pass(s.giveUp(t), ended)
			n++
		default:
			return
		}
	}
}

// perform calls the handler and says how that ended.
func (s *session) perform(t task, slot int) (task, stint.Ending) {
	e := t.entry
	if s.config.OnEvent != nil {
		s.emit(stint.Event{Type: stint.EventStarted, Engine: s.token, Job: &e.Job})
	}
	a := &attempt{s: s, task: t, slot: slot + 1, began: time.Now(), keep: s.mux.Declaration(e.Kind).Keep}
	ctx, end := a.context()
	defer end()
	s.attempts.add(a)
	defer s.attempts.remove(a)
	// The handler gets a job of its own: what it does to it changes nothing.
	job := e.Job
	result, err := call(ctx, s.mux.Handler(e.Kind), &job)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.task.fate = a.fate
	if a.fate == completed && err != nil {
		s.emit(stint.Event{Type: stint.EventTrouble, Engine: s.token, Job: &e.Job, Doing: "return from a handler that had completed its job", Err: err})
	}
	return a.task, ending(ctx, result, err)
}

// errGoexit is how an attempt ends whose handler ended its goroutine.
var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit)")

// call runs the handler and turns a panic into an error.
func call(ctx context.Context, h stint.Handler, job *stint.Job) (result json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return h(ctx, job)
}

// ending classifies what a handler returned. An error counts as the stop's
// only when the engine did cancel the handler for a stop: a handler's own
// time-out is a failure like any other.
func ending(ctx context.Context, result json.RawMessage, err error) stint.Ending {
	end := stint.Ending{Outcome: stint.OutcomeCompleted, Result: result}
	if err == nil {
		return end
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, stint.ErrStopping):
		return stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront, Note: "the engine stopped"}
	case stint.AsEnding(err, &end):
		return end
	case errors.Is(cause, stint.ErrCancelled):
		return stint.Ending{Outcome: stint.OutcomeCancelled, Err: err, Result: result}
	case errors.Is(cause, stint.ErrTimeout):
		err = fmt.Errorf("%w: %w", stint.ErrTimeout, err)
	}
	end.Outcome, end.Err = stint.OutcomeFailed, err
	if p, ok := errors.AsType[*stint.PanicError](err); ok {
		end.Stack = p.Stack
	}
	return end
}

// conclude decides what follows, and makes it storable.
func (s *session) conclude(t task, end stint.Ending, began time.Time, slot int) task {
	if s.fenced() {
		t.drop = true
		return t
	}
	if t.fate == completed {
		return t
	}
	clean(&end)
	now := time.Now()
	t.done = stint.Conclude(t.entry, end, s.clock.at(now), random01())
	t.done.Nonce, t.done.Slot = t.claim.ref.Nonce, slot
	t.done.Started, t.done.Ended = began, now
	if t.done.Error != nil {
		t.done.Error.Message = stint.CleanText(t.done.Error.Message, maxError)
		t.done.Error.Stack = stint.CleanHead(t.done.Error.Stack, maxStack)
	}
	t.done.Reason = stint.CleanText(t.done.Reason, maxError)
	return t
}

// clean takes out a result that no store could keep: the work is done all the
// same, and a note says what is missing.
func clean(end *stint.Ending) {
	if end.Result == nil {
		return
	}
	if err := stint.CheckJSON("result", end.Result, maxResult); err != nil {
		end.Note = "the result was not kept: " + err.Error()
		end.Result = nil
	}
}
