package engine

import (
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// execute is the second stage: in each pool, slots that run handlers, and a returner that returns
// what is not to run here and gives suspects their turn to run alone. It returns when all inputs
// are closed and everything has ended.
func (s *session) execute(ended chan<- *task) {
	var all sync.WaitGroup
	for _, p := range s.pools.all {
		for i := range p.slots {
			s.runSlot(&all, p, &p.slots[i], ended)
		}
		all.Go(func() { s.runReturner(p, ended) })
	}
	all.Wait()
}

// runSlot runs one task after the other. A handler that ends its goroutine (runtime.Goexit, as a
// test's FailNow does) ends the slot's goroutine: the attempt failed, and the slot goes on in a new
// goroutine.
func (s *session) runSlot(all *sync.WaitGroup, p *pool, one *slot, ended chan<- *task) {
	all.Go(func() {
		var t *task
		over := true
		defer func() {
			if over {
				return
			}
			end := store.Result{Outcome: stint.OutcomeFailed, Err: errGoexit}
			one.pos.Store(0)
			s.sendOutcome(s.conclude(t, end), ended)
			s.runSlot(all, p, one, ended)
		}()
		for {
			if t = s.nextTask(p, one); t == nil {
				return
			}
			p.started.Add(1)
			if t.batch != nil {
				s.runBatch(t.batch, one, ended)
				continue
			}
			if t.entry.Cancelled {
				s.sendOutcome(s.conclude(t, store.Result{Outcome: stint.OutcomeCancelled}), ended)
				continue
			}
			if !s.reserveHooks(t.entry) {
				s.returnForHooks(t, ended)
				continue
			}
			if !s.prepareStart(t, one) {
				s.sendOutcome(s.concludeUnstarted(t), ended)
				continue
			}
			over = false
			done := s.conclude(t, s.perform(t, one)) // conclude calls methods of the handler's error
			over = true
			one.pos.Store(0)
			if p.auto == nil {
				s.sendOutcome(done, ended)
				continue
			}
			kind, began, good := t.entry.Kind, done.done.Started, goodJobs(done)
			s.sendOutcome(done, ended) // while the database is slow it holds the slot
			p.auto.ran(kind, began, good)
		}
	})
}

// nextTask returns the next task for a slot; nil means that none will come.
func (s *session) nextTask(p *pool, one *slot) *task {
	if len(p.ready) == 0 {
		s.meters.starved.Add(1)
	}
	if p.auto != nil {
		return p.auto.next(p.ready, one.number)
	}
	return <-p.ready
}

// prepareStart reports whether a task may start now. Suspects and entries with MaxLosses 0 start only
// after a beat announced them, and so do inline runs. Nothing starts when the engine may have been
// buried since its last beat.
func (s *session) prepareStart(t *task, one *slot) bool {
	return s.announceable(t, one) && s.mayStart(t, one, !s.mustAnnounce(t) || s.announce())
}

// mustAnnounce reports whether a task starts only after a beat announced it.
func (s *session) mustAnnounce(t *task) bool {
	return t.inline != nil || t.entry.Suspect > 0 || t.entry.MaxLosses == 0 || s.stoodStill()
}

// announceable is the first half of prepareStart: beats announce the task after it.
func (s *session) announceable(t *task, one *slot) bool {
	e := t.entry
	s.endEvents.await(e.ID, s.work.Done())
	if !s.startable(t) {
		return false
	}
	one.pos.Store(int64(e.Pos))
	if e.MaxLosses == 0 {
		s.inflight.addOnce(e.Pos)
	}
	return true
}

// mayStart is the second half: all of that may have changed while it waited for the beat.
func (s *session) mayStart(t *task, one *slot, announced bool) bool {
	if announced && !s.fenceDue() && s.startable(t) {
		return true
	}
	one.pos.Store(0)
	return false
}

// startable reports whether a task's start-by time has not passed, and unless it is an inline run,
// whether the engine does not stop, the queue is not paused, and its limits let it start still.
func (s *session) startable(t *task) bool {
	if t.inline == nil {
		select {
		case <-s.stopping:
			return false
		default:
		}
		if !s.present() || s.pauses.has(t.entry.Queue) || s.permits.withdrawn(t) {
			return false
		}
	}
	return !s.pastStartBy(t.entry)
}

// pastStartBy reports whether an entry's start-by time has passed, by the store's clock.
func (s *session) pastStartBy(e *store.Entry) bool {
	return !e.StartBy.IsZero() && e.ExpiredAt(s.clock.at(time.Now()))
}

// sendOutcome sends a task to the last stage, and ends its turn if it ran alone.
func (s *session) sendOutcome(t *task, ended chan<- *task) {
	p := t.pool
	s.permits.ended(t)
	single, ran := t.batch == nil, t.ran()
	if t.entry.Suspect >= suspectAlone && p.aloneTask.CompareAndSwap(t, nil) {
		<-s.aloneTurn
	}
	ended <- t
	if single && p.taskEnded(ran) {
		s.capacity.notify()
	}
}

// concludeUnstarted concludes an entry that has a permit for its hooks and must not run: it has
// expired, or it is returned.
func (s *session) concludeUnstarted(t *task) *task {
	if s.pastStartBy(t.entry) {
		return s.conclude(t, store.Result{Outcome: stint.OutcomeExpired})
	}
	s.hooks.release(t.entry.Kind)
	return s.returnUnstarted(t)
}

// returnForHooks returns an entry that got no permit for its hooks, and keeps its slot and its room
// in the pool until there is a permit. Otherwise the engine would claim the same entry again,
// perhaps always before the others.
func (s *session) returnForHooks(t *task, ended chan<- *task) {
	p := t.pool
	p.busy.Add(1)
	s.sendOutcome(s.returnUnstarted(t), ended)
	s.awaitHookRoom()
	p.busy.Add(-1)
	s.capacity.notify()
}

// returnedUnstarted sends an entry back to the front of its lane, uncharged.
var returnedUnstarted = store.Result{Outcome: stint.OutcomeReturned, Part: store.PartFront}

// returnUnstarted returns an entry that was not started.
func (s *session) returnUnstarted(t *task) *task {
	return s.conclude(t, returnedUnstarted)
}
