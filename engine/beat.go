package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/coalesce"
	"github.com/stint-go/stint/store"
)

// unknownFor is how long a request whose answer was lost is remembered: far longer than any server
// keeps the transaction of a client that is gone.
const unknownFor = time.Minute

// beats sends four beats in each time to live, and sooner again when one failed. It leaves out every
// second one while the engine holds nothing and the store knows by other means that it lives: what begins
// is announced soon, if it lasts.
func (s *session) beats(ctx context.Context) {
	every := s.config.TimeToLive / 4
	// The join counts as a beat. If it took long, a full wait from here on would
	// end when the engine fences itself.
	tick := time.NewTicker(max(time.Millisecond, every-time.Since(s.beat)))
	defer tick.Stop()
	next := tick.Reset
	if s.config.Beside != nil {
		tick.Stop() // whoever has it beat says when
		next = func(time.Duration) {}
	}
	last, retrying, rested := s.beat, true, false
	defer s.liveness.beats.stop()
	for number := int64(1); ; number++ {
		var requests []chan<- bool
		s.liveness.beats.mark()
		select {
		case <-tick.C:
			if !retrying && !rested && s.inflight.empty() && s.vouched(last).After(last.Add(s.config.TimeToLive)) {
				rested = true
				continue
			}
		case answer := <-s.beatRequests:
			requests = append(requests, answer)
		case <-ctx.Done():
			return
		}
		rested = false
		if s.config.Beside != nil {
			if s.fenceDue() { // the requests may be from before the process stood still
				s.fence()
			}
			number = max(number, time.Now().UnixMilli()) // a Caretaker counts in this way too
		}
		if s.fenced() {
			return
		}
		requests = s.collectBeatRequests(requests)
		sent, end := time.Now(), last.Add(3*every)
		if s.vouched(last).After(end) {
			end = sent.Add(3 * every)
		}
		// Not all of the time that is left: after a connection that does not
		// answer there must be time to try another one.
		err := s.sendBeat(ctx, number, sent.Add(end.Sub(sent)*2/3))
		for _, answer := range requests {
			answer <- err == nil
		}
		switch {
		case err == nil:
			if last = sent; retrying {
				retrying = false
				next(every)
			}
			s.setFenceAt(last.Add(3 * every))
		case ctx.Err() != nil:
			return
		case errors.Is(err, store.ErrBuried):
			s.fence()
			return
		default:
			s.trouble(ctx, "beat", err)
			// Broken connections fail at once, one after the other.
			retrying = true
			next(max(time.Millisecond, min(time.Until(end), every/8)))
		}
	}
}

// watchFence has the engine fence itself at three quarters of its time to live after it sent its
// last successful beat, since others may soon believe that it is dead. Where the store vouches for
// it without beats, that is put off.
func (s *session) watchFence(ctx context.Context) {
	for ctx.Err() == nil {
		if s.looksLate() {
			s.wokeAt.Store(int64(time.Since(s.beat)))
		}
		if s.fenceDue() {
			s.fence()
			return
		}
		wait := coalesce.Wait(s.untilFence())
		if wait <= 0 { // what the store says may change at any time once beats are missing
			wait = s.config.TimeToLive / 32
		}
		s.nextLook.Store(int64(time.Since(s.beat) + wait))
		sleep(ctx, wait)
	}
}

// looksLate reports whether watchFence should have looked long ago.
func (s *session) looksLate() bool {
	return time.Since(s.beat)-time.Duration(s.nextLook.Load()) > s.config.TimeToLive/4
}

// stoodStill reports whether the process may have stood still for so long since its last beat that the
// engine was buried. What the store vouches for may be from before that: so nothing starts until a beat
// has arrived.
func (s *session) stoodStill() bool {
	return s.untilFence() <= 0 && (s.looksLate() || s.lastBeat().Before(s.beat.Add(time.Duration(s.wokeAt.Load()))))
}

// setFenceAt moves the time at which the engine would fence itself.
func (s *session) setFenceAt(t time.Time) { s.fenceAt.Store(int64(t.Sub(s.beat))) }

func (s *session) untilFence() time.Duration {
	return time.Duration(s.fenceAt.Load()) - time.Since(s.beat)
}

// fenceDue reports whether that time has passed. In a process that was frozen slots may wake up
// before the loop that watches it.
func (s *session) fenceDue() bool {
	return s.untilFence() <= 0 && !time.Now().Before(s.vouched(s.lastBeat()))
}

// vouched returns until when the store vouches for the engine, whose last successful beat was sent
// at the given time.
func (s *session) vouched(last time.Time) time.Time {
	l, ok := s.store.(store.LivenessLocker)
	if !ok {
		return time.Time{}
	}
	return l.Vouches(s.token, last)
}

// releaseLiveness ends that for a session that ended: from then on its beats decide.
func (s *session) releaseLiveness() {
	if h, ok := s.store.(store.LivenessLocker); ok {
		h.Release(s.token)
	}
}

