package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const (
	// maxAhead is how many tasks may wait for each permit, and prefetchTime how long they should take:
	// then nothing is lost between two jobs, and an engine that gives up a permit is soon done.
	aheadOfPermit = 32

	// yieldAfter is for how long an engine goes on to use all of its permits when others wait for some.
	yieldAfter = 250 * time.Millisecond

	// idlePermits is for how long an engine keeps permits that it does not use and nobody asks for.
	idlePermits = 10 * time.Second

	// askPermits is how often an engine asks again for permits that it waits for, and refreshes what it
	// knows of gates where it has no notifications.
	askPermits = time.Second

	// lateStart is how late a start may be. One that is later is bought again.
	lateStart = 20 * time.Millisecond

	// maxTakes bounds for how many sets of gates one call asks.
	maxTakes = 500
)

// permits are what the session holds of gates (see [store.Limiter]), and the tasks that wait for them.
// Permits count what runs: a task that was claimed takes one of each of its gates before it goes to its
// pool, and gives them back when it has ended. So permits go from one task to the next in this process,
// and the store is asked only when there are too few, or others ask.
type permits struct {
	s       *session
	limiter store.Limiter // nil if the store has none

	// calling holds a value while a call to the store is under way: there is one at a time, so the last
	// answer is what the store has.
	calling chan struct{}
	news    *wakeup // of keepPermits

	mu     sync.Mutex // guards the rest
	gates  map[string]*gate
	sets   map[string]*gateSet // by their text
	doubts int                 // gates of which the outcome of the last call is unknown
	closed bool                // no more tasks go to their pools
}

// gate is what the session knows of one gate.
type gate struct {
	name    string
	sets    []*gateSet // all that it belongs to
	waiters []*gateSet // those with tasks that wait, the next one first
	held    int        // permits that the session may use
	used    int        // by tasks that have not ended
	waiting int        // tasks that wait for a permit of it, or of another gate
	fair    int
	rule    stint.LimitRule
	starts  []time.Time // those that were bought under the rule's rate, by this process's clock

	over     int       // how many more are held than the rule allows
	asked    int       // permits that others wait for
	since    time.Time // when that was first seen
	planned  int       // how many the claim stage is about to claim tasks for
	doubted  bool      // the outcome of the last call is unknown
	stale    bool      // it is to be asked about again
	seen     time.Time // when the store was asked last
	lastUsed time.Time
}

// gateSet is the gates that some jobs have in common. It belongs to lanes.
type gateSet struct {
	text    string
	gates   []*gate
	waiting []*task   // claimed, in the order of the claims
	want    int       // for how many jobs to ask
	retry   time.Time // when to ask again
	alarm   time.Time // when a start comes that a task waits for
	took    time.Duration
}

func (s *session) newPermits() *permits {
	l, _ := s.store.(store.Limiter)
	return &permits{s: s, limiter: l, calling: make(chan struct{}, 1), news: newWakeup(), gates: map[string]*gate{}, sets: map[string]*gateSet{}}
}

// setLocked returns the set of a text.
func (p *permits) setLocked(text string) *gateSet {
	set := p.sets[text]
	if set != nil {
		return set
	}
	if len(p.sets) == 0 {
		p.news.notify()
	}
	set = &gateSet{text: text, want: 1}
	for name := range strings.SplitSeq(text, "\n") {
		g := p.gates[name]
		if g == nil {
			g = &gate{name: name, lastUsed: time.Now()}
			p.gates[name] = g
		}
		g.sets = append(g.sets, set)
		set.gates = append(set.gates, g)
	}
	p.sets[text] = set
	return set
}

// yields reports whether the session is to give back what it holds beyond its fair part.
func (g *gate) yields() bool {
	return g.over > 0 || g.asked > 0 && g.held > g.fair && time.Since(g.since) > yieldAfter
}

// usable returns how many permits tasks that are yet to be claimed may use.
func (g *gate) usable() int {
	if g.yields() {
		return min(g.held, g.fair)
	}
	return g.held
}

// spent reports whether no more tasks may start. Those that were claimed may use what is to be given
// back to others, but not what there is no more.
func (g *gate) spent() bool { return g.used >= g.held || g.over > 0 && g.used >= g.fair }

