package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

const (
	// maxClaim bounds one claim, so that its transaction stays short.
	maxClaim = 2000

	// lookAge is how long what a look found is trusted while claims from it
	// succeed: the bound within which a lane of lower number is noticed.
	lookAge = 5 * time.Millisecond
)

// claim is the first stage. It takes work while there is room for it.
func (s *session) claim(ctx context.Context) {
	var (
		known  = newLanes(s.mux, s.config.Queues)
		trying = newBackoff()
		idle   = s.newIdle()
		list   []target
		looked time.Time
		turn   int
		recent target // the lane that last had work
		rang   bool   // woken from idleness by the bell
	)
	defer s.vitals.claims.stop()
	for ctx.Err() == nil {
		s.vitals.claims.mark()
		if !s.pools.roomy(time.Now()) {
			s.meters.noRoom()
			s.capacity.wait(ctx, time.Second)
			continue
		}
		room := 0
		if rang && known.first(recent) && !s.pauses.has(recent.Queue) {
			room = s.pools.room(recent.Lane, time.Now())
		}
		if room > 0 {
			// Most rings are for the lane that had work before: a claim that
			// finds it saves the look, half of the way to the start of a job.
			rang = false
			if _, err := s.claimLane(recent, room, false); err != nil && !errors.Is(err, stint.ErrLaneBusy) {
				s.trouble(ctx, "claim", err)
				trying.sleep(ctx)
			}
			continue
		}
		if len(list) == 0 || time.Since(looked) > lookAge {
			looked = time.Now()
			limit, cancel := s.limit(ctx)
			sights, err := s.store.Look(limit, known.forLook())
			cancel()
			if err != nil {
				s.trouble(ctx, "look for work", err)
				trying.sleep(ctx)
				continue
			}
			turn++
			list = known.targets(s.unpaused(sights), turn)
		}
		if len(list) == 0 {
			trying.reset()
			s.primed = false
			rang = idle.wait(ctx, nil) == s.bell
			continue
		}
		rest, tried, err := s.claimFrom(list)
		if err != nil {
			// Where only writing fails, as on a full disk, looks do not: they
			// must not have it tried again at once.
			s.trouble(ctx, "claim", err)
			trying.sleep(ctx)
		} else if tried {
			trying.reset()
		}
		if tried {
			idle.over(ctx)
			recent, rang, list = list[0], false, rest
			continue
		}
		// There is work for queues that are full, and none for the others.
		s.meters.noRoom()
		if len(s.pools.all) == 1 {
			s.capacity.wait(ctx, time.Second)
			continue
		}
		woken := idle.wait(ctx, s.capacity)
		if rang = woken == s.bell; woken != s.capacity {
			list = nil // what was seen may not be all any more
		}
	}
}

// claimFrom claims from the first lane that has room and lets it, and returns
// the lanes that may have more; tried says that there was one with room. Lanes
// that another engine is claiming are left for the end: it waits for one only
// when there is nothing else.
func (s *session) claimFrom(list []target) (rest []target, tried bool, err error) {
	var busy, full []target
	for i, lane := range list {
		room := s.pools.room(lane.Lane, time.Now())
		if room <= 0 {
			full = append(full, lane)
			continue
		}
		if tried = true; s.primed {
			waiting := s.pools.waiting()
			s.meters.prefetch.with(func(p *prefetching) { p.more(waiting) })
		}
		got, err := s.claimLane(lane, room, false)
		switch {
		case errors.Is(err, stint.ErrLaneBusy):
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

// claimLane makes one claim and sends on what it brought.
func (s *session) claimLane(lane target, room int, wait bool) (int, error) {
	c, claim, err := s.claimUpTo(lane, room, wait)
	if err != nil {
		return 0, err
	}
	tasks := make([]task, len(c.Entries))
	var p *pool
	var trade *trade
	for i := range tasks {
		e := &c.Entries[i]
		if last := &c.Entries[max(0, i-1)]; i == 0 || e.Kind != last.Kind || e.Queue != last.Queue {
			p, trade = s.pools.of(e.Queue), s.trades[e.Kind]
			if p == nil { // of a lane that did not tell its queue
				p, trade = s.pools.all[0], nil
			}
		}
		tasks[i] = task{entry: e, claim: claim, pool: p, trade: trade}
		p.take(&tasks[i])
	}
	s.meters.got(len(c.Entries), 0)
	waiting := s.pools.waiting()
	s.primed = s.primed || waiting > 0
	s.meters.prefetch.with(func(p *prefetching) { p.filled(waiting, len(c.Entries) == room) })
	return len(c.Positions), nil
}

// request makes one for a claim that is about to be sent.
func (s *session) request() stint.ClaimRequest {
	serial, low := s.held.request()
	return stint.ClaimRequest{Engine: s.token, Serial: serial, Low: low, Nonce: stint.Nonce(random63())}
}

// claimUpTo makes one claim, and reads what it brought.
func (s *session) claimUpTo(lane target, room int, wait bool) (stint.Claim, *held, error) {
	req := s.request()
	req.Lane, req.Max, req.Wait, req.Settle = lane.ID, room, wait, lane.settle
	// Not the stages' context: a stop must not cut a claim in the middle, for its
	// fate would be unknown. What it brings after a stop is returned unstarted.
	limit, cancel := context.WithTimeout(s.work, s.config.TimeToLive/2)
	defer cancel()
	began := time.Now()
	c, err := s.store.Claim(limit, req)
	if err == nil || len(c.Positions) > 0 {
		s.meters.asked(began, len(c.Positions))
	}
	switch {
	case errors.Is(err, stint.ErrLaneBusy):
		s.held.nothing(req.Serial)
		return c, nil, err
	case errors.Is(err, stint.ErrBuried):
		s.fence()
		return c, nil, err
	case err != nil && len(c.Positions) == 0:
		s.held.unknown(req.Serial)
		return c, nil, err
	}
	claim := s.held.took(c)
	if err != nil {
		// The entries are ours, but we have not seen them.
		c.Entries, err = s.fetch(c.Positions)
		if err != nil {
			s.held.unknown(req.Serial)
			return c, nil, err
		}
	}
	return c, claim, nil
}

// fetch reads claimed entries, trying again while the session lives.
func (s *session) fetch(at []stint.Position) ([]stint.Entry, error) {
	wait := newBackoff()
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

// limit bounds a call to the store that answers soon or not at all: an engine
// whose connection went silent under one would still beat, and so nobody would
// bury it, but it would not do this part of its work any more.
func (s *session) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.config.TimeToLive)
}

// trouble tells what failed, unless that was the stop.
func (s *session) trouble(ctx context.Context, doing string, err error) {
	s.tellTrouble(ctx, stint.Event{Doing: doing, Err: err})
}

// troubleAbout tells what failed with something that has a name.
func (s *session) troubleAbout(ctx context.Context, doing, name string, err error) {
	s.tellTrouble(ctx, stint.Event{Doing: doing + " " + name, About: name, Err: err})
}

func (s *session) tellTrouble(ctx context.Context, e stint.Event) {
	if ctx.Err() != nil || errors.Is(e.Err, stint.ErrBuried) {
		return
	}
	e.Type, e.Engine = stint.EventTrouble, s.token
	s.emit(e)
}
