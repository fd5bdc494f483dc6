package store

import (
	"slices"
	"time"
)

// Full reports whether a gate lets no other job start now that has not begun before.
func (s GateState) Full(now time.Time) bool {
	g := newGate(0, now, s)
	return g.Blocked() || g.heldByAll() >= g.most() || g.Rule.Starts > 0 && g.nextStart().After(now.Add(StartLead))
}

// JobsUnder are jobs of a queue that name the same limits, as lanes keep them; none for "".
type JobsUnder struct {
	Queue, Limits string
	Jobs          int64
}

// MostUnder is of how many queues and limits a store counts jobs at most, those with the most jobs first, to
// tell which wait for limits.
const MostUnder = 10_000

// gates are those of the jobs.
func (u JobsUnder) gates() []string { return append(GatesIn(u.Limits), QueueGate(u.Queue)) }

// GatesUnder returns the gates of jobs, sorted, each once.
func GatesUnder(all []JobsUnder) (gates []string) {
	for _, u := range all {
		gates = append(gates, u.gates()...)
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}

// Limited counts the jobs of which a gate is full. The states are of their gates.
func Limited(now time.Time, all []JobsUnder, states []GateState) (n int64) {
	full := map[string]bool{}
	for _, s := range states {
		full[s.Gate] = s.Full(now)
	}
	for _, u := range all {
		if slices.ContainsFunc(u.gates(), func(gate string) bool { return full[gate] }) {
			n += u.Jobs
		}
	}
	return n
}
