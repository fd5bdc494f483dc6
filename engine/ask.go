package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/stint-go/stint/store"
)

const (
	// askPermits is how often an engine asks again for permits that it waits for, and refreshes what it
	// knows of gates where it has no notifications.
	askPermits = time.Second

	// tryPermits is how often it tries to get some for a lane that others take jobs of. If nobody does,
	// it asks, and others give up some of theirs.
	tryPermits = 250 * time.Millisecond

	// maxTakes bounds for how many sets of gates one call asks.
	maxTakes = 500
)

// take asks the store for permits of the first lanes that need some and have none. It is of the claim
// stage.
func (p *permits) take(ctx context.Context, list []target) error {
	p.mu.Lock()
	needy := p.limiter != nil && len(p.needyLocked(list)) > 0
	p.mu.Unlock()
	if !needy {
		return nil
	}
	return p.call(ctx, func() store.PermitRequest {
		return store.PermitRequest{Take: p.takingsLocked(p.needyLocked(list))}
	})
}

// needyLocked returns the sets of gates of lanes that are to be asked about now.
func (p *permits) needyLocked(list []target) (sets []*gateSet) {
	now := time.Now()
	for i := range list {
		t := &list[i]
		if t.Limits == "" {
			continue
		}
		set := p.ofLocked(t)
		set.look(t)
		if slices.Contains(sets, set) {
			set.again = set.again || t.comesAgain()
			continue
		}
		if now.Before(set.retry) && (set.again || !t.comesAgain() || !set.inOrder()) || set.free() > 0 || set.noSlots() || set.ahead() > len(set.waiting) && !set.grows() || p.s.pools.room(t.Lane, now) <= 0 {
			continue
		}
		set.again = t.comesAgain()
		if sets = append(sets, set); len(sets) == maxTakes {
			break
		}
	}
	return sets
}

// stuckLocked returns the sets of gates of tasks that were claimed and miss permits. Most are claimed
// only when there are some.
func (p *permits) stuckLocked(now time.Time) (sets []*gateSet) {
	for _, set := range p.sets {
		if set.stuck() && !now.Before(set.retry) && len(sets) < maxTakes {
			sets = append(sets, set)
		}
	}
	return sets
}

// takingsLocked returns what to ask for some sets, and notes when to ask again.
func (p *permits) takingsLocked(sets []*gateSet) (all []store.Taking) {
	now, promised := time.Now(), map[*gate]int{}
	for _, set := range sets {
		if set.want < maxClaim && now.Sub(set.retry) < tryPermits {
			set.want *= 2 // there was too little the last time, and there is still work
		}
		set.want = max(set.want, min(maxClaim, set.startsIn(2*p.took))) // the first of them are late when the answer comes
		set.retry = now.Add(tryPermits)
		all = append(all, set.taking(promised))
	}
	return all
}

