package store

import "github.com/stint-go/stint"

// GateOrder is what holds up the jobs of a gate whose rule says in-order. A store writes down that a
// job comes again in the same transaction that makes its next entry, and that it failed under a rule
// that says halt in the one that records its failure. Entries of jobs that come again are in other
// lanes than [PartNormal], so that they can be claimed before those that have not begun.
//
// Under such a rule an engine holds at most one permit, claims a job only while it holds it, and keeps
// it until the outcome is recorded. So nobody starts another job before it is known whether this one
// comes again.
type GateOrder struct {
	// Again is a job that comes again and has not ended. Before it only others that come again may start.
	Again stint.ID `json:"again,string,omitempty"`

	// Failed is a job that failed for good, and that nobody retried. While the rule says halt, none
	// may start.
	Failed stint.ID `json:"failed,string,omitempty"`
}

// Halted reports whether no job of the gate may start until a person decides about the failed one.
func (s GateState) Halted() bool { return s.Rule.Halt && s.Failed != 0 }

// Halted is as [GateState.Halted].
func (g GateInfo) Halted() bool {
	r, err := stint.ParseLimitRule(g.Rule)
	return err == nil && GateState{Rule: r, GateOrder: g.GateOrder}.Halted()
}

// Blocked reports whether no job may start that has not begun before.
func (s GateState) Blocked() bool { return s.Rule.InOrder && s.Again != 0 || s.Halted() }

// allows returns for how many of the jobs that are asked for the gate has permits. have are those that
// the engine has unused.
func (g *gate) allows(t Taking, have int) int {
	switch {
	case !g.Blocked():
		return have + max(0, g.room())
	case !t.Again || g.Halted():
		return 0
	}
	return have + max(0, g.most()-g.heldByAll())
}

// lacks reports whether an engine that asks is to wait for permits that others hold. Those that wait for
// jobs that come again do not go before them.
func (g *gate) lacks(t Taking) bool {
	switch {
	case !g.Blocked():
		return g.room() <= 0
	case !t.Again || g.Halted():
		return false // no permit would help
	}
	return g.heldByAll() >= g.most()
}

// wakeHeldUp wakes all when a permit comes back: while jobs were held up nobody counted as waiting.
func (g *gate) wakeHeldUp() []Wake {
	if g.Rule.InOrder && g.held < g.mine.Held && !g.Blocked() {
		return []Wake{{Gate: g.Gate}}
	}
	return nil
}
