package engine

import (
	"time"

	"github.com/stint-go/stint"
)

// stale is how long a prefetched entry may wait for a slot before it is given
// to others.
const stale = time.Second

// steward hands back entries of kinds that this engine does not know, and
// prefetched entries that found no slot in a while: others may have one.
func (s *session) steward(in inputs, ended chan<- outcome) {
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
			s.pass(s.conclude(outcome{task: t}, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartKind}, time.Time{}, 0), ended)
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
func (s *session) returnReady(ready <-chan task, ended chan<- outcome) {
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
