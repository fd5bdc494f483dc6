package store

import (
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
)

// GateState is all that a store keeps of a gate: a [Limiter] reads it, has [Grant] compute the next one,
// and writes that only if nobody else has written one meanwhile.
type GateState struct {
	Gate string
	N    int64 // counts the states of the gate; 0 for none yet
	Rule stint.LimitRule
	Next time.Time // the theoretical arrival time of the next start under the rule's rate
	Cost int       // what the dearest start counts as that was asked for since the rate was at rest; 0 for 1
	Used []GateUse // in the order in which they asked

	Until time.Time // when a pause ends
	Trial bool      // one job starts alone after it
	GateOrder
}

// GateRef names a state of a gate.
type GateRef struct {
	Gate string
	N    int64
}

// GateUse is what an engine of the roster holds of a gate, and asks for.
type GateUse struct {
	Engine EngineID
	Held   int
	Asked  int       // how many more it waits for
	Since  time.Time // when it last asked
}

// At is the use as it counts at an instant: an engine that did not ask again for long waits no more.
func (u GateUse) At(now time.Time) GateUse {
	if now.Sub(u.Since) > askFor {
		u.Asked = 0
	}
	return u
}

// Wake is a gate of which engines are to look at what they hold: Engine, since there is room for what it
// waits for, or those that hold permits, since another one waits, if Engine is 0.
type Wake struct {
	Gate   string
	Engine EngineID
}

// GrantResult is what [Grant] decided.
type GrantResult struct {
	Holds   []Hold      // of all gates
	Changed []GateState // to write; N is one more than before
	Wake    []Wake      // to send when Changed is written
}

const (
	// askFor is for how long an engine that waits has precedence. It asks again sooner.
	askFor = 3 * time.Second

	// askAgain is after how long it is written again that an engine waits.
	askAgain = time.Second

	// StartLead is how long before their time starts are given out.
	StartLead = 250 * time.Millisecond

	// startSlack makes up for starts that are late (see LateStart): they are further apart by that part of
	// their distance than the rule says, so that the late ones of one period are not too many for the next.
	startSlack = 50

	// lateStart is how late a start may be under a rule of starts in a second, or less.
	lateStart = time.Second / startSlack

	unbounded = 1 << 40
)

// LateStart returns for how long after its time a start may be used under a rule: for what the slack of a
// period makes up for, at least 20 ms, and no longer than the next start is away if that is more. So a
// busy machine costs a rule of one start in an hour no other hour, and in no period are there more starts
// than the rule says, and its burst.
func LateStart(rule stint.LimitRule) time.Duration {
	return max(lateStart, min(rule.Per/startSlack, rule.Per/time.Duration(max(1, rule.Starts))))
}

// LimitOf returns the name of a gate's limit.
func LimitOf(gate string) string {
	name, _, _ := strings.Cut(gate, "=")
	return name
}

// QueueGate returns the gate under which all jobs of a queue count.
func QueueGate(queue string) string { return stint.QueueLimit + "=" + queue }

// GatesIn returns the gates of limits as lanes and entries keep them, without what the jobs cost.
func GatesIn(limits string) (gates []string) {
	if limits == "" {
		return nil
	}
	for line := range strings.SplitSeq(limits, "\n") {
		_, gate := stint.LimitCost(line)
		gates = append(gates, gate)
	}
	return gates
}

