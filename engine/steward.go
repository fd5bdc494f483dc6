package engine

import (
	"time"

	"github.com/stint-go/stint"
)

// stale is how long a prefetched entry may wait for a slot before it is given
// to others.
const stale = time.Second

// steward hands back entries of a pool that this engine cannot run, and
// prefetched ones that found no slot in a while: others may have one.
func (s *session) steward(p *pool, ended chan<- *task) {
	in := p.inputs
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
			end := stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartKind}
			if s.mux.Handler(t.entry.Kind) != nil {
				end.Part = stint.PartFront // it is the queue that is not for this engine
			}
			s.pass(s.conclude(t, end), ended)
		case <-tick.C:
			if now := p.begun.Load(); now != seen || len(in.ready) == 0 {
				seen, quiet = now, 0
				continue
			}
			// Entries wait, and no slot has begun anything for two ticks.
			if quiet++; quiet >= 2 {
				p.pace.slow()
				s.returnReady(in.ready, ended)
			}
		}
	}
}

// returnReady hands back everything that waits for a slot now.
func (s *session) returnReady(ready <-chan *task, ended chan<- *task) {
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
