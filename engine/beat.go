package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// doubtful is how long a request whose answer was lost is kept in mind: far
// longer than any server keeps the transaction of a client that is gone.
const doubtful = time.Minute

// beats says four times in each time to live that the engine lives. An engine
// counts from when its last successful beat was sent: at three quarters of the
// time to live it fences itself, since others may soon believe that it is
// dead. Not so where the store knows that it lives: there it goes on trying.
func (s *session) beats(ctx context.Context) {
	every := s.config.TimeToLive / 4
	// The joining was the first sign of life. Far from its database it took long,
	// and a full wait from here on would end when the engine fences itself.
	tick := time.NewTicker(max(time.Millisecond, every-time.Since(s.beat)))
	defer tick.Stop()
	last, hurried := s.beat, true
	defer s.vitals.beats.stop()
	for number := int64(1); ; number++ {
		var asked []chan<- bool
		s.vitals.beats.mark()
		select {
		case <-tick.C:
		case ask := <-s.asks:
			asked = append(asked, ask)
		case <-ctx.Done():
			return
		}
		asked = s.moreAsks(asked)
		sent, end := time.Now(), last.Add(3*every)
		if s.vouched() {
			end = sent.Add(3 * every)
		}
		// Not all of the time that is left: a connection that went silent
		// must leave some to try another one.
		err := s.sendBeat(ctx, number, sent.Add(end.Sub(sent)*2/3))
		for _, ask := range asked {
			ask <- err == nil
		}
		switch {
		case err == nil:
			if last = sent; hurried {
				hurried = false
				tick.Reset(every)
			}
			s.mayWorkUntil(last.Add(3 * every))
		case ctx.Err() != nil:
			return
		case errors.Is(err, stint.ErrBuried):
			s.fence()
			return
		default:
			s.trouble(ctx, "beat", err)
			left := time.Until(end)
			if left <= 0 && !s.vouched() {
				s.fence()
				return
			}
			// Connections that broke fail at once, one after the other.
			hurried = true
			tick.Reset(max(time.Millisecond, min(left, every/8)))
		}
	}
}

// mayWorkUntil moves the instant at which the engine would fence itself.
func (s *session) mayWorkUntil(t time.Time) { s.believed.Store(int64(t.Sub(s.beat))) }

// expired tells whether that instant has passed. The beat finds out for
// itself, but in a process that was frozen the slots may wake up first.
func (s *session) expired() bool {
	return time.Since(s.beat) >= time.Duration(s.believed.Load()) && !s.vouched()
}

// vouched tells whether the store knows without beats that this engine lives,
// so that nobody believes it dead.
func (s *session) vouched() bool {
	h, ok := s.store.(stint.Holder)
	return ok && h.Holds(s.token)
}

// letGo leaves it to the beats of a session that ended whether it lives.
func (s *session) letGo() {
	if h, ok := s.store.(stint.Holder); ok {
		h.Release(s.token)
	}
}

// announce has a beat sent at once, and reports whether it arrived: then what
// the slots hold now is known to everybody.
func (s *session) announce() bool {
	answer := make(chan bool, 1)
	select {
	case s.asks <- answer:
	case <-s.work.Done():
		return false
	}
	select {
	case ok := <-answer:
		return ok
	case <-s.work.Done():
		return false
	}
}

// moreAsks collects who else waits for a beat: one serves them all.
func (s *session) moreAsks(asked []chan<- bool) []chan<- bool {
	for {
		select {
		case ask := <-s.asks:
			asked = append(asked, ask)
		default:
			return asked
		}
	}
}

// sendBeat announces what runs, and then compares what the store says that
// this engine holds with what it knows: a claim whose answer was lost is
// handed back, every time, until nothing strange is left.
func (s *session) sendBeat(ctx context.Context, number int64, until time.Time) error {
	limit, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	low := s.held.low()
	beat := stint.Beat{Number: number, Running: s.held.begun(s.busy()), Low: low}
	sent := time.Now()
	orders, err := s.store.Beat(limit, s.token, beat)
	if err != nil {
		return err
	}
	s.clock.note(orders.Now, sent, time.Now())
	if orders.Drain {
		s.drain()
	}
	before := s.held.glance()
	claims, err := s.store.Held(limit, s.token, before.from)
	if err != nil {
		s.trouble(ctx, "compare what the engine holds", err)
		return nil // it did beat
	}
	for _, c := range claims {
		if !s.held.strange(c.Serial, before) {
			continue
		}
		n, err := s.giveBack(limit, c)
		if n > 0 {
			s.meters.got(n, n)
			s.emit(stint.Event{Type: stint.EventReturned, Engine: s.token, Count: n})
		}
		if err != nil {
			s.held.unknown(c.Serial)
			s.trouble(ctx, "hand back a claim", err)
			continue
		}
		s.held.settled(c.Serial)
	}
	s.held.agrees(before)
	s.held.forget(time.Now().Add(-doubtful))
	return nil
}

// handful is how much of a claim is handed back at once: its contents are read for
// that, and may be long, and the way to the store too.
const handful = 10

// giveBack returns what a claim took, which the engine never began, and tells how
// much. What it cannot finish now a later call goes on with.
func (s *session) giveBack(ctx context.Context, c stint.Claim) (n int, err error) {
	for at := range slices.Chunk(c.Positions, handful) {
		var some int
		if some, err = s.giveBackSome(ctx, c.ClaimRef, at); err != nil {
			break
		}
		n += some
	}
	return n, err
}

// giveBackSome returns entries that the engine never began, and tells how many. An
// outcome that one of them has by now stands: the engine knows nothing of a
// claim either that it was done with between the store's answer and now.
func (s *session) giveBackSome(ctx context.Context, claim stint.ClaimRef, at []stint.Position) (int, error) {
	entries, err := s.store.Fetch(ctx, at)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	done := make([]stint.Execution, len(entries))
	for i := range entries {
		done[i] = stint.Conclude(&entries[i], stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartFront}, s.clock.at(now), 0)
		done[i].Nonce, done[i].Ended = claim.Nonce, now
	}
	return s.store.Finish(ctx, s.token, []stint.ClaimRef{claim}, done)
}

// busy lists what is being worked on.
func (s *session) busy() []stint.Position {
	return append(s.slots.positions(), s.guests.positions()...)
}

// positions lists what the slots work on.
func (l slots) positions() []stint.Position {
	var list []stint.Position
	for i := range l {
		if pos := l[i].Load(); pos != 0 {
			list = append(list, stint.Position(pos))
		}
	}
	return list
}
