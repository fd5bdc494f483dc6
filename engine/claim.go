package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

const (
	// maxClaim bounds one claim, so that its transaction stays short.
	maxClaim = 2000

	// lookAge is how long a look is trusted while claims from it succeed. Within this time a new
	// lane of lower number may go unnoticed.
	lookAge = 5 * time.Millisecond
)

// claim is the first stage. It takes work while there is room.
func (s *session) claim(ctx context.Context) {
	var (
		known    = newLanes(s.mux, s.config.Queues)
		trying   = new(backoff)
		idle     = s.newIdle()
		list     []target
		looked   time.Time
		turn     int
		recent   target // the lane that last had work
		notified bool   // woken from idleness by a notification
	)
	defer s.liveness.claims.stop()
	for ctx.Err() == nil {
		s.liveness.claims.mark()
		if !s.pools.hasRoom(time.Now()) {
			s.meters.noRoom()
			s.capacity.wait(ctx, time.Second)
			continue
		}
		room := 0
		if notified && known.isFirst(recent) && !s.pauses.has(recent.Queue) {
			room = s.pools.room(recent.Lane, time.Now())
		}
		if room > 0 {
			// Most notifications are for the lane that had work before: a claim
			// from it saves the look, half of the time to the start of a job.
			notified = false
			if _, err := s.claimLane(recent, room, false); err != nil && !errors.Is(err, store.ErrLaneBusy) {
				s.trouble(ctx, "claim", err)
				trying.sleep(ctx)
			}
			continue
		}
		if len(list) == 0 || time.Since(looked) > lookAge {
			looked = time.Now()
			limit, cancel := s.limit(ctx)
			heads, err := s.store.Look(limit, known.hints())
			cancel()
			if err != nil {
				s.trouble(ctx, "look for work", err)
				trying.sleep(ctx)
				continue
			}
			turn++
			list = known.targets(s.claimable(heads), turn)
		}
		if len(list) == 0 {
			trying.reset()
			s.primed = false
			notified = idle.wait(ctx, nil) == s.wakeups[work]
			continue
		}
		rest, tried, err := s.claimFrom(list)
		if err != nil {
			// Where only writes fail, as on a full disk, looks succeed: they must
			// not reset the backoff.
			s.trouble(ctx, "claim", err)
			trying.sleep(ctx)
		} else if tried {
			trying.reset()
		}
		if tried {
			idle.ended(ctx)
			recent, notified, list = list[0], false, rest
			continue
		}
		// There is work only for queues that are full.
		s.meters.noRoom()
		if len(s.pools.all) == 1 {
			s.capacity.wait(ctx, time.Second)
			continue
		}
		woken := idle.wait(ctx, s.capacity)
		if notified = woken == s.wakeups[work]; woken != s.capacity {
			list = nil // there may be more lanes now
		}
	}
}

// claimFrom claims from the first lane that has work and room, and returns the lanes that may have
// more. tried reports whether any had room. Lanes that another engine is claiming from come last:
// claimFrom waits for one only when there is nothing else.
func (s *session) claimFrom(list []target) (rest []target, tried bool, err error) {
	var busy, full []target
	for i, lane := range list {
		room := s.pools.room(lane.Lane, time.Now())
		if room <= 0 {
			full = append(full, lane)
			continue
		}
		if tried = true; s.primed {
			s.meters.beforeClaim(s.pools.waiting())
		}
		got, err := s.claimLane(lane, room, false)
		switch {
		case errors.Is(err, store.ErrLaneBusy):
			busy = append(busy, lane)
		case err != nil:
			return nil, true, err
		case got == room:
			return slices.Concat(full, busy, list[i:]), true, nil
		case got > 0:
			// The lane is empty; the next ones may have work.
			return slices.Concat(full, busy, list[i+1:]), true, nil
		}
	}
	if len(busy) == 0 {
		return full, tried, nil
	}
	_, err = s.claimLane(busy[0], s.pools.room(busy[0].Lane, time.Now()), true)
	return append(full, busy[1:]...), true, err
}