// free returns how many more tasks could start at once, if they were claimed.
func (set *gateSet) free() int {
	n := maxClaim
	for _, g := range set.gates {
		n = min(n, g.usable()-g.used-g.waiting)
		if g.rule.Starts > 0 {
			n = min(n, len(g.starts)-g.waiting)
		}
	}
	return n
}

// ahead returns how many tasks are worth to wait for the permits that others use now.
func (set *gateSet) ahead() int {
	n := maxClaim
	for _, g := range set.gates {
		if g.rule.Starts > 0 || g.yields() {
			return 0
		}
		n = min(n, g.held)
	}
	if set.took <= 0 {
		return 0
	}
	return n * int(min(aheadOfPermit, prefetchTime/set.took))
}

// none reports whether the session knows of no gate.
func (p *permits) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.gates) == 0
}

// grows reports whether there may be more permits of each of the gates than the session holds.
func (set *gateSet) grows() bool {
	return !slices.ContainsFunc(set.gates, func(g *gate) bool { return g.yields() || g.rule.AtOnce != 0 && g.held >= g.rule.AtOnce })
}

// sift returns the lanes of a list that may be claimed from, as far as permits decide, and the others.
// The permits that it plans with are kept until planned is called.
func (p *permits) sift(list []target) (open, blocked []target) {
	if !slices.ContainsFunc(list, func(t target) bool { return t.Limits != "" }) {
		return list, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range list {
		if t.Limits != "" {
			t.most = p.setLocked(t.Limits).plan()
		}
		if t.Limits == "" || t.most > 0 {
			open = append(open, t)
		} else {
			blocked = append(blocked, t)
		}
	}
	p.shareLocked(open)
	return open, blocked
}

// maxShares is among how many lanes the room of a claim is shared at most: more than that many are not
// claimed from in one call.
const maxShares = 64

// shareLocked has lanes with limits share the room, so that no key waits for all that there is of
// another one.
func (p *permits) shareLocked(open []target) {
	lanes, now := 0, time.Now()
	for _, t := range open {
		if t.Limits != "" {
			lanes++
		}
	}
	if lanes < 2 {
		return
	}
	for i := range open {
		if t := &open[i]; t.Limits != "" {
			t.most = min(t.most, max(1, p.s.pools.room(t.Lane, now)/min(lanes, maxShares)))
		}
	}
}

// bound is sift for one lane, for which there is room.
func (p *permits) bound(t target, room int) (target, bool) {
	if room <= 0 {
		return t, false
	}
	open, _ := p.sift([]target{t})
	return append(open, t)[0], len(open) > 0
}

// planned ends a plan, when the tasks of the claims have come.
func (p *permits) planned(list []target) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range list {
		if t.Limits != "" {
			for _, g := range p.setLocked(t.Limits).gates {
				g.planned = 0
			}
		}
	}
}

// most returns how many entries of a lane to claim.
func (set *gateSet) most() int { return max(0, set.free(), set.ahead()-len(set.waiting)) }

// plan is most for one lane of many, with regard to what is planned for those before it.
func (set *gateSet) plan() int {
	most, planned := set.most(), 0
	for _, g := range set.gates {
		planned = max(planned, g.planned)
	}
	most = max(0, most-planned)
	for _, g := range set.gates {
		g.planned += most
	}
	return most
}

// claimed notes whether a claim brought as much as was to be had.
func (p *permits) claimed(lane store.Lane, full bool) {
	if lane.Limits == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := p.setLocked(lane.Limits); !full {
		set.want = 1
	} else if set.want < maxClaim {
		set.want *= 2
	}
}

// wait has a task wait for permits.
func (p *permits) wait(t *task) {
	t.pool.limited.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.setLocked(t.entry.Limits)
	t.gates, t.claimed = set, time.Now()
	set.waiting = append(set.waiting, t)
	for _, g := range set.gates {
		if g.waiting++; len(set.waiting) == 1 {
			g.waiters = append(g.waiters, set)
		}
	}
	p.admitLocked(set)
}

// admitLocked lets tasks of a set start for which there are permits.
func (p *permits) admitLocked(set *gateSet) {
	for len(set.waiting) > 0 && !p.closed && set.startable(time.Now(), p) {
		t := set.waiting[0]
		set.removeLocked(func(other *task) bool { return other == t })
		for _, g := range set.gates {
			g.used++
			if g.rule.Starts > 0 {
				g.starts = g.starts[1:]
			}
		}
		t.permitted = true
		t.pool.place(t)
	}
}

