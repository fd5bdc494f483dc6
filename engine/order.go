package engine

import (
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Where a gate's rule says in-order (see [store.GateOrder]), a task has its permit from its claim until
// its outcome is recorded, and so has a claim of which nobody knows what it took. Then the permit goes to
// the next job only if this one has ended, and was one that had not begun before: of others the session
// does not know what else comes again, and asks the store.

// comesAgain reports whether the jobs of a lane have been claimed before, or waited to be tried again.
func (t *target) comesAgain() bool { return t.Part == store.PartFront || t.Part == store.PartKind }

// inOrder reports whether one of the gates keeps an order.
func (set *gateSet) inOrder() bool {
	return slices.ContainsFunc(set.gates, func(g *gate) bool { return g.rule.InOrder })
}

// heldUp reports whether jobs that come again hold up the others of the set.
func (set *gateSet) heldUp() bool {
	return slices.ContainsFunc(set.gates, func(g *gate) bool { return g.rule.InOrder && g.blocked })
}

// spare reports whether the permit is of no use to the session: it is for jobs that come again, and none
// was claimed soon after it was granted.
func (g *gate) spare(now time.Time) bool {
	return g.rule.InOrder && g.blocked && g.held > 0 && g.used+g.waiting+g.planned == 0 && now.Sub(g.granted) > betweenJobs
}

// occupyLocked has a task that goes on without permits keep others of its order from starting.
func (set *gateSet) occupyLocked(t *task) {
	if set.inOrder() {
		t.gates, t.permitted = set, true
		for _, g := range set.gates {
			g.used++
		}
	}
}

// pass is called for a task with limits that goes to its pool without waiting for them, since it will
// not begin.
func (p *permits) pass(t *task, limits string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setLocked(limits).occupyLocked(t)
}

// recorded is called when the outcome of a task is in the store.
func (p *permits) recorded(t *task) {
	if !t.permitted {
		return // nearly always
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.again || t.done.Next != nil || t.done.Outcome.State() == stint.Failed {
		for _, g := range t.gates.gates {
			p.askAfterLocked(g)
		}
	}
	p.releaseLocked(t)
}

// askAfterLocked notes that something of the gate comes again, or may. What the store is being asked
// now does not tell.
func (p *permits) askAfterLocked(g *gate) {
	if g.rule.InOrder {
		g.blocked, g.again, g.granted = true, p.calls, time.Time{}
		p.news.notify()
	}
}

// blockedLocked notes what the store said of the order of a gate.
func (p *permits) blockedLocked(g *gate, h *store.Hold) {
	now := time.Now()
	if h.Permits > g.held {
		g.granted = now
	}
	g.blocked = h.Blocked
	if g.again == p.calls {
		g.blocked, g.stale = true, true
	}
	if !g.blocked || g.stale {
		return
	}
	for _, set := range g.sets {
		if !set.again {
			set.retry = now.Add(askPermits)
		}
	}
}

// unsure notes that the outcome of a claim is unknown: what it took may come again.
func (p *permits) unsure(serial int64, lane store.Lane) {
	if lane.Limits == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if set := p.setLocked(lane.Limits); set.inOrder() && p.claims[serial] == nil {
		p.claims[serial] = set
		for _, g := range set.gates {
			g.used++
		}
	}
}

// sure ends unsure: what the claim took was returned, or it took nothing.
func (p *permits) sure(serial int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	set := p.claims[serial]
	if set == nil {
		return
	}
	delete(p.claims, serial)
	for _, g := range set.gates {
		g.used--
		p.askAfterLocked(g)
	}
}
