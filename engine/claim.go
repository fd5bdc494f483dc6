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

	// maxLanes bounds how many lanes one call claims from. A store may take fewer.
	maxLanes = 500

	// absentFor is how long an engine waits for those that it works for, if nobody calls LookAgain.
	absentFor = time.Second
)

// claim is the first stage. It takes work while there is room.
func (s *session) claim(ctx context.Context) {
	var (
		view     = s.newView()
		trying   = new(backoff)
		idle     = s.newIdle()
		recent   target // the lane that last had work
		notified bool   // woken from idleness by a notification
	)
	defer s.liveness.claims.stop()
	if s.config.ClaimsNothing {
		<-ctx.Done()
		return
	}
	for ctx.Err() == nil {
		s.liveness.claims.mark()
		if s.lookAgain.Swap(false) {
			notified, recent = false, target{}
			view.expire()
		}
		if !s.present() {
			view.expire()
			s.capacity.wait(ctx, absentFor)
			continue
		}
		if !s.pools.hasRoom(time.Now()) {
			s.meters.noRoom()
			s.capacity.wait(ctx, time.Second)
			continue
		}
		room := 0
		if notified && !s.guests.any() && !view.many() && view.isFirst(recent) && !s.pauses.has(recent.Queue) {
			room = s.pools.room(recent.Lane, time.Now())
		}
		if recent, ok := s.permits.bound(recent, room); ok {
			// Most notifications are for the lane that had work before: a claim
			// from it saves the look, half of the time to the start of a job.
			notified = false
			_, err := s.claimLanes([]target{recent}, room, false)
			if s.permits.planned([]target{recent}); err != nil {
				s.trouble(ctx, "claim", err)
				trying.sleep(ctx)
			}
			continue
		}
		view.reorder()
		if view.stale() {
			if err := view.look(ctx); err != nil {
				s.trouble(ctx, "look for work", err)
				trying.sleep(ctx)
				continue
			}
		}
		if len(view.list) == 0 {
			trying.reset()
			s.primed = false
			s.drawn.Store(false) // in vain
			notified = idle.wait(ctx, nil) == s.wakeups[work]
			continue
		}
		first := view.list[0]
		err := s.permits.take(ctx, view.list)
		var rest []target
		tried := err != nil
		if err == nil {
			rest, tried, err = s.claimFrom(view.list)
		}
		if err != nil {
			// Where only writes fail, as on a full disk, looks succeed: they must
			// not reset the backoff.
			view.lose()
			s.trouble(ctx, "claim", err)
			trying.sleep(ctx)
		} else if tried {
			trying.reset()
			view.list = rest
		}
		if tried {
			idle.ended(ctx)
			recent, notified = first, false
			continue
		}
		if view.behind {
			view.lose() // there may be work that no look has shown, for queues that are not full
			continue
		}
		// There is work only for queues that are full, and under limits that are.
		s.meters.noRoom()
		open, _ := s.permits.sift(view.list)
		if s.permits.planned(open); len(open) > 0 || s.permits.mayPassOn() {
			s.passOn()
		}
		if len(s.pools.all) == 1 && !s.pools.hasRoom(time.Now()) {
			s.capacity.wait(ctx, time.Second)
			continue
		}
		woken := idle.wait(ctx, s.capacity)
		if notified = woken == s.wakeups[work]; woken != s.capacity {
			view.expire() // there may be more lanes now
		}
	}
}

// claimFrom claims from the first lanes that have work and room, in one call from those of one pool,
// and returns the lanes that may have more. tried reports whether any had room. Lanes that another
// engine is claiming from come last: claimFrom waits for one only when there is nothing else. Lanes
// without permits count as full.
func (s *session) claimFrom(list []target) (rest []target, tried bool, err error) {
	var busy []target
	most := 0 // the room for the first of these
	list, full := s.permits.sift(list)
	defer s.permits.planned(list)
	for i := 0; i < len(list); {
		now := time.Now()
		room := s.pools.room(list[i].Lane, now)
		if room <= 0 {
			full = append(full, list[i])
			i++
			continue
		}
		if tried = true; s.primed {
			s.meters.beforeClaim(s.pools.waiting())
		}
		lanes := list[i : i+s.pools.together(list[i:min(i+maxLanes, len(list))], now)]
		got, err := s.claimLanes(lanes, room, false)
		if err != nil {
			return nil, true, err
		}
		if len(busy) == 0 {
			most = room
		}
		busy, full = append(busy, got.busy...), append(full, got.more...)
		i += got.lanes
		switch {
		case got.entries == room && (len(got.more) == 0 || got.more[len(got.more)-1].ID != list[i-1].ID):
			// The last one may have more.
			return before(list[i-1:], full, busy), true, nil
		case got.entries > 0:
			// These lanes are empty; the next ones may have work.
			return before(list[i:], full, busy), true, nil
		}
	}
	if len(busy) == 0 {
		return full, tried, nil
	}
	got, err := s.claimLanes(busy[:1], most, true)
	switch {
	case err == nil && len(got.busy) > 0:
		err = store.ErrLaneBusy // although it was to wait: do not ask again at once
	case got.entries == most || len(got.more) > 0:
		return append(full, busy...), true, err // it may have more
	}
	return append(full, busy[1:]...), true, err
}

// before puts lanes in front of others, of which there may be many. But with limits, lanes that had
// their turn come after those of the same rank that had none.
func before(rest, full, busy []target) []target {
	switch {
	case len(full)+len(busy) == 0:
		return rest
	case full == nil || full[0].Limits == "":
		return slices.Concat(full, busy, rest)
	}
	all := slices.Concat(rest, busy, full)
	if !slices.IsSortedFunc(all, inOrder) {
		slices.SortStableFunc(all, inOrder)
	}
	return all
}