// removeLocked takes away tasks that wait.
func (set *gateSet) removeLocked(which func(*task) bool) (gone []*task) {
	kept := set.waiting[:0]
	for _, t := range set.waiting {
		if which(t) {
			gone = append(gone, t)
			t.pool.limited.Add(-1)
		} else {
			kept = append(kept, t)
		}
	}
	clear(set.waiting[len(kept):])
	set.waiting = kept
	for _, g := range set.gates {
		if g.waiting -= len(gone); len(kept) == 0 {
			g.waiters = slices.DeleteFunc(g.waiters, func(other *gateSet) bool { return other == set })
		}
	}
	return gone
}

// startable reports whether each of the gates has a permit. Under a rate there must be a start whose
// time has come; it calls again when one comes.
func (set *gateSet) startable(now time.Time, p *permits) bool {
	var at time.Time
	for _, g := range set.gates {
		if g.spent() {
			return false
		}
		if g.rule.Starts == 0 {
			continue
		}
		g.starts = slices.DeleteFunc(g.starts, func(start time.Time) bool { return now.Sub(start) > lateStart })
		if len(g.starts) == 0 {
			return false
		}
		if g.starts[0].After(at) {
			at = g.starts[0]
		}
	}
	if !at.After(now) {
		return true
	}
	if at != set.alarm {
		set.alarm = at
		time.AfterFunc(at.Sub(now), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.admitLocked(set)
		})
	}
	return false
}

// ended gives the permits of a task to those that wait.
func (p *permits) ended(t *task) {
	set := t.gates
	if set == nil || !t.permitted {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	t.permitted = false
	now, asked := time.Now(), false
	for _, g := range set.gates {
		g.used--
		g.lastUsed = now
		asked = asked || g.asked > 0 || g.over > 0
	}
	if !t.done.Started.IsZero() {
		set.learn(max(t.done.Ended.Sub(t.done.Started), time.Microsecond))
	}
	p.admitLocked(set)
	for _, g := range set.gates {
		p.admitOthersLocked(g)
	}
	if asked {
		p.news.notify()
	}
	if len(set.waiting) <= set.ahead()/2 {
		p.s.capacity.notify()
	}
}

// admitOthersLocked lets each set that waits for a gate have a turn, as long as there are permits.
func (p *permits) admitOthersLocked(g *gate) {
	for range len(g.waiters) {
		if g.spent() || len(g.waiters) == 0 {
			return
		}
		set := g.waiters[0]
		g.waiters = append(g.waiters[1:], set)
		p.admitLocked(set)
	}
}

// learn notes how long a task took.
func (set *gateSet) learn(took time.Duration) {
	if set.took == 0 {
		set.took = took
	}
	set.took += (took - set.took) / 4
}

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
	for _, t := range list {
		if t.Limits == "" {
			continue
		}
		set := p.setLocked(t.Limits)
		if now.Before(set.retry) || set.free() > 0 || set.ahead() > len(set.waiting) && !set.grows() || p.s.pools.room(t.Lane, now) <= 0 ||
			slices.Contains(sets, set) {
			continue
		}
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
		if len(set.waiting) > 0 && !now.Before(set.retry) && len(sets) < maxTakes &&
			slices.ContainsFunc(set.gates, func(g *gate) bool { return g.held == 0 || g.rule.Starts > 0 && len(g.starts) == 0 }) {
			sets = append(sets, set)
		}
	}
	return sets
}

// takingsLocked returns what to ask for some sets, and notes when to ask again.
func (p *permits) takingsLocked(sets []*gateSet) (all []store.Taking) {
	again := time.Now().Add(askPermits)
	counted := map[*gate]bool{}
	for _, set := range sets {
		set.retry = again
		all = append(all, set.taking(counted))
	}
	return all
}

// taking is what to ask for a set. What is unused of a gate counts for the first set that has it.
func (set *gateSet) taking(counted map[*gate]bool) store.Taking {
	t := store.Taking{Want: set.want + len(set.waiting)}
	for _, g := range set.gates {
		have := store.TakingGate{Gate: g.name}
		if !counted[g] {
			counted[g] = true
			have.Permits = max(0, g.held-g.used)
			have.Starts = len(g.starts)
		}
		t.Gates = append(t.Gates, have)
	}
	return t
}

