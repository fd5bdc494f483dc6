package engine

import (
	"time"

	"github.com/stint-go/stint"
)

const (
	// stale is how long a claimed entry may wait for a slot, or for its turn to be
	// run alone, before it is given to others.
	stale = time.Second

	// leaveFor is how long an engine leaves it to others to claim what it gave them.
	// Engines that nobody rings look as often.
	leaveFor = DefaultPollTo

	// mostPatience bounds for how long entries wait for their turns that come back
	// each time, since nobody else can run them either: each return costs two rows.
	mostPatience = 30 * time.Second
)

// steward sees to what was claimed for a pool and does not go to its slots at
// once. It hands back entries that this engine cannot run, and prefetched ones that
// found no slot in a while: others may have one. Of the entries that are to be run
// alone it passes one to the slots at a time, of all pools, and hands back those
// whose turn does not come.
type steward struct {
	s     *session
	p     *pool
	ended chan<- *task

	next     *task         // waits for its turn
	waited   time.Duration // for how long no turn came, as far as the ticks tell
	patience time.Duration // after how long it hands back what waits

	begun int64 // how many tasks had reached a slot at the last tick
	quiet int   // for how many ticks none did
}

func (s *session) steward(p *pool, ended chan<- *task) {
	w := &steward{s: s, p: p, ended: ended, patience: stale}
	tick := time.NewTicker(stale / 2)
	defer tick.Stop()
	for {
		come, turn := p.alone, s.solo
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
			w.redirect(t)
		case w.next = <-come:
			w.meet()
		case turn <- struct{}{}:
			w.pass()
		case <-tick.C:
			w.look()
		}
	}
}

// redirect hands back what this engine cannot run.
func (w *steward) redirect(t *task) {
	end := stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartKind}
	if w.s.mux.Handler(t.entry.Kind) != nil {
		end.Part = stint.PartFront // it is the queue that is not for this engine
	}
	w.s.pass(w.s.conclude(t, end), w.ended)
}

// meet gives the next one its turn at once, or has it wait: then the claim stage
// may go on.
func (w *steward) meet() {
	if w.next == nil {
		return // nothing comes any more
	}
	select {
	case w.s.solo <- struct{}{}:
		w.pass()
	default:
		w.p.apart.Store(true)
		w.s.capacity.ring()
	}
}

// pass gives the next one its turn, which ends with its outcome.
func (w *steward) pass() {
	w.p.turn.Store(w.next)
	w.p.apart.Store(false)
	w.p.ready <- w.next
	w.next, w.waited = nil, 0
	if len(w.p.alone) == 0 {
		w.patience = stale
	}
}

// look is called at every tick.
func (w *steward) look() {
	p := w.p
	if now := p.begun.Load(); now != w.begun || len(p.ready) == 0 {
		w.begun, w.quiet = now, 0
	} else if w.quiet++; w.quiet >= 2 {
		// Entries wait, and no slot has begun anything for two ticks.
		p.pace.slow()
		w.returnReady()
		w.returnAlone()
	}
	if w.next == nil {
		w.waited = 0
	} else if w.waited += stale / 2; w.waited >= w.patience {
		w.patience = min(2*w.patience, mostPatience)
		w.returnAlone()
	}
}

// returnReady hands back everything that waits for a slot now.
func (w *steward) returnReady() {
	n := 0
	defer func() { w.s.emit(stint.Event{Type: stint.EventReturned, Engine: w.s.token, Count: n}) }()
	for {
		select {
		case t, ok := <-w.p.ready:
			if !ok {
				return
			}
			w.s.pass(w.s.giveUp(t), w.ended)
			n++
		default:
			return
		}
	}
}

// returnAlone hands back everything that waits for its turn. This engine may have
// slots that are free, and would often be the first to claim it again: so it leaves
// the lanes alone for a moment.
func (w *steward) returnAlone() {
	list := w.waiting()
	if len(list) == 0 {
		return
	}
	l := &left{lanes: map[stint.LaneID]bool{}, until: time.Now().Add(leaveFor)}
	for _, t := range list {
		if next := w.s.giveUp(t).done.Next; next != nil {
			l.lanes[stint.LaneOf(next.Queue, next.Priority, next.Part, next.Kind).ID] = true
		}
	}
	w.p.left.Store(l)
	time.AfterFunc(leaveFor, func() { w.s.bell.ring(); w.s.capacity.ring() })
	for _, t := range list {
		w.s.pass(t, w.ended)
	}
	w.s.emit(stint.Event{Type: stint.EventReturned, Engine: w.s.token, Count: len(list)})
}

// waiting takes away all that waits for its turn now.
func (w *steward) waiting() (list []*task) {
	if w.next != nil {
		list, w.next, w.waited = append(list, w.next), nil, 0
	}
	for len(w.p.alone) > 0 { // nobody else takes any
		list = append(list, <-w.p.alone)
	}
	w.p.apart.Store(false)
	return list
}

// stop is called when nothing comes any more, since the engine stops: what the slots
// do not get to is not begun.
func (w *steward) stop() {
	for _, t := range w.waiting() {
		w.s.pass(w.s.giveUp(t), w.ended)
	}
	close(w.p.ready)
	for t := range w.p.ready {
		w.s.pass(w.s.giveUp(t), w.ended)
	}
}
