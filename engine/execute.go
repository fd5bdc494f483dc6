package engine

import (
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// execute is the second stage: slots that run handlers, and a steward that
// hands back what is not to be run here. It returns when both of its inputs
// are closed and everything has ended.
func (s *session) execute(in inputs, ended chan<- outcome) {
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
func (s *session) slot(all *sync.WaitGroup, i int, in inputs, ended chan<- outcome) {
	if i > 0 {
		in.alone = nil
	}
	all.Go(func() {
		var current task
		var o outcome
		var began time.Time
		over := true
		defer func() {
			if over {
				return
			}
			end := stint.Ending{Outcome: stint.OutcomeFailed, Err: errGoexit}
			s.slots[i].Store(0)
			s.pass(s.conclude(o, end, began, i+1), ended)
			s.slot(all, i, in, ended)
		}()
		for in.next(&current) {
			s.begun.Add(1)
			if current.entry.Cancelled {
				s.pass(s.conclude(outcome{task: current}, stint.Ending{Outcome: stint.OutcomeCancelled}, time.Time{}, 0), ended)
				continue
			}
			if !s.reserveHooks(current.entry) {
				s.held.occupied(1)
				s.pass(s.giveUp(current), ended)
				s.awaitHookRoom()
				continue
			}
			if !s.mayBegin(current.entry, i) {
				s.hooks.release(current.entry.Kind)
				s.pass(s.giveUp(current), ended)
				continue
			}
			over, began, o = false, time.Now(), outcome{task: current}
			end := s.perform(&o, i)
			over = true
			s.slots[i].Store(0)
			s.pass(s.conclude(o, end, began, i+1), ended)
		}
	})
}

// mayBegin tells whether an entry may be run now: not when the engine stops,
// nor when its queue was paused; a suspect, or what must run at most once, not
// before a beat has announced it; and none when the engine may have been buried
// since its last beat.
func (s *session) mayBegin(e *stint.Entry, slot int) bool {
	select {
	case <-s.stopping:
		return false
	default:
	}
	if s.pauses.has(e.Queue) {
		return false
	}
	s.slots[slot].Store(int64(e.Pos))
	if e.MaxLosses == 0 {
		s.held.begins(e.Pos)
	}
	if (e.Suspect == 0 && e.MaxLosses > 0 || s.announce()) && !s.expired() {
		return true
	}
	s.slots[slot].Store(0)
	return false
}

// pass sends an outcome on to the last stage.
func (s *session) pass(o outcome, ended chan<- outcome) {
	ended <- o
	s.held.ended(1)
	s.pace.add(1)
	s.capacity.ring()
}

// giveUp hands an entry back that was not begun.
func (s *session) giveUp(t task) outcome {
	return s.conclude(outcome{task: t}, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, time.Time{}, 0)
}
