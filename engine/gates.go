package engine

import (
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const (
	// aheadOfPermit is how many tasks may wait for each permit at most, as long as they take no longer
	// than prefetchTime: so nothing is lost between two jobs, and an engine that is to give a permit
	// back is soon done. It is deepPrefetch where deepClaims claims in a row have brought all that they
	// asked for: many engines with few permits each would otherwise do little but claim.
	aheadOfPermit = 32
	deepPrefetch  = 4 * prefetchTime
	deepClaims    = 8

	// yieldAfter is for how long an engine goes on to use all of its permits when others wait for some.
	yieldAfter = 250 * time.Millisecond

	// idlePermits is for how long an engine keeps permits that it does not use and nobody asks for,
	// and betweenJobs the same if others ask: the next job may be on its way.
	idlePermits = 10 * time.Second
	betweenJobs = 20 * time.Millisecond

	// rememberFailures is for how long failures of an unused gate count, under a rule that goes by them.
	rememberFailures = time.Hour
)

// gate is what the session knows of one gate.
type gate struct {
	name    string
	sets    []*gateSet // all that it belongs to
	waiters []*gateSet // those with tasks that wait, the next one first
	pools   []*pool    // in which its tasks run
	held    int        // permits that the session may use
	used    int        // by tasks that have not ended
	waiting int        // tasks that wait for a permit of it, or of another gate
	fair    int
	rule    stint.LimitRule
	starts  []*starts // of each cost
	more    time.Time // from when more starts can be had

	paused   time.Time // no task starts before
	trial    bool      // after that one starts alone, until it has completed
	outcomes outcomes

	left     int       // permits that nobody holds
	peak     [2]int    // the most that were used at once, in this interval of tryPermits and the one before
	peakAt   time.Time // when this interval began
	over     int       // how many more are held than the rule allows
	asked    int       // permits that others wait for
	since    time.Time // when that was first seen
	planned  int       // how many the claim stage is about to claim tasks for
	doubted  bool      // the outcome of the last call is unknown
	stale    bool      // it is to be asked about again
	heard    int64     // the last call that had begun when there was news of it
	seen     time.Time // when the store was asked last
	lastUsed time.Time

	// Of one that keeps an order (see order.go):
	blocked bool      // it may be used for jobs that come again only
	again   int64     // the last call that had begun when the session learned that something comes again
	granted time.Time // when the store gave out what is held
}

// starts are those of one cost that were bought under a rule's rate, by this process's clock, and the tasks
// that wait for some.
type starts struct {
	cost    int
	at      []time.Time
	waiting int
}

// startsOf returns those of a cost.
func (g *gate) startsOf(cost int) *starts {
	for _, s := range g.starts {
		if s.cost == cost {
			return s
		}
	}
	s := &starts{cost: cost}
	g.starts = append(g.starts, s)
	return s
}

// head is where the work of a lane begins, and since when it does.
type head struct {
	first store.Position
	since time.Time
}

// gateSet is the gates that some jobs have in common. It belongs to lanes.
type gateSet struct {
	text    string
	gates   []*gate
	costs   []int     // how many starts of each of these a job counts as
	starts  []*starts // of each
	waiting []*task   // claimed, in the order of the claims
	want    int       // for how many jobs to ask
	full    int       // how many claims in a row brought all that they asked for
	retry   time.Time // when to ask again
	alarm   time.Time // when a start comes that a task waits for
	took    time.Duration
	heads   map[store.LaneID]head // of the work of its lanes that was seen without permits for it
	looked  time.Time             // when
	starved bool                  // nobody has begun that of one of the lanes for a while
	turn    float64               // how much was claimed for its weight
	again   bool                  // the last look showed jobs that come again
	dropped bool                  // it is not known any more: another one stands for the text
}

// add adds a gate, of which each job counts as so many starts.
func (set *gateSet) add(g *gate, cost int) {
	g.sets = append(g.sets, set)
	set.gates, set.costs, set.starts = append(set.gates, g), append(set.costs, cost), append(set.starts, g.startsOf(cost))
}

// weight is the greatest of its gates' weights.
func (set *gateSet) weight() int {
	weight := 1
	for _, g := range set.gates {
		weight = max(weight, g.rule.Weight)
	}
	return weight
}

// yields reports whether the session is to give back what it holds beyond its fair part.
func (g *gate) yields() bool {
	return g.over > 0 || g.pauses() || g.asked > 0 && g.held > g.fair && time.Since(g.since) > yieldAfter
}

// pauses reports whether no task may start.
func (g *gate) pauses() bool { return !g.paused.IsZero() && time.Now().Before(g.paused) }

// usable returns how many permits tasks that are yet to be claimed may use.
func (g *gate) usable() int {
	if g.pauses() {
		return 0
	}
	if g.yields() {
		return min(g.held, g.fair)
	}
	return g.held
}

// spent reports whether no more tasks may start. Those that were claimed may use what is to be given
// back to others, but not what there is no more.
func (g *gate) spent() bool {
	return g.used >= g.held || g.over > 0 && g.used >= g.fair || g.pauses()
}

// free returns how many more tasks could start at once, if they were claimed.
func (set *gateSet) free() int {
	n := maxClaim
	for i, g := range set.gates {
		n = min(n, g.usable()-g.used-g.waiting)
		if g.rule.Starts > 0 {
			n = min(n, len(set.starts[i].at)-set.starts[i].waiting)
		}
	}
	return n
}

// ahead returns how many tasks are worth to wait for the permits that others use now.
func (set *gateSet) ahead() int {
	n := maxClaim
	for _, g := range set.gates {
		if g.rule.Starts > 0 || g.rule.InOrder || g.yields() {
			return 0
		}
		n = min(n, g.held)
	}
	if set.took <= 0 {
		return 0
	}
	within := prefetchTime
	if set.full >= deepClaims {
		within = deepPrefetch
	}
	return int(min(aheadOfPermit*time.Duration(n), time.Duration(n)*within/set.took))
}

// look notes where the work of a lane begins. If that stays where it is, nobody has permits for it.
func (set *gateSet) look(t *target) {
	if set.looked != t.seen {
		set.looked, set.starved = t.seen, false
	}
	if set.heads == nil {
		set.heads = map[store.LaneID]head{}
	}
	if was := set.heads[t.ID]; was.first != t.first {
		set.heads[t.ID] = head{t.first, t.seen}
	} else if t.seen.Sub(was.since) >= tryPermits {
		set.starved = true
	}
}

// slots returns how many of its tasks can run at once.
func (g *gate) slots() (n int) {
	for _, p := range g.pools {
		n += p.inUse() * p.together
	}
	return n
}

// useful returns how many permits the session has a use for: one for each slot. Where many are left, it
// may have some of these to claim more at once.
func (g *gate) useful() int { return max(g.slots(), g.used+g.left/8) }

// startsIn returns how many starts rates have in a time.
func (set *gateSet) startsIn(d time.Duration) (n int) {
	for _, g := range set.gates {
		if g.rule.Starts > 0 {
			n = max(n, int(d.Seconds()*float64(g.rule.Starts)/g.rule.Per.Seconds()))
		}
	}
	return n
}

// grows reports whether there may be more permits of each of the gates than the session holds, and slots
// for them.
func (set *gateSet) grows() bool {
	return !slices.ContainsFunc(set.gates, func(g *gate) bool {
		return g.yields() || g.rule.AtOnce != 0 && g.held >= min(g.rule.AtOnce, g.useful())
	})
}

// unbound reports whether slots bound how many of its tasks run, and no limit does.
func (set *gateSet) unbound() bool {
	return !slices.ContainsFunc(set.gates, func(g *gate) bool {
		return g.rule.InOrder || g.rule.Starts > 0 || g.yields() || g.rule.AtOnce > 0 && g.held < g.slots() && g.left == 0
	})
}

// noSlots reports whether there are no slots for more of its tasks than have permits.
func (set *gateSet) noSlots() bool {
	return slices.ContainsFunc(set.gates, func(g *gate) bool { return g.rule.AtOnce > 0 && g.used >= g.useful() })
}

// stuck reports whether tasks wait and none of them can start before the store was asked.
func (set *gateSet) stuck() bool {
	if len(set.waiting) == 0 {
		return false
	}
	for i, g := range set.gates {
		if g.held == 0 || g.rule.Starts > 0 && len(set.starts[i].at) == 0 {
			return true
		}
	}
	return false
}

// paused reports whether one of the gates lets no task start.
func (set *gateSet) paused() bool { return slices.ContainsFunc(set.gates, (*gate).pauses) }

// runIn notes that tasks of the set run in a pool.
func (set *gateSet) runIn(p *pool) {
	for _, g := range set.gates {
		if p != nil && !slices.Contains(g.pools, p) {
			g.pools = append(g.pools, p)
		}
	}
}

// most returns how many entries of a lane to claim.
func (set *gateSet) most() int { return max(0, set.free(), set.ahead()-len(set.waiting)) }

// plan is most for one lane of many, with regard to what is planned for those before it.
func (set *gateSet) plan(t *target) int {
	if set.heldUp() && !t.comesAgain() {
		return 0
	}
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
	for i, g := range set.gates {
		set.starts[i].waiting -= len(gone)
		if g.waiting -= len(gone); len(kept) == 0 {
			g.waiters = slices.DeleteFunc(g.waiters, func(other *gateSet) bool { return other == set })
		}
	}
	return gone
}

// startable reports whether each of the gates has a permit. Under a rate there must be a start whose
// time has come; it calls again when one comes.
func (set *gateSet) startable(now time.Time, p *permits) bool {
	if set.heldUp() && !set.waiting[0].again {
		return false
	}
	var at time.Time
	for i, g := range set.gates {
		if g.spent() {
			return false
		}
		if g.rule.Starts == 0 {
			continue
		}
		s := set.starts[i]
		s.at = slices.DeleteFunc(s.at, func(start time.Time) bool { return now.Sub(start) > store.LateStart(g.rule) })
		if len(s.at) == 0 {
			return false
		}
		if s.at[0].After(at) {
			at = s.at[0]
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

// learn notes how long a task took.
func (set *gateSet) learn(took time.Duration) {
	if set.took == 0 {
		set.took = took
	}
	set.took += (took - set.took) / 4
}

// taking is what to ask for a set: as many permits as its jobs have use for, at most. What is unused of a
// gate counts for the first set that has it, and promised is what the sets before may use of each.
func (set *gateSet) taking(promised map[*gate]int) store.Taking {
	t := store.Taking{Want: set.want + len(set.waiting), Try: !set.starved && !set.stuck()}
	t.Again = set.again || len(set.waiting) > 0 && set.waiting[0].again
	for _, g := range set.gates {
		if g.rule.AtOnce > 0 {
			t.Want = min(t.Want, max(0, g.useful()-max(g.used, promised[g])))
		}
	}
	for i, g := range set.gates {
		have := store.TakingGate{Gate: g.name, Cost: set.costs[i]}
		if _, counted := promised[g]; !counted {
			have.Permits = max(0, g.held-g.used)
			have.Starts = len(set.starts[i].at)
		}
		promised[g] = max(g.held, promised[g], g.used) + max(0, t.Want-have.Permits)
		t.Gates = append(t.Gates, have)
	}
	return t
}

// idle reports whether nothing of the gate was used for a while.
func (g *gate) idle(now time.Time) bool {
	after := idlePermits
	if g.outcomes.inARow > 0 && g.rule.TripFor > 0 {
		after = rememberFailures
	}
	return g.used+g.waiting+g.planned == 0 && now.Sub(g.lastUsed) > after
}

// refreshes reports whether to ask from time to time how many permits others wait for.
func (g *gate) refreshes(listening bool) bool {
	return g.asked > 0 || g.over > 0 || !listening && g.used > 0
}

// keep returns how many permits to keep.
func (g *gate) keep(now time.Time) int {
	busy := g.used + g.waiting + g.planned
	switch {
	case g.pauses():
		return min(g.held, g.used)
	case g.over > 0:
		return min(g.held, max(g.used, g.fair))
	case g.spare(now):
		return 0
	case g.yields():
		return min(g.held, max(busy, g.fair))
	case g.asked == 0 && g.left == 0 && g.rule.AtOnce > 1 && now.Sub(g.lastUsed) < idlePermits:
		return min(g.held, max(busy, g.peak[0], g.peak[1], 1)) // others may have use for the rest
	case g.asked == 0 && now.Sub(g.lastUsed) < idlePermits, now.Sub(g.lastUsed) < betweenJobs:
		return g.held
	}
	return min(g.held, busy)
}

// notePeak notes how many permits are used.
func (g *gate) notePeak(now time.Time) {
	if now.Sub(g.peakAt) > 2*tryPermits {
		g.peak, g.peakAt = [2]int{g.used, g.peak[0]}, now
	}
	g.peak[0] = max(g.peak[0], g.used)
}
