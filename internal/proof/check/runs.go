package check

import (
	"cmp"
	"slices"
)

// handlers holds the runs of a job against what was recorded of them.
func (c *checker) handlers(s *story) {
	if len(s.jobs) == 0 {
		for i := range s.runs {
			c.report.broken(RuleRun, s.id, "%s ran it, but there is no such job", c.process(&s.runs[i]))
		}
		return
	}
	c.assign(s)
	for i := range s.runs {
		if s.runs[i].How == Open {
			c.report.OpenRuns++
		}
		c.run(s, i)
	}
	for i, x := range s.done {
		if x == nil {
			continue
		}
		if byEngine(x.Outcome) && !x.Decided && !slices.Contains(s.of, i) {
			c.report.broken(RuleOutcome, s.id, "entry %d was %s, but no handler ran for it", x.Pos, x.Outcome)
		}
		if x.Outcome == OutcomeLost {
			c.lost(s, x)
		}
	}
	c.order(s)
}

func (c *checker) process(r *Run) string { return c.history.Processes[r.Process].Name }

// run checks one run against its entry.
func (c *checker) run(s *story, i int) {
	r, at := &s.runs[i], s.of[i]
	if at < 0 {
		if r.Pos == 0 && slices.ContainsFunc(s.runs[i+1:], func(o Run) bool { return o.Attempt == r.Attempt }) {
			c.report.Doubled++
			c.report.broken(RuleRerun, s.id, "%s ran attempt %d once more than there are entries for it", c.process(r), r.Attempt)
			return
		}
		c.report.broken(RuleRun, s.id, "%s ran attempt %d at position %d, and there is no such entry", c.process(r), r.Attempt, r.Pos)
		return
	}
	e, x := &s.entries[at], s.done[at]
	if again := slices.Index(s.of[:i], at); again >= 0 {
		c.report.Doubled++
		c.report.broken(RuleRerun, s.id, "entry %d was started by %s and again by %s", e.Pos, c.process(&s.runs[again]), c.process(r))
		return
	}
	holder := c.holder(e.Pos)
	if r.Engine = cmp.Or(r.Engine, holder); r.Engine != holder || holder == 0 {
		c.report.broken(RuleRun, s.id, "%s ran entry %d for engine %d, but it is claimed by %d (0: nobody)", c.process(r), e.Pos, r.Engine, holder)
		return
	}
	if r.Attempt != e.Attempt {
		c.report.broken(RuleAttempt, s.id, "%s ran entry %d as attempt %d, but it is attempt %d", c.process(r), e.Pos, r.Attempt, e.Attempt)
	}
	if !c.mayEnd(s, r, x) {
		c.report.broken(RuleOutcome, s.id, "the handler of entry %d on %s ended %q, but was recorded as %s", e.Pos, c.process(r), r.How, outcome(x))
		return
	}
	c.cutShort(s, r, x)
}

// says reports whether an outcome is exactly what a handler said.
func says(how How, x *Execution) bool {
	if x == nil {
		return how == Open
	}
	switch x.Outcome {
	case OutcomeCompleted:
		return how == OK || how == Recorded
	case OutcomeFailed:
		return how == Error || how == Panic || how == Cancelled
	case OutcomeSnoozed:
		return how == Snooze
	case OutcomeReturned:
		return how == Cancelled
	case OutcomeLost:
		return how == Open
	}
	return x.Outcome == OutcomeCancelled && how != OK && how != Recorded && how != Open
}

// mayEnd reports whether an outcome is possible for what a handler said. What
// an engine knew and could not record any more is returned or lost by its
// burial, whatever it was, or cancelled if somebody had cancelled the job. What
// the handler recorded itself stands. Whatever goes wrong while its engine is being
// stopped, and be it at that very instant, counts as the stop's.
func (c *checker) mayEnd(s *story, r *Run, x *Execution) bool {
	how := r.How
	switch {
	case x == nil:
		return how != Recorded
	case says(how, x):
		return true
	case how == Recorded:
		return false
	}
	switch x.Outcome {
	case OutcomeCompleted:
		return s.jobs[0].CompletesItself
	case OutcomeLost:
		return true
	case OutcomeReturned, OutcomeCancelled:
		engine := c.engineOf(x)
		_, buried := c.facts.Buried[engine]
		return buried && !c.clean[engine] || x.Outcome == OutcomeReturned && how != OK && how != Open && c.told(r)
	}
	return false
}

// outcome is what was recorded, in a word.
func outcome(x *Execution) string {
	if x == nil {
		return "nothing"
	}
	return x.Outcome
}

// engineOf is who had the entry of an execution in hand.
func (c *checker) engineOf(x *Execution) int64 { return cmp.Or(c.holder(x.Pos), x.Engine) }