// Gates returns the gates of a request in the order of their names, each once.
func (r PermitRequest) Gates() []string {
	var all []string
	for _, k := range r.Keep {
		all = append(all, k.Gate)
	}
	for _, t := range r.Take {
		for _, g := range t.Gates {
			all = append(all, g.Gate)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Grant decides what an engine gets. The states are of the gates of the request, in their order, with
// the engines of the roster only. It is pure: equal arguments give equal answers.
//
// Engines that wait for a gate get permits in the order in which they asked; whoever got some goes to
// the end. Rates are counted by the generic cell rate algorithm (ITU-T I.371).
func Grant(engine EngineID, now time.Time, states []GateState, req PermitRequest) GrantResult {
	gates := make([]*gate, len(states))
	byName := make(map[string]*gate, len(states))
	for i, s := range states {
		gates[i] = newGate(engine, now, s)
		byName[s.Gate] = gates[i]
	}
	for _, k := range req.Keep {
		g := byName[k.Gate]
		g.held, g.forced = min(g.held, k.Permits), g.forced || k.Doubted
	}
	for _, t := range req.Take {
		take(t, byName)
	}
	var result GrantResult
	for _, g := range gates {
		result.Holds = append(result.Holds, g.hold())
		if g.changed() {
			result.Changed = append(result.Changed, g.next())
			result.Wake = append(result.Wake, g.wake()...)
		}
	}
	return result
}

// take grants what all gates of a set allow.
func take(t Taking, gates map[string]*gate) {
	n := t.Want
	for _, have := range t.Gates {
		g := gates[have.Gate]
		n = min(n, g.allows(t, have.Permits))
		if g.Rule.Starts > 0 {
			if have.Cost > 1 {
				g.Cost = max(g.Cost, have.Cost)
			}
			n = min(n, have.Starts+g.startsLeft(t.Want-have.Starts, max(1, have.Cost)))
		}
	}
	for _, have := range t.Gates {
		g := gates[have.Gate]
		if more := n - have.Permits; more > 0 {
			g.held, g.got = g.held+more, true
		}
		if g.Rule.Starts > 0 {
			g.buy(n-have.Starts, max(1, have.Cost))
		}
		if lacks := t.Want - max(n, have.Permits); lacks > 0 && !t.Try && g.lacks(t) {
			g.asked += lacks
		}
	}
}

// gate is a gate while Grant decides.
type gate struct {
	GateState
	now    time.Time
	mine   GateUse // as it was
	others []GateUse
	place  int // how many of the others asked before

	held, asked int // as they will be
	got         bool
	forced      bool // written in any case
	starts      []time.Time
	cost        int // of each of these
	wasCost     int // Cost as it was
}

func newGate(engine EngineID, now time.Time, s GateState) *gate {
	g := &gate{GateState: s, now: now, mine: GateUse{Engine: engine}, place: -1, wasCost: s.Cost}
	for _, u := range s.Used {
		if u.Engine == engine {
			g.mine = u
			if u.Asked > 0 {
				g.place = len(g.others)
			}
			continue
		}
		if u = u.At(now); u.Held > 0 || u.Asked > 0 {
			g.others = append(g.others, u)
		}
	}
	if g.place < 0 {
		g.place = len(g.others)
	}
	g.held = g.mine.Held
	if !g.Next.After(now) {
		g.Cost = 0
	} else if latest := g.latest(); g.Next.After(latest) {
		g.Next = latest
	}
	return g
}

// latest is how far ahead the next start can be under the rule. One that is further ahead comes from a
// slower rule, or from before the clock was set back, and would hold up what this rule lets start.
func (g *gate) latest() time.Time {
	if g.Rule.Starts == 0 {
		return g.Next
	}
	return g.now.Add(StartLead + g.intervals(max(1, g.Rule.Burst, g.Cost)))
}

// most is how many permits the gate has.
func (g *gate) most() int {
	switch {
	case g.Rule.AtOnce < 0 || g.now.Before(g.Until):
		return 0
	case g.Trial:
		return 1
	case g.Rule.AtOnce == 0:
		return unbounded
	}
	return g.Rule.AtOnce
}

// room is how many more permits the engine may get; negative if too many are held.
func (g *gate) room() int {
	room := g.most() - g.held
	for i, u := range g.others {
		if room -= u.Held; i < g.place {
			room -= u.Asked
		}
	}
	return room
}

func (g *gate) heldByAll() int {
	n := g.held
	for _, u := range g.others {
		n += u.Held
	}
	return n
}

// intervals is the time for some starts, of which each has its distance from the next.
func (g *gate) intervals(n int) time.Duration {
	d := g.Rule.Per / time.Duration(g.Rule.Starts)
	return time.Duration(n) * (d + d/startSlack)
}

// nextStart is the time of the next start that can be bought. As much of the burst is left as the dearest
// one takes, by the cheap ones too: they would always be before it otherwise. One that costs more than the
// burst does not wait for that, and those after it wait longer.
func (g *gate) nextStart() time.Time {
	if start := g.Next.Add(-g.intervals(max(0, g.Rule.Burst-max(1, g.Cost)))); start.After(g.now) {
		return start
	}
	return g.now
}

// NextStart is when the next job can start under the rule's rate, seen at a time of the store's clock; zero
// if one can at once, or if the rule has no rate.
func (s GateState) NextStart(now time.Time) time.Time {
	if s.Rule.Starts == 0 {
		return time.Time{}
	}
	if at := newGate(0, now, s).nextStart(); at.After(now) {
		return at
	}
	return time.Time{}
}

// startsLeft is how many starts of a cost can be bought now, up to a number. In one request all of a gate
// are of one cost.
func (g *gate) startsLeft(most, cost int) int {
	if g.starts != nil && g.cost != cost {
		return 0
	}
	next, n := g.Next, 0
	for ; n < most && !g.nextStart().After(g.now.Add(StartLead)); n++ {
		g.spend(cost)
	}
	g.Next = next
	return n
}

// spend moves on by one start.
func (g *gate) spend(cost int) {
	if g.Next.Before(g.now) {
		g.Next = g.now
	}
	g.Next = g.Next.Add(g.intervals(cost))
}

func (g *gate) buy(n, cost int) {
	for ; n > 0; n-- {
		g.starts, g.cost = append(g.starts, g.nextStart()), cost
		g.spend(cost)
	}
}

func (g *gate) hold() Hold {
	h := Hold{GateRef: GateRef{g.Gate, g.N}, Permits: g.held, Rule: g.Rule, Blocked: g.Blocked(), Starts: g.starts, Cost: g.cost, Until: g.Until, Trial: g.Trial}
	if g.changed() {
		h.N++
	}
	engines := 1
	for _, u := range g.others {
		h.Asked += u.Asked
		engines++
	}
	h.Fair = g.most() / engines
	left := g.most() - g.heldByAll()
	h.Left, h.Over = max(0, left), max(0, -left)
	if g.Rule.Starts > 0 {
		h.Next = g.nextStart()
	}
	if g.now.Before(g.Until) && h.Next.Before(g.Until) {
		h.Next = g.Until
	}
	return h
}

func (g *gate) changed() bool {
	return g.forced || g.held != g.mine.Held || g.starts != nil || g.Cost > g.wasCost || (g.asked > 0) != (g.mine.Asked > 0) ||
		g.asked > 0 && g.now.Sub(g.mine.Since) > askAgain
}

// next is the state to write.
func (g *gate) next() GateState {
	mine := GateUse{Engine: g.mine.Engine, Held: g.held, Asked: g.asked}
	if mine.Asked > 0 {
		mine.Since = g.now
	}
	s := g.GateState
	s.N++
	s.Used = slices.Clone(g.others)
	switch {
	case mine.Held == 0 && mine.Asked == 0:
	case g.got:
		s.Used = append(s.Used, mine)
	default:
		s.Used = slices.Insert(s.Used, g.place, mine)
	}
	return s
}

// wake tells whom the new state concerns.
func (g *gate) wake() (all []Wake) {
	if g.asked > 0 && g.mine.Asked == 0 && len(g.others) > 0 {
		all = append(all, Wake{Gate: g.Gate})
	}
	free := g.most() - g.heldByAll()
	for _, u := range g.others {
		if free > 0 && u.Asked > 0 {
			return append(all, Wake{g.Gate, u.Engine})
		}
	}
	return append(all, g.wakeHeldUp()...)
}
