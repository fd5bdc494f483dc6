package check

import (
	"fmt"
	"strings"
)

// Need says that a job waits for another one, whatever became of either.
type Need struct {
	Child, Parent int64
	Wants         Want
}

// Want is what a job wants of one that it needs.
type Want string

// What a job can want of another.
const (
	WantsSuccess Want = "success" // that it completes
	WantsFailure Want = "failure" // that it fails, expires or is cancelled
	WantsEnd     Want = "end"     // that it ends
)

// verdicts are what may become of a job, as far as those that it needs have decided: a set of the three.
type verdicts uint8

// The verdicts, the strictest last: of several that one counts.
const (
	runs verdicts = 1 << iota
	isSkipped
	isCancelled

	anything = runs | isSkipped | isCancelled
)

// verdictOf is what the end of a job means to one that wants something of it.
func verdictOf(wants Want, outcome string) verdicts {
	switch {
	case outcome == OutcomeSkipped, wants == WantsFailure && outcome == OutcomeCompleted:
		return isSkipped
	case wants == WantsSuccess && outcome != OutcomeCompleted:
		return isCancelled
	}
	return runs
}

// and is what two that a job needs decide together.
func (v verdicts) and(o verdicts) (both verdicts) {
	for _, a := range []verdicts{runs, isSkipped, isCancelled} {
		for _, b := range []verdicts{runs, isSkipped, isCancelled} {
			if v&a != 0 && o&b != 0 {
				both |= max(a, b)
			}
		}
	}
	return both
}

// fate is what the accounts say of a job of a flow, or of a flow.
type fate struct {
	job     *Job
	outcome string // that it ended with; empty while it has not
	reason  string
	begun   bool // it was ready, claimed or run
	first   *Run // nil when no handler began to run it
	over    *Run // that ended it; nil when none did, or that may have gone on after its end
}

// member notes the fate of a job of a flow, or of a flow.
func (c *checker) member(s *story) {
	if c.members == nil || len(s.jobs) == 0 || s.jobs[0].Flow == 0 && !s.jobs[0].IsFlow {
		return
	}
	f := &fate{job: &s.jobs[0]}
	c.members[s.id] = f
	for i, x := range s.done {
		f.begun = f.begun || x == nil || c.holder(s.entries[i].Pos) != 0
		if x != nil && x.Final {
			f.outcome, f.reason = x.Outcome, x.Reason
		}
	}
}

// ran notes when a job of a flow ran.
func (c *checker) ran(s *story) {
	f := c.members[s.id]
	if f == nil {
		return
	}
	for i, at := range s.of {
		if at < 0 {
			continue
		}
		r, x := &s.runs[i], s.done[at]
		if f.first == nil || r.Start < f.first.Start {
			f.first = r
		}
		if x != nil && x.Final && !x.Decided && byEngine(x.Outcome) && !f.job.CompletesItself && r.How != Open {
			f.over = r
		}
	}
}

// needs checks that jobs ran, or were skipped or cancelled, as those ended that they need, and after them.
func (c *checker) needs() {
	if c.members == nil {
		return
	}
	type decision struct {
		verdicts
		why string
	}
	all := map[int64]*decision{}
	for _, n := range c.facts.Needs {
		child := c.members[n.Child]
		if child == nil {
			continue // it is deleted, or of another account
		}
		v, parent := c.decides(&n)
		if all[n.Child] == nil {
			all[n.Child] = &decision{verdicts: runs}
		}
		d := all[n.Child]
		d.verdicts = d.and(v)
		d.why += fmt.Sprintf(", the %s of %s", n.Wants, parent)
		if p := c.members[n.Parent]; p != nil && p.over != nil && child.first != nil && child.first.Start < p.over.End && p.job.Recovers == 0 {
			c.report.broken(RuleNeeds, n.Child, "it began %v before job %d had ended, which it needs", p.over.End.Sub(child.first.Start), n.Parent)
		}
	}
	for id, d := range all {
		switch f := c.members[id]; {
		case f.begun && d.verdicts&runs == 0:
			c.report.broken(RuleNeeds, id, "it began, and needs%s", d.why[1:])
		case f.outcome == OutcomeSkipped && (f.begun || d.verdicts&isSkipped == 0):
			c.report.broken(RuleNeeds, id, "it was skipped (begun: %v), and needs%s", f.begun, d.why[1:])
		case f.undone() && (f.begun || d.verdicts&isCancelled == 0):
			c.report.broken(RuleNeeds, id, "it was cancelled (begun: %v) since it %s, and needs%s", f.begun, f.reason, d.why[1:])
		case !f.begun && f.outcome != "" && f.outcome != OutcomeSkipped && f.outcome != OutcomeCancelled:
			c.report.broken(RuleNeeds, id, "it was %s and never began; it needs%s", f.outcome, d.why[1:])
		}
	}
}

// undone reports whether a job was cancelled for what it needs.
func (f *fate) undone() bool {
	return f.outcome == OutcomeCancelled && strings.HasPrefix(f.reason, "needs job ")
}

// decides is what may become of a job for the sake of one that it needs, in words too. A job that does another
// one of its flow again took its place also for those that had been decided, so what either came to may have counted. Of one that
// was deleted nothing is known.
func (c *checker) decides(n *Need) (v verdicts, parent string) {
	for id := n.Parent; ; {
		f := c.members[id]
		if f == nil {
			return anything, fmt.Sprintf("job %d (deleted)", n.Parent)
		}
		if id == n.Parent {
			parent = fmt.Sprintf("job %d (%s)", id, f.outcome)
		}
		if f.outcome != "" {
			v |= verdictOf(n.Wants, f.outcome)
		}
		old := f.job.Recovers
		if old == 0 || c.members[old] != nil && c.members[old].job.Flow != f.job.Flow {
			return v, parent
		}
		id = old
	}
}

// flows checks that flows ended after their jobs, and as these did. All says that none of these was deleted.
func (c *checker) flows(all bool) {
	type content struct {
		open, bad int64 // a job that has not ended, and one that was to complete
	}
	replaced := map[int64]bool{}
	for _, f := range c.members {
		if old := c.members[f.job.Recovers]; old != nil && old.job.Flow == f.job.Flow {
			replaced[f.job.Recovers] = true
		}
	}
	in := map[int64]content{}
	for id, f := range c.members {
		is := in[f.job.Flow]
		switch {
		case f.outcome == "":
			is.open = id
		case f.outcome != OutcomeCompleted && f.outcome != OutcomeSkipped && !replaced[id]:
			is.bad = id
		}
		in[f.job.Flow] = is
	}
	for id, f := range c.members {
		switch is := in[id]; {
		case !f.job.IsFlow || f.outcome == "":
		case is.open != 0:
			c.report.broken(RuleFlow, id, "the flow was %s, and its job %d has not ended", f.outcome, is.open)
		case f.outcome == OutcomeCompleted && is.bad != 0:
			c.report.broken(RuleFlow, id, "the flow completed, and its job %d was %s", is.bad, c.members[is.bad].outcome)
		case f.outcome == OutcomeFailed && is.bad == 0 && all:
			c.report.broken(RuleFlow, id, "the flow failed, and none of its jobs did")
		case f.outcome != OutcomeCompleted && f.outcome != OutcomeFailed && f.outcome != OutcomeCancelled && !f.undone():
			c.report.broken(RuleFlow, id, "the flow was %s, as no flow can be", f.outcome)
		}
	}
}
