package engine

import (
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// execute is the second stage: in each pool slots that run handlers, and a
// steward that hands back what is not to be run here, and gives those their turns
// that are to be run alone. It returns when all of its inputs are closed and
// everything has ended.
func (s *session) execute(ended chan<- *task) {
	var all sync.WaitGroup
	for _, p := range s.pools.all {
		for i := range p.slots {
			s.slot(&all, p, i, ended)
		}
		all.Go(func() { s.steward(p, ended) })
	}
	all.Wait()
}

// slot runs one task after the other. A handler that ends its goroutine
// (runtime.Goexit, as a test's FailNow does) takes the slot's with it: its
// attempt failed, and the slot goes on in a new one.
func (s *session) slot(all *sync.WaitGroup, p *pool, nth int, ended chan<- *task) {
	i := p.first + nth
	all.Go(func() {
		var t *task
		over := true
		defer func() {
			if over {
				return
			}
			end := stint.Ending{Outcome: stint.OutcomeFailed, Err: errGoexit}
			s.free(i)
			s.pass(s.conclude(t, end), ended)
			s.slot(all, p, nth, ended)
		}()
		for {
			if t = s.nextTask(p); t == nil {
				return
			}
			p.begun.Add(1)
			if t.entry.Cancelled {
				s.pass(s.conclude(t, stint.Ending{Outcome: stint.OutcomeCancelled}), ended)
				continue
			}
			if !s.reserveHooks(t.entry) {
				s.giveUpForHooks(t, ended)
				continue
			}
			s.untold.await(t.entry.ID, s.work.Done())
			if !s.mayBegin(t.entry, i) {
				s.pass(s.notBegun(t), ended)
				continue
			}
			over = false
			done := s.conclude(t, s.perform(t, i)) // which asks the handler's error about itself
			over = true
			s.free(i)
			s.pass(done, ended)
		}
	})
}

// nextTask is the next task for a slot; nil says that none will come.
func (s *session) nextTask(p *pool) *task {
	if p.empty() {
		s.meters.starved.Add(1)
	}
	return <-p.ready
}

// mayBegin tells whether an entry may be run now: not when the engine stops, nor
// when its queue was paused, nor when it is too late to begin; a suspect, or what
// must run at most once, not before a beat has announced it; and none when the
// engine may have been buried since its last beat.
func (s *session) mayBegin(e *stint.Entry, slot int) bool {
	select {
	case <-s.stopping:
		return false
	default:
	}
	if !s.welcome(e) {
		return false
	}
	s.slots[slot].Store(int64(e.Pos))
	if e.MaxLosses == 0 {
		s.held.begins(e.Pos)
	}
	// While it waited for the beat, all of that may have changed.
	if (e.Suspect == 0 && e.MaxLosses > 0 || s.announce()) && !s.expired() && s.welcome(e) {
		return true
	}
	s.free(slot)
	return false
}

// welcome tells whether nobody is against it that an entry begins now: its queue
// is not paused, and it is not too late.
func (s *session) welcome(e *stint.Entry) bool { return !s.pauses.has(e.Queue) && !s.tooLate(e) }

// free says that a slot works on nothing any more.
func (s *session) free(slot int) { s.slots[slot].Store(0) }

// pass sends an outcome on to the last stage. If it is of an entry that had its
// turn to be run alone, that is over.
func (s *session) pass(t *task, ended chan<- *task) {
	p := t.pool
	if t.entry.Suspect >= alone && p.turn.CompareAndSwap(t, nil) {
		<-s.solo
	}
	ended <- t
	if p.ended() {
		s.capacity.ring()
	}
}

// tooLate tells whether an entry was to begin before now, by the store's clock.
func (s *session) tooLate(e *stint.Entry) bool {
	return !e.StartBy.IsZero() && e.ExpiredAt(s.clock.at(time.Now()))
}

// notBegun says what comes of an entry that has a place for its hooks and may
// not be run: it has expired, or goes back.
func (s *session) notBegun(t *task) *task {
	if s.tooLate(t.entry) {
		return s.conclude(t, stint.Ending{Outcome: stint.OutcomeExpired})
	}
	s.hooks.release(t.entry.Kind)
	return s.giveUp(t)
}

// giveUpForHooks hands an entry back that has no place for its hooks, and keeps
// its slot and its room in the pool until there is one again. Otherwise the
// engine would claim that entry anew, and perhaps always before the others.
func (s *session) giveUpForHooks(t *task, ended chan<- *task) {
	p := t.pool
	p.busy.Add(1)
	s.pass(s.giveUp(t), ended)
	s.awaitHookRoom()
	p.busy.Add(-1)
	s.capacity.ring()
}

// giveUp hands an entry back that was not begun.
func (s *session) giveUp(t *task) *task {
	return s.conclude(t, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront})
}