// announce sends a beat at once, and reports whether it arrived: then the store knows what the
// slots hold now.
func (s *session) announce() bool { return s.present() && s.announceWithin(s.work) }

// announceWithin is announce for somebody who waits no longer than ctx lasts.
func (s *session) announceWithin(ctx context.Context) bool {
	answer := make(chan bool, 1)
	select {
	case s.beatRequests <- answer:
	case <-s.work.Done():
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case ok := <-answer:
		return ok
	case <-s.work.Done():
		return false
	case <-ctx.Done():
		return false
	}
}

// collectBeatRequests adds all other requests for a beat: one beat answers them all.
func (s *session) collectBeatRequests(requests []chan<- bool) []chan<- bool {
	for {
		select {
		case answer := <-s.beatRequests:
			requests = append(requests, answer)
		default:
			return requests
		}
	}
}

// sendBeat announces what runs, and then compares what the store says that this engine holds with
// what it knows. A claim whose answer was lost is returned.
func (s *session) sendBeat(ctx context.Context, number int64, until time.Time) error {
	limit, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	low := s.inflight.low()
	beat := store.Heartbeat{Number: number, Running: s.inflight.running(s.announcements()), Started: s.started(), Low: low, Slots: s.slotsNow()}
	logs := s.logs.gather(s)
	beat.Logs = logs.records
	sent := time.Now()
	proof := s.inflight.acknowledged()
	reply, err := s.store.Heartbeat(limit, s.token, beat)
	s.logs.sent(logs, err)
	if errors.Is(err, store.ErrMoved) {
		return s.move(limit, err)
	}
	if err != nil {
		return err
	}
	s.inflight.beaten(number, proof)
	s.announced()
	s.clock.note(reply.Now, sent, time.Now())
	if reply.Drain {
		s.drain()
		s.Drain(nil) // the process remembers it, also when the session is buried
	}
	before := s.inflight.snapshot()
	if before.from > before.last { // no claim that was not compared
		return nil
	}
	claims, err := s.store.Held(limit, s.token, before.from, before.known...)
	if err != nil {
		s.trouble(ctx, "compare what the engine holds", err)
		return nil // it did beat
	}
	for _, c := range claims {
		if c.Serial > before.last {
			continue // requested since
		}
		n, err := s.returnClaim(limit, c)
		if n > 0 {
			s.meters.gotEntries(n, n)
			s.emit(event.Event{Type: event.EventReturned, Engine: s.token, Count: n})
		}
		if err != nil {
			s.inflight.markUnknown(c.Serial)
			s.trouble(ctx, "hand back a claim", err)
			continue
		}
		s.inflight.resolved(c.Serial)
		s.permits.sure(c.Serial)
	}
	s.inflight.compared(before)
	for _, serial := range s.inflight.expireUnknown(time.Now().Add(-unknownFor)) {
		s.permits.sure(serial)
	}
	return nil
}

// move has the engine go on at the server that took the place of the one that it worked at, if that
// has everything that was acknowledged.
func (s *session) move(ctx context.Context, moved error) error {
	m, ok := s.store.(store.ServerMover)
	if !ok {
		return moved
	}
	s.moves.Add(1) // before it is asked what was acknowledged: see movedSince
	return m.Move(ctx, s.token, s.inflight.acknowledged())
}

// movedSince reports whether the engine went on at another server since it had moved so many times,
// and fences it then: what was acknowledged meanwhile may be of the server before, and nobody
// has looked whether the new one has it.
func (s *session) movedSince(moves int64) bool {
	if s.moves.Load() == moves {
		return false
	}
	s.fence()
	return true
}

// returnBatch is how many entries of a claim are returned at once: their contents have to be read
// for that, and may be long.
const returnBatch = 10

// returnClaim returns the entries of a claim that the engine never started, and says how many. A
// later call goes on where this one failed.
func (s *session) returnClaim(ctx context.Context, c store.Claim) (n int, err error) {
	for at := range slices.Chunk(c.Positions, returnBatch) {
		var some int
		if some, err = s.returnEntries(ctx, c.ClaimRef, at); err != nil {
			break
		}
		n += some
	}
	return n, err
}

// returnEntries returns entries that the engine never started, and says how many. An outcome that
// one of them has by now stands: the claim may have been finished between the store's answer and
// now.
func (s *session) returnEntries(ctx context.Context, claim store.ClaimRef, at []store.Position) (int, error) {
	entries, err := s.store.Fetch(ctx, at)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	done := make([]store.Completion, len(entries))
	for i := range entries {
		done[i] = store.Conclude(&entries[i], returnedUnstarted, s.clock.at(now), 0)
		done[i].Nonce, done[i].Ended = claim.Nonce, now
	}
	return s.store.Finish(ctx, s.token, []store.ClaimRef{claim}, done)
}