// call asks the store for what request returns, which is called with the lock held, and notes the
// answer. While the outcome of a call is unknown the permits that it asked for do not count, and
// neither do those that it gave back; the next call settles it.
func (p *permits) call(ctx context.Context, request func() store.PermitRequest) error {
	p.calling <- struct{}{}
	defer func() { <-p.calling }()
	p.mu.Lock()
	req := request()
	p.beforeLocked(&req)
	p.mu.Unlock()
	if len(req.Keep)+len(req.Take) == 0 {
		return nil
	}
	limit, cancel := p.s.limit(ctx)
	defer cancel()
	moves := p.s.moves.Load()
	holds, err := p.limiter.Permits(limit, p.s.token, req)
	if err == nil && p.s.movedSince(moves) {
		err = store.ErrBuried
	}
	p.mu.Lock()
	defer p.mu.Unlock()
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
	g.seen, g.stale = now, h.Busy
	if h.Busy && g.doubted {
		return
	}
	if !h.Busy {
		p.s.inflight.permitted(h.GateRef)
	}
	p.doubtLocked(g, false)
	g.held, g.fair, g.rule = h.Permits, h.Fair, h.Rule
	for _, start := range h.Starts {
		g.starts = append(g.starts, p.s.clock.local(start))
	}
	if h.Asked > 0 && g.asked == 0 {
		g.since = now
	}
	if g.asked, g.over = h.Asked, h.Over; g.over > 0 {
		p.news.notify()
	}
	more, later := p.s.clock.local(h.Next).Add(-store.StartLead), time.Duration(0) // when more starts can be bought
	for _, set := range g.sets {
		switch {
		case h.Busy || set.free() > 0:
			set.retry = time.Time{}
		case g.rule.Starts > 0 && more.After(now):
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
	for name, g := range p.gates {
		if name != news.Permits && store.LimitOf(name) != news.Permits {
			continue
		}
		g.stale = g.stale || g.held > 0
		for _, set := range g.sets {
			set.retry = time.Time{}
		}
		p.news.notify()
		p.s.capacity.notify()
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
		err := p.call(ctx, func() store.PermitRequest {
			now := time.Now()
			return store.PermitRequest{Keep: p.dueLocked(now), Take: p.takingsLocked(p.stuckLocked(now))}
		})
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

// pause returns how long nothing is due, if there is no news.
func (p *permits) pause() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.gates) == 0 {
		return time.Hour // the first call notifies
	}
	for _, g := range p.gates {
		if g.asked > 0 || g.over > 0 || g.doubted {
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

// idle reports whether nothing of the gate was used for a while.
func (g *gate) idle(now time.Time) bool {
	return g.used+g.waiting+g.planned == 0 && now.Sub(g.lastUsed) > idlePermits
}

// refreshes reports whether to ask from time to time how many permits others wait for.
func (g *gate) refreshes(listening bool) bool {
	return g.asked > 0 || g.over > 0 || !listening && g.used > 0
}

// keep returns how many permits to keep.
func (g *gate) keep(now time.Time) int {
	busy := g.used + g.waiting + g.planned
	switch {
	case g.over > 0:
		return min(g.held, max(g.used, g.fair))
	case g.yields():
		return min(g.held, max(busy, g.fair))
	case g.asked == 0 && now.Sub(g.lastUsed) < idlePermits:
		return g.held
	}
	return min(g.held, busy)
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
	}
	delete(p.gates, g.name)
}

// takeWaiting takes away the tasks of a pool that have waited for permits for a while, or all of them
// when the session stops: then none goes to its pool any more.
func (p *permits) takeWaiting(of *pool, longerThan time.Duration, stop bool) (tasks []*task) {
	if of.limited.Load() == 0 && !stop {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || stop
	now := time.Now()
	for _, set := range p.sets {
		late := set.removeLocked(func(t *task) bool { return t.pool == of && now.Sub(t.claimed) >= longerThan })
		if len(late) > 0 {
			set.took = max(set.took, longerThan) // longer than was believed
		}
		tasks = append(tasks, late...)
	}
	return tasks
}
