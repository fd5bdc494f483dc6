package engine

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

const (
	// staleAfter is how long a claimed entry may wait for a slot, or for its turn to run alone,
	// before it is returned.
	staleAfter = time.Second

	// avoidFor is how long an engine does not claim from lanes to which it returned entries.
	// Engines without notifications look as often.
	avoidFor = DefaultPollTo

	// maxPatience bounds how long entries wait for their turn that come back each time because no
	// other engine can run them either: each return costs two rows.
	maxPatience = 30 * time.Second
)

// returner handles what was claimed for a pool and does not go to its slots at once. It returns
// entries that this engine cannot run, and prefetched ones that found no slot in a while: other
// engines may have one. Of the suspects that run alone it passes one to the slots at a time, over
// all pools, and returns those whose turn does not come.
type returner struct {
	s     *session
	p     *pool
	ended chan<- *task

	next     *task         // waits for its turn
	waited   time.Duration // how long no turn came, in ticks' time
	patience time.Duration // after how long it returns what waits

	started   int64 // how many tasks had reached a slot at the last tick
	idleTicks int   // for how many ticks none did
}

func (s *session) runReturner(p *pool, ended chan<- *task) {
	w := &returner{s: s, p: p, ended: ended, patience: staleAfter}
	tick := time.NewTicker(staleAfter / 2)
	defer tick.Stop()
	var filled <-chan struct{} // while the pool has nothing, and there are no ticks
	for {
		come, turn := p.alone, s.aloneTurn
		if w.next != nil {
			come = nil
		} else {
			turn = nil
		}
		select {
		case t, ok := <-p.foreign:
			if !ok {
				w.stop()
				return
			}
			w.returnForeign(t)
		case w.next = <-come:
			w.tryTurn()
		case turn <- struct{}{}:
			w.startTurn()
		case <-filled:
			filled = nil
			tick.Reset(staleAfter / 2)
		case <-tick.C:
			if w.tick(); !p.holds() {
				filled = p.filled[0].c
				tick.Stop()
			}
		}
	}
}

// returnForeign returns what this engine cannot run.
func (w *returner) returnForeign(t *task) {
	end := store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind}
	if w.s.mux.Handler(t.entry.Kind) != nil {
		end.Part = store.PartFront // its queue is not for this engine
	}
	w.s.sendOutcome(w.s.conclude(t, end), w.ended)
}

// tryTurn starts the next one at once, or lets it wait: then the claim stage may go on.
func (w *returner) tryTurn() {
	if w.next == nil {
		return // closed
	}
	select {
	case w.s.aloneTurn <- struct{}{}:
		w.startTurn()
	default:
		w.p.aloneWaiting.Store(true)
		w.s.capacity.notify()
	}
}

// startTurn gives the next one its turn, which ends with its outcome.
func (w *returner) startTurn() {
	w.p.aloneTask.Store(w.next)
	w.p.aloneWaiting.Store(false)
	w.p.ready <- w.next
	w.next, w.waited = nil, 0
	if len(w.p.alone) == 0 {
		w.patience = staleAfter
	}
}

// tick is called every half staleAfter while the pool has anything.
func (w *returner) tick() {
	p := w.p
	if now := p.started.Load(); now != w.started || len(p.ready) == 0 {
		w.started, w.idleTicks = now, 0
	} else if w.idleTicks++; w.idleTicks >= 2 {
		// Entries wait, and no slot has begun anything for two ticks.
		p.pace.slow()
		w.returnReady()
		w.returnAlone()
	}
	for _, t := range w.s.permits.takeWaiting(p, staleAfter) {
		w.s.sendOutcome(w.s.returnUnstarted(t), w.ended)
	}
	if w.next == nil {
		w.waited = 0
	} else if w.waited += staleAfter / 2; w.waited >= w.patience {
		w.patience = min(2*w.patience, maxPatience)
		w.returnAlone()
	}
}

// returnReady returns everything that waits for a slot now.
func (w *returner) returnReady() {
	n := 0
	defer func() { w.s.emit(event.Event{Type: event.EventReturned, Engine: w.s.token, Count: n}) }()
	for {
		select {
		case t, ok := <-w.p.ready:
			if !ok {
				return
			}
			n += w.s.returnReady(t, w.ended)
		default:
			return
		}
	}
}

// returnAlone returns everything that waits for its turn. This engine may have free slots, and
// would often be the first to claim it again, so it avoids these lanes for a moment.
func (w *returner) returnAlone() {
	list := w.takeWaiting()
	if len(list) == 0 {
		return
	}
	l := &avoidedLanes{lanes: map[store.LaneID]bool{}, until: time.Now().Add(avoidFor)}
	for _, t := range list {
		if next := w.s.returnUnstarted(t).done.Next; next != nil {
			l.lanes[store.LimitedLane(next.Queue, next.Priority, next.Part, next.Kind, next.Limits).ID] = true
		}
	}
	w.p.avoided.Store(l)
	time.AfterFunc(avoidFor, func() {
		w.s.passedOver.Store(true)
		w.s.wakeups[work].notify()
		w.s.capacity.notify()
	})
	for _, t := range list {
		w.s.sendOutcome(t, w.ended)
	}
	w.s.emit(event.Event{Type: event.EventReturned, Engine: w.s.token, Count: len(list)})
}

// takeWaiting takes away all that waits for its turn now.
func (w *returner) takeWaiting() (list []*task) {
	if w.next != nil {
		list, w.next, w.waited = append(list, w.next), nil, 0
	}
	for len(w.p.alone) > 0 { // only this goroutine receives
		list = append(list, <-w.p.alone)
	}
	w.p.aloneWaiting.Store(false)
	return list
}

// stop is called when the engine stops: what the slots do not reach does not start.
func (w *returner) stop() {
	for _, t := range w.takeWaiting() {
		w.s.sendOutcome(w.s.returnUnstarted(t), w.ended)
	}
	for _, t := range w.s.permits.takeWaiting(w.p, 0) {
		w.s.sendOutcome(w.s.returnUnstarted(t), w.ended)
	}
	for _, t := range w.p.endGathering() {
		w.s.sendOutcome(w.s.returnUnstarted(t), w.ended)
	}
	close(w.p.ready)
	w.p.auto.end()
	for t := range w.p.ready {
		w.s.returnReady(t, w.ended)
	}
}