// took is what a call took.
type took struct {
	lanes   int      // how many it came to
	busy    []target // of these, those that another engine is claiming from
	more    []target // and those of which it took all that there were permits for
	entries int
}

// claimLanes claims from lanes of one pool and sends the tasks on.
func (s *session) claimLanes(lanes []target, room int, wait bool) (took, error) {
	began := time.Now()
	all, states, err := s.claimUpTo(lanes, room, wait)
	if err != nil {
		return took{}, err
	}
	got, entries := took{lanes: len(all)}, 0
	for i, c := range all {
		if c.Busy {
			got.busy = append(got.busy, lanes[i])
		}
		got.entries += len(c.Positions)
		if most := lanes[i].most; most > 0 && !c.Busy {
			all := len(c.Positions) == min(most, room)
			if s.permits.claimed(lanes[i].Lane, len(c.Positions), all); all {
				got.more = append(got.more, lanes[i])
			}
		}
		entries += len(c.Entries)
		s.addTasks(c, states[i], lanes[i].Limits)
	}
	for _, p := range s.pools.all {
		p.beginBatches()
	}
	if p := s.pools.of(lanes[0].Queue); p != nil {
		p.pace.claimed(time.Since(began), got.entries == room)
	}
	waiting := s.pools.waiting()
	s.primed = s.primed || waiting > 0
	s.meters.afterClaim(entries, waiting, entries == room)
	if got.entries == room {
		s.passOn()
	} else {
		s.drawn.Store(false)
	}
	return got, nil
}

// addTasks sends the entries of a claim where they belong, under limits with that of their queue.
func (s *session) addTasks(c store.Claim, claim *claimState, limits string) {
	tasks := make([]task, len(c.Entries))
	var p *pool
	var runner *kindRunner
	for i := range tasks {
		e := &c.Entries[i]
		if last := &c.Entries[max(0, i-1)]; i == 0 || e.Kind != last.Kind || e.Queue != last.Queue {
			p, runner = s.pools.of(e.Queue), s.runner(e.Kind)
			if p == nil { // of a lane whose queue is unknown
				p, runner = s.pools.all[0], nil
			}
		}
		tasks[i] = task{entry: e, claim: claim, pool: p, runner: runner}
		if limits != "" && runner != nil && !e.Cancelled {
			s.permits.wait(&tasks[i], limits)
			continue
		}
		if limits != "" {
			s.permits.pass(&tasks[i], limits)
		}
		p.place(&tasks[i])
	}
}

// request numbers claims. The first has the request's serial number.
func (s *session) request(claims int) store.ClaimRequest {
	serial, low := s.inflight.request(claims)
	return store.ClaimRequest{Engine: s.token, Serial: serial, Low: low, Nonce: store.Nonce(random63())}
}

// claimUpTo claims from lanes, and reads the entries. It returns one claim for each lane that the
// store came to.
func (s *session) claimUpTo(lanes []target, room int, wait bool) ([]store.Claim, []*claimState, error) {
	req := s.request(len(lanes))
	req.Max, req.Wait = room, wait
	// Not the stages' context: a stop must not interrupt a claim, whose outcome
	// would be unknown. What it takes after a stop is returned unstarted.
	limit, cancel := context.WithTimeout(s.work, s.config.TimeToLive/2)
	defer cancel()
	began, moves := time.Now(), s.moves.Load()
	all, err := s.callClaim(limit, req, lanes)
	var at []store.Position
	for _, c := range all {
		at = append(at, c.Positions...)
	}
	if len(at) > 0 && s.movedSince(moves) {
		all, at, err = nil, nil, store.ErrBuried
	}
	if err == nil || len(at) > 0 {
		s.meters.claimAnswered(began, len(at))
	}
	switch {
	case errors.Is(err, store.ErrBuried):
		s.fence()
		return nil, nil, err
	case err != nil && len(at) == 0:
		for i := range lanes {
			s.inflight.markUnknown(req.Serial + int64(i))
			s.permits.unsure(req.Serial+int64(i), lanes[i].Lane)
		}
		return nil, nil, err
	}
	states := make([]*claimState, len(all))
	for i := range lanes {
		if i < len(all) {
			states[i] = s.inflight.claimed(all[i])
		} else {
			s.inflight.resolved(req.Serial + int64(i))
		}
	}
	if err != nil {
		// The entries are ours, but we have not seen them.
		entries, err := s.fetch(at)
		if err != nil {
			for i, c := range all {
				if len(c.Positions) > 0 {
					s.inflight.markUnknown(c.Serial)
					s.permits.unsure(c.Serial, lanes[i].Lane)
				}
			}
			return nil, nil, err
		}
		store.DealEntries(all, entries)
	}
	return all, states, nil
}

// callClaim asks the store. One lane is claimed by itself, since only then the store may wait for it.
func (s *session) callClaim(ctx context.Context, req store.ClaimRequest, lanes []target) ([]store.Claim, error) {
	if len(lanes) > 1 {
		heads := make([]store.LaneHead, len(lanes))
		for i, lane := range lanes {
			heads[i] = store.LaneHead{Lane: lane.ID, Settle: lane.settle, Most: lane.most}
		}
		return s.store.ClaimLanes(ctx, req, heads)
	}
	if lanes[0].most > 0 {
		req.Max = min(req.Max, lanes[0].most)
	}
	req.Lane, req.Settle = lanes[0].ID, lanes[0].settle
	c, err := s.store.Claim(ctx, req)
	if errors.Is(err, store.ErrLaneBusy) {
		c, err = store.Claim{ClaimRef: c.ClaimRef, Serial: req.Serial, Busy: true}, nil
	}
	return []store.Claim{c}, err
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
