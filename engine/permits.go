package engine

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
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

	mu         sync.Mutex // guards the rest
	gates      map[string]*gate
	sets       map[string]*gateSet     // by their text
	pauses     map[string]pendingPause // by the names of gates
	resumes    map[string]bool         // of gates whose trial has ended well
	doubts     int                     // gates of which the outcome of the last call is unknown
	calls      int64                   // how many have begun
	took       time.Duration           // how long the last one took
	claims     map[int64]*gateSet      // of which the outcome is unknown, by serial number
	askedAgain time.Time
	refreshed  time.Time
	passedOn   time.Time
	weighted   bool    // one of the gates has a weight
	turn       float64 // of the set that has had least for its weight
	closed     bool    // no more tasks go to their pools
}

func (s *session) newPermits() *permits {
	l, _ := s.store.(store.Limiter)
	return &permits{s: s, limiter: l, calling: make(chan struct{}, 1), news: newWakeup(), gates: map[string]*gate{}, sets: map[string]*gateSet{},
		claims: map[int64]*gateSet{}, pauses: map[string]pendingPause{}, resumes: map[string]bool{}}
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
	for line := range strings.SplitSeq(text, "\n") {
		cost, name := stint.LimitCost(line)
		g := p.gates[name]
		if g == nil {
			g = &gate{name: name, lastUsed: time.Now()}
			p.gates[name] = g
		}
		set.add(g, cost)
	}
	p.sets[text] = set
	return set
}

// ofLocked returns the set of a lane, and notes it there.
func (p *permits) ofLocked(t *target) *gateSet {
	if t.gates == nil || t.gates.dropped {
		t.gates = p.setLocked(t.Limits)
		t.gates.runIn(p.s.pools.of(t.Queue))
	}
	return t.gates
}

// mayPassOn reports whether to have others look for work that this engine has no permits for, since one
// of them may have some to spare. It may be so for all that comes, so that is not done each time.
func (p *permits) mayPassOn() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	may := now.Sub(p.passedOn) > tryPermits
	if may {
		p.passedOn = now
	}
	return may
}

// none reports whether the session knows of no gate.
func (p *permits) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.gates) == 0
}

// sift returns the lanes of a list that may be claimed from, as far as permits decide, and the others.
// The permits that it plans with are kept until planned is called.
func (p *permits) sift(list []target) (open, blocked []target) {
	if !slices.ContainsFunc(list, func(t target) bool { return t.Limits != "" }) {
		return list, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	list = p.weighLocked(list)
	open = make([]target, 0, len(list))
	urgent, now := map[*pool]int{}, time.Now() // the priority of a lane that has use for all slots
	for i := range list {
		t := &list[i]
		if len(open) == maxLanes {
			blocked = append(blocked, list[i:]...) // not in this call
			break
		}
		pool := p.s.pools.of(t.Queue)
		if before, ok := urgent[pool]; ok && before < t.Priority {
			blocked = append(blocked, *t)
			continue
		}
		if t.Limits != "" {
			set := p.ofLocked(t)
			if t.most = set.plan(t); t.most+len(set.waiting) > 0 && set.unbound() && !p.s.pools.avoids(t.ID, now) {
				urgent[pool] = t.Priority
			}
		}
		if t.Limits == "" || t.most > 0 {
			open = append(open, *t)
		} else {
			blocked = append(blocked, *t)
		}
	}
	p.shareLocked(open)
	return open, blocked
}

// minShares is among how many lanes with limits the room of a claim is shared, or among the slots of the
// pool if these are more: what is shared among more keys costs more claims, and keeps no slot busier.
const minShares = 8

// shareLocked has lanes with limits that are of one priority share the room, so that no key waits for all
// that there is of another one.
func (p *permits) shareLocked(open []target) {
	for len(open) > 0 {
		n := 1
		for n < len(open) && inOrder(open[0], open[n]) == 0 {
			n++
		}
		p.shareEquallyLocked(open[:n])
		open = open[n:]
	}
}

func (p *permits) shareEquallyLocked(open []target) {
	lanes, now := 0, time.Now()
	for _, t := range open {
		if t.Limits != "" {
			lanes++
		}
	}
	if lanes < 2 {
		return
	}
	share := map[*pool]int{}
	for i := range open {
		t := &open[i]
		if t.Limits == "" {
			continue
		}
		pool := p.s.pools.of(t.Queue)
		if share[pool] == 0 {
			share[pool] = max(1, p.s.pools.room(t.Lane, now)/min(lanes, max(minShares, pool.inUse())))
		}
		t.most = min(t.most, share[pool]*p.ofLocked(t).weight())
	}
}

// weighLocked puts lanes in the order in which their keys have a turn, if one of them has a weight: the
// one first of which least was claimed for its weight (stride scheduling, Waldspurger and Weihl 1995).
// One that had nothing to claim does not catch up.
func (p *permits) weighLocked(list []target) []target {
	if !p.weighted || len(list) < 2 {
		return list
	}
	least := math.Inf(1)
	for i := range list {
		if list[i].Limits != "" {
			set := p.ofLocked(&list[i])
			set.turn = max(set.turn, p.turn)
			least = min(least, set.turn)
		}
	}
	if !math.IsInf(least, 1) {
		p.turn = max(p.turn, least)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b target) int {
		if rank := inOrder(a, b); rank != 0 || a.gates == nil || b.gates == nil {
			return rank
		}
		return cmp.Compare(a.gates.turn, b.gates.turn)
	})
	return list
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
	for i := range list {
		if t := &list[i]; t.Limits != "" {
			for _, g := range p.ofLocked(t).gates {
				g.planned = 0
			}
		}
	}
}