// call asks the store for what request returns, which is called with the lock held, and notes the
// answer. While the outcome of a call is unknown the permits that it asked for do not count, and
// neither do those that it gave back; the next call settles it.
func (p *permits) call(ctx context.Context, request func() store.PermitRequest) error {
	p.calling <- struct{}{}
	defer func() { <-p.calling }()
	p.mu.Lock()
	p.calls++
	req := request()
	p.beforeLocked(&req)
	p.mu.Unlock()
	if len(req.Keep)+len(req.Take) == 0 {
		return nil
	}
	limit, cancel := p.s.limit(ctx)
	defer cancel()
	asked, moves := time.Now(), p.s.moves.Load()
	holds, err := p.limiter.Permits(limit, p.s.token, req)
	if err == nil && p.s.movedSince(moves) {
		err = store.ErrBuried
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = time.Since(asked)
	if err != nil {
		for _, name := range req.Gates() {
			p.doubtLocked(p.gates[name], true)
		}
		return err
	}
	for i := range holds {
		p.answeredLocked(&holds[i])
	}
	for _, k := range req.Keep {
		p.forgetLocked(p.gates[k.Gate])
	}
	return nil
}

// beforeLocked takes away what a request gives back, and adds the gates in doubt to it.
func (p *permits) beforeLocked(req *store.PermitRequest) {
	now := time.Now()
	kept := map[string]bool{}
	for _, k := range req.Keep {
		kept[k.Gate] = true
		if g := p.gates[k.Gate]; k.Permits < g.held {
			g.held, g.since = k.Permits, now
		}
	}
	if p.doubts == 0 {
		return
	}
	for _, g := range p.gates {
		if g.doubted && !kept[g.name] {
			req.Keep = append(req.Keep, store.Keeping{Gate: g.name, Permits: g.held, Doubted: true})
		}
	}
}

func (p *permits) doubtLocked(g *gate, doubted bool) {
	if g.doubted != doubted {
		if g.doubted = doubted; doubted {
			p.doubts++
		} else {
			p.doubts--
		}
	}
}

// answeredLocked notes what the store said of a gate.
func (p *permits) answeredLocked(h *store.Hold) {
	g, now := p.gates[h.Gate], time.Now()
	heard := g.heard == p.calls // of what the answer may not know yet
	g.seen, g.stale = now, h.Busy || heard
	if h.Busy && g.doubted {
		return
	}
	if !h.Busy {
		p.s.inflight.permitted(h.GateRef)
	}
	p.doubtLocked(g, false)
	p.blockedLocked(g, h)
	g.held, g.fair, g.left, g.rule = h.Permits, h.Fair, h.Left, h.Rule
	p.weighted = p.weighted || g.rule.Weight > 1
	if _, pending := p.pauses[h.Gate]; !pending {
		g.paused, g.trial = p.s.clock.local(h.Until), h.Trial
	}
	for _, start := range h.Starts {
		s := g.startsOf(max(1, h.Cost))
		s.at = append(s.at, p.s.clock.local(start))
	}
	if h.Asked > 0 && g.asked == 0 {
		g.since = now
	}
	if g.asked, g.over = h.Asked, h.Over; g.over > 0 {
		p.news.notify()
	}
	more, later := p.s.clock.local(h.Next), time.Duration(0) // when more can be had
	if h.Next != h.Until {
		more = more.Add(-min(store.StartLead, store.StartLead/2+p.took)) // then one question brings starts for half of the lead
	}
	g.more = more
	for _, set := range g.sets {
		switch {
		case h.Busy, heard, !set.heldUp() && set.free() > 0:
			set.retry = time.Time{}
		case !h.Next.IsZero() && more.After(now):
			set.retry, later = more, more.Sub(now)
		}
	}
	if later > 0 {
		time.AfterFunc(later, func() { p.news.notify(); p.s.capacity.notify() })
	}
	p.admitOthersLocked(g)
}

// hear notes news of a gate, or of all of a limit.
func (p *permits) hear(news store.News) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if news.Engine != 0 && news.Engine != p.s.token {
		return
	}
	if g := p.gates[news.Permits]; g != nil {
		p.lookAgainLocked(g)
	}
	if store.LimitOf(news.Permits) != news.Permits {
		return
	}
	for name, g := range p.gates {
		if store.LimitOf(name) == news.Permits {
			p.lookAgainLocked(g)
		}
	}
}

// lookAgainLocked has the session ask about a gate as soon as it may.
func (p *permits) lookAgainLocked(g *gate) {
	g.stale, g.heard = g.stale || g.held > 0, p.calls
	for _, set := range g.sets {
		set.retry = time.Time{}
	}
	p.news.notify()
	p.s.capacity.notify()
}

// maxRefreshed bounds of how many gates news of anything has the session ask in a second.
const maxRefreshed = 100

// mayHaveChanged has the session ask again for what it waits for, as when another engine was buried,
// and what counts for what it holds, as when another process has changed a rule in the same SQLite
// file: but not each time, since there is news of many things.
func (p *permits) mayHaveChanged() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if now.Sub(p.askedAgain) > askPermits/10 {
		p.askedAgain = now
		for _, set := range p.sets {
			set.retry = time.Time{}
		}
	}
	if now.Sub(p.refreshed) < askPermits {
		return
	}
	p.refreshed = now
	n := 0
	for _, g := range p.gates {
		if g.held > 0 && now.Sub(g.seen) > askPermits/2 {
			g.stale, g.heard = true, p.calls
			if n++; n == maxRefreshed {
				break
			}
		}
	}
	if n > 0 {
		p.news.notify()
	}
}

