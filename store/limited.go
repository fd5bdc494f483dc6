package store

import (
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
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

// gates are those of the jobs.
func (u JobsUnder) gates() []string {
	all := []string{stint.QueueLimit + "=" + u.Queue}
	if u.Limits != "" {
		for line := range strings.SplitSeq(u.Limits, "\n") {
			_, gate := stint.LimitCost(line)
			all = append(all, gate)
		}
	}
	return all
}

// GatesOf returns the gates of jobs, sorted, each once.
func GatesOf(all []JobsUnder) (gates []string) {
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