// claimLane makes one claim and sends its tasks on. It returns how many entries it took.
func (s *session) claimLane(lane target, room int, wait bool) (int, error) {
	c, claim, err := s.claimUpTo(lane, room, wait)
	if err != nil {
		return 0, err
	}
	tasks := make([]task, len(c.Entries))
	var p *pool
	var runner *kindRunner
	for i := range tasks {
		e := &c.Entries[i]
		if last := &c.Entries[max(0, i-1)]; i == 0 || e.Kind != last.Kind || e.Queue != last.Queue {
			p, runner = s.pools.of(e.Queue), s.runners[e.Kind]
			if p == nil { // of a lane whose queue is unknown
				p, runner = s.pools.all[0], nil
			}
		}
		tasks[i] = task{entry: e, claim: claim, pool: p, runner: runner}
		p.add(&tasks[i])
	}
	waiting := s.pools.waiting()
	s.primed = s.primed || waiting > 0
	s.meters.afterClaim(len(c.Entries), waiting, len(c.Entries) == room)
	return len(c.Positions), nil
}

func (s *session) request() store.ClaimRequest {
	serial, low := s.inflight.request()
	return store.ClaimRequest{Engine: s.token, Serial: serial, Low: low, Nonce: store.Nonce(random63())}
}

// claimUpTo makes one claim, and reads its entries.
func (s *session) claimUpTo(lane target, room int, wait bool) (store.Claim, *claimState, error) {
	req := s.request()
	req.Lane, req.Max, req.Wait, req.Settle = lane.ID, room, wait, lane.settle
	// Not the stages' context: a stop must not interrupt a claim, whose outcome
	// would be unknown. What it takes after a stop is returned unstarted.
	limit, cancel := context.WithTimeout(s.work, s.config.TimeToLive/2)
	defer cancel()
	began, moves := time.Now(), s.moves.Load()
	c, err := s.store.Claim(limit, req)
	if len(c.Positions) > 0 && s.movedSince(moves) {
		c, err = store.Claim{}, store.ErrBuried
	}
	if err == nil || len(c.Positions) > 0 {
		s.meters.claimAnswered(began, len(c.Positions))
	}
	switch {
	case errors.Is(err, store.ErrLaneBusy):
		s.inflight.resolved(req.Serial)
		return c, nil, err
	case errors.Is(err, store.ErrBuried):
		s.fence()
		return c, nil, err
	case err != nil && len(c.Positions) == 0:
		s.inflight.markUnknown(req.Serial)
		return c, nil, err
	}
	claim := s.inflight.claimed(c)
	if err != nil {
		// The entries are ours, but we have not seen them.
		c.Entries, err = s.fetch(c.Positions)
		if err != nil {
			s.inflight.markUnknown(req.Serial)
			return c, nil, err
		}
	}
	return c, claim, nil
}

// fetch reads claimed entries, and tries again while the session lives.
func (s *session) fetch(at []store.Position) ([]store.Entry, error) {
	wait := new(backoff)
	for tries := 0; ; tries++ {
		entries, err := s.store.Fetch(s.work, at)
		if err == nil && len(entries) < len(at) {
			err = errors.New("claimed entries are not there")
		}
		if err == nil || tries >= 5 || !wait.sleep(s.work) {
			return entries, err
		}
	}
}

// limit bounds a call to the store. Without it a connection that stops answering would block one
// loop for ever, while the engine still beats, so that no other engine would bury it.
func (s *session) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.config.TimeToLive)
}

// trouble reports an error, unless it comes from the stop.
func (s *session) trouble(ctx context.Context, doing string, err error) {
	s.tellTrouble(ctx, event.Event{Doing: doing, Err: err})
}

// troubleAbout reports an error with something that has a name.
func (s *session) troubleAbout(ctx context.Context, doing, name string, err error) {
	s.tellTrouble(ctx, event.Event{Doing: doing + " " + name, About: name, Err: err})
}

func (s *session) tellTrouble(ctx context.Context, e event.Event) {
	if ctx.Err() != nil || errors.Is(e.Err, store.ErrBuried) {
		return
	}
	e.Type, e.Engine = event.EventTrouble, s.token
	s.emit(e)
}