// declareLimits writes what the program declares of limits.
func (e *Engine) declareLimits(ctx context.Context) error {
	rules := e.mux.Limits()
	if len(rules) == 0 {
		return nil
	}
	l, ok := e.store.(store.Limiter)
	if !ok {
		return errors.New("engine: the store has no limits")
	}
	return l.DeclareLimits(ctx, rules)
}

// keepPermits gives back what others ask for and what is not used any more, and keeps up with what the
// store says.
func (s *session) keepPermits(ctx context.Context) {
	p := s.permits
	if p.limiter == nil {
		return
	}
	wait := new(backoff)
	for ctx.Err() == nil {
		p.news.wait(ctx, p.pause())
		err := p.tell(ctx)
		if err == nil {
			err = p.call(ctx, func() store.PermitRequest {
				now := time.Now()
				return store.PermitRequest{Keep: p.dueLocked(now), Take: p.takingsLocked(p.stuckLocked(now))}
			})
		}
		switch {
		case errors.Is(err, store.ErrBuried):
			s.fence()
			return
		case err != nil:
			s.trouble(ctx, "keep permits", err)
			wait.sleep(ctx)
		default:
			wait.reset()
		}
	}
}

// tidyEvery is how often what is known of unused gates is forgotten, and tidyMore of how many rows a call
// forgets so many that there may be more.
const (
	tidyEvery = 10 * time.Second
	tidyMore  = 500
)

// tidyPermits forgets what is known of gates that nobody uses, in turn with other engines.
func (s *session) tidyPermits(ctx context.Context) {
	limiter := s.permits.limiter
	for limiter != nil && sleep(ctx, spread(s.shared(tidyEvery))) {
		for more := true; more && ctx.Err() == nil; {
			limit, cancel := s.limit(ctx)
			n, err := limiter.TidyPermits(limit)
			if cancel(); err != nil {
				s.trouble(ctx, "forget unused permits", err)
			}
			more = n >= tidyMore
		}
	}
}

// pause returns how long nothing is due, if there is no news.
func (p *permits) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.gates) == 0 {
		return time.Hour // the first call notifies
	}
	for _, g := range p.gates {
		if g.asked > 0 || g.over > 0 || g.doubted || g.rule.InOrder && g.blocked && g.held > g.used {
			return yieldAfter / 10
		}
	}
	return askPermits
}

// maxKept bounds how many gates one call is about.
const maxKept = 500

// dueLocked returns what to tell the store.
func (p *permits) dueLocked(now time.Time) (due []store.Keeping) {
	for _, g := range p.gates {
		if len(due) == maxKept {
			break
		}
		keep := g.keep(now)
		if keep < g.held || g.stale || g.doubted || g.idle(now) || now.Sub(g.seen) > askPermits && g.refreshes(p.s.listening.Load()) {
			due = append(due, store.Keeping{Gate: g.name, Permits: keep, Doubted: g.doubted})
		}
	}
	return due
}

// forgetLocked drops a gate that was given back and is not used, with its sets.
func (p *permits) forgetLocked(g *gate) {
	if g.held > 0 || g.doubted || !g.idle(time.Now()) {
		return
	}
	for _, set := range g.sets {
		if slices.ContainsFunc(set.gates, func(g *gate) bool { return g.used+g.waiting+g.planned > 0 }) {
			return // a task may be of the set
		}
	}
	for _, set := range slices.Clone(g.sets) {
		for _, g := range set.gates {
			g.sets = slices.DeleteFunc(g.sets, func(other *gateSet) bool { return other == set })
		}
		delete(p.sets, set.text)
		set.dropped = true
	}
	delete(p.gates, g.name)
}