// claimed notes how many entries a claim brought, and whether that is what was to be had.
func (p *permits) claimed(lane store.Lane, n int, full bool) {
	if lane.Limits == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.setLocked(lane.Limits)
	set.full++
	if set.turn += float64(n) / float64(set.weight()); !full {
		set.want, set.full = 1, 0
	} else if set.want < maxClaim {
		set.want *= 2
	}
}

// wait has a task wait for permits.
func (p *permits) wait(t *task, limits string) {
	t.pool.enter(&t.pool.limited)
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.setLocked(limits)
	set.runIn(t.pool)
	t.gates, t.claimed = set, time.Now()
	t.again = t.claim.ref.Lane != store.LimitedLane(t.entry.Queue, t.entry.Priority, store.PartNormal, "", t.entry.Limits).ID
	set.waiting = append(set.waiting, t)
	for i, g := range set.gates {
		set.starts[i].waiting++
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
		for i, g := range set.gates {
			g.used++
			g.notePeak(time.Now())
			if g.rule.Starts > 0 {
				s := set.starts[i]
				if by := s.at[0].Add(store.LateStart(g.rule)); t.startBy.IsZero() || by.Before(t.startBy) {
					t.startBy = by
				}
				s.at = s.at[1:]
			}
		}
		t.permitted = true
		t.pool.place(t)
	}
}

// withdrawn reports whether a task that has its permits must not start, since one of its limits was
// paused, or allows fewer, after it got them, or since the start that was bought under a rate has passed
// while it waited for a slot. A batch waits for its jobs, and starts all the same.
func (p *permits) withdrawn(t *task) bool {
	if !t.permitted {
		return false
	}
	if t.batch == nil && !t.startBy.IsZero() && time.Now().After(t.startBy) {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(t.gates.gates, func(g *gate) bool { return g.pauses() || g.over > 0 && g.used > g.fair })
}

// ended gives the permits of a task to those that wait, unless they keep an order: see recorded.
func (p *permits) ended(t *task) {
	set := t.gates
	if set == nil || !t.permitted {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !t.done.Started.IsZero() {
		set.learn(max(t.done.Ended.Sub(t.done.Started), time.Microsecond))
	}
	if !set.inOrder() {
		p.releaseLocked(t)
	}
}

func (p *permits) releaseLocked(t *task) {
	t.permitted = false
	set, now, asked := t.gates, time.Now(), false
	for _, g := range set.gates {
		g.used--
		g.lastUsed = now
		asked = asked || g.asked > 0 || g.over > 0 || g.pauses()
		p.endedLocked(t, g)
		if g.rule.Starts > 0 && !g.more.After(now) && 2*(g.usable()-g.used-g.waiting) >= g.held {
			set.retry = time.Time{} // half of its permits have no start, and there are some
		}
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

// close is called when the session stops, before its pools are closed: none of those that wait goes to its pool any more.
func (p *permits) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
}

// takeWaiting takes away the tasks of a pool that have waited for permits for a while, or whose limit is
// paused, since they take room from others.
func (p *permits) takeWaiting(of *pool, longerThan time.Duration) (tasks []*task) {
	if of.limited.Load() == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	for _, set := range p.sets {
		paused := set.paused()
		late := set.removeLocked(func(t *task) bool { return t.pool == of && (paused || now.Sub(t.claimed) >= longerThan) })
		if len(late) > 0 && !paused {
			set.took = max(set.took, longerThan) // longer than was believed
		}
		for _, t := range late {
			set.occupyLocked(t)
		}
		tasks = append(tasks, late...)
	}
	return tasks
}
