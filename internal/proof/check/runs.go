package check

import (
	"cmp"
	"slices"
	"time"
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
	if x != nil && x.Unbegun {
		c.report.broken(RuleOutcome, s.id, "the handler of entry %d began on %s, and it is recorded that it did not", e.Pos, c.process(r))
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

// lost checks that what was lost was lost with a buried engine.
func (c *checker) lost(s *story, x *Execution) {
	if _, buried := c.facts.Buried[c.engineOf(x)]; !buried {
		c.report.broken(RuleLoss, s.id, "entry %d was lost with engine %d, which was never buried", x.Pos, c.engineOf(x))
	}
}

// cutShort checks that a run whose end was not recorded, or that its engine
// cancelled, was cut short by something that happened to its process. A stop
// explains the second.
func (c *checker) cutShort(s *story, r *Run, x *Execution) {
	switch {
	case x == nil:
		return
	case x.Outcome == OutcomeLost:
	case x.Outcome == OutcomeReturned && r.How == Cancelled:
		if c.told(r) {
			return
		}
	case x.Outcome == OutcomeReturned:
	case x.Outcome == OutcomeCancelled && !says(r.How, x):
	default:
		return
	}
	b, buried := c.buried(r, r.Engine)
	if !buried {
		b.latest = forever
	}
	if !slices.ContainsFunc(c.opt.Disturbances, func(d Disturbance) bool { return d.reaches(c.history, r, b, c.opt.aftermath()) }) {
		c.report.broken(RuleLoss, s.id, "entry %d was %s with engine %d, but nothing is known to have happened to %s",
			x.Pos, x.Outcome, r.Engine, c.process(r))
	}
}

// told tells whether the engine of a run was told to stop before the run was over.
func (c *checker) told(r *Run) bool {
	return slices.ContainsFunc(c.opt.Disturbances, func(d Disturbance) bool {
		return d.Does == Stops && d.From <= r.End && (d.To == 0 || r.Start <= d.To) && d.hits(c.history, r)
	})
}

// burial is when an engine was buried, as closely as that is known.
type burial struct{ earliest, latest Instant }

// buried tells when an engine was buried, on the clock of the run's process.
func (c *checker) buried(r *Run, engine int64) (burial, bool) {
	t, buried := c.facts.Buried[engine]
	if !buried {
		return burial{}, false
	}
	slack := c.opt.slack()
	if known, ok := c.opt.Burials[engine]; ok {
		t, slack = known, time.Second
	}
	at := c.history.Processes[r.Process].instant(t)
	return burial{at.Add(-slack), at.Add(slack)}, true
}

// end is when a run was certainly over: at its end, or with its process.
func (c *checker) end(r *Run) Instant {
	if r.How != Open {
		return r.End
	}
	end := forever
	if stopped := c.history.Processes[r.Process].Stopped; stopped != 0 {
		end = stopped
	}
	for i := range c.opt.Disturbances {
		if d := &c.opt.Disturbances[i]; d.Does == Kills && d.From >= r.Start && d.hits(c.history, r) {
			end = min(end, d.From)
		}
	}
	return end
}

// order checks the runs of a job in the order of their entries: each follows
// an outcome that calls for it, and begins when the one before is over.
func (c *checker) order(s *story) {
	if len(s.runs) < 2 {
		return
	}
	seq := make([]int, 0, len(s.runs))
	for i, at := range s.of {
		if at >= 0 {
			seq = append(seq, i)
		}
	}
	slices.SortStableFunc(seq, func(a, b int) int { return cmp.Compare(s.of[a], s.of[b]) })
	var latest Instant
	for n, i := range seq {
		r := &s.runs[i]
		if n > 0 && s.of[seq[n-1]] != s.of[i] {
			c.rerun(s, seq[n-1])
		}
		if n > 0 && latest > r.Start {
			for _, k := range seq[:n] {
				c.overlap(s, k, i)
			}
		}
		if end := c.end(r); n == 0 || end > latest {
			latest = end
		}
	}
}

// rerun explains why a job ran again after run i.
func (c *checker) rerun(s *story, i int) {
	r, x := &s.runs[i], s.done[s.of[i]]
	if x == nil || x.Final {
		c.report.Doubled++
		c.report.broken(RuleRerun, s.id, "it ran again after entry %d, whose outcome does not call for it", s.entries[s.of[i]].Pos)
		return
	}
	if s.jobs[0].Once && x.Outcome != OutcomeFailed && x.Outcome != OutcomeSnoozed && r.How != Cancelled && r.Start > c.opt.replaced {
		c.report.Doubled++
		c.report.broken(RuleLosses, s.id, "it may run at most once, and ran again after entry %d was %s on %s", s.entries[s.of[i]].Pos, x.Outcome, c.process(r))
	}
	reason := ReasonCutOff
	switch {
	case x.Outcome == OutcomeFailed:
		reason = ReasonRetry
	case x.Outcome == OutcomeSnoozed:
		reason = ReasonSnooze
	case x.Outcome == OutcomeReturned && r.How == Cancelled:
		reason = ReasonReturn
	case slices.ContainsFunc(c.opt.Disturbances, func(d Disturbance) bool { return d.Does == Kills && d.hits(c.history, r) }):
		reason = ReasonCrash
	}
	c.report.Reruns[reason]++
}

// overlap checks two runs, the second of a later entry: the first must be
// over when the second starts, or else be stale. A stale run is one whose
// engine was buried before the second began, because of something that keeps
// a process from noticing; and it must end within the bound.
func (c *checker) overlap(s *story, i, k int) {
	a, b := &s.runs[i], &s.runs[k]
	end := c.end(a)
	if end <= b.Start || s.of[i] == s.of[k] {
		return
	}
	var does Does
	why := "its outcome does not free the job before it ends"
	if x := s.done[s.of[i]]; x != nil && (x.Outcome == OutcomeLost || x.Outcome == OutcomeReturned) {
		does, why = c.unexplained(&s.jobs[0], a, b, end)
	}
	if why == "" {
		c.report.excuse(does, 1)
		return
	}
	c.report.Doubled++
	c.report.broken(RuleOverlap, s.id, "entry %d still ran on %s when entry %d started on %s: %s",
		s.entries[s.of[i]].Pos, c.process(a), s.entries[s.of[k]].Pos, c.process(b), why)
}

// unexplained says what is missing from the explanation of why a job's run went on when another one started
// that had to wait for it; nothing when it is complete, but what had been done to the process. That it could
// not reach the database is the last to be believed.
func (c *checker) unexplained(job *Job, a, b *Run, end Instant) (does Does, why string) {
	grave, buried := c.buried(b, a.Engine)
	switch {
	case !buried:
		return "", "its engine was not buried"
	case grave.earliest > b.Start:
		return "", "its engine was buried only afterwards"
	}
	why = "nothing is known to have happened to its process"
	for n := range c.opt.Disturbances {
		d := &c.opt.Disturbances[n]
		if d.Does == Kills || d.From > b.Start || !d.reaches(c.history, a, grave, c.opt.aftermath()) {
			continue
		}
		bound := c.opt.Bound
		if d.Does == CutsOff && !job.Lingers {
			bound = 0
		}
		switch {
		case end <= d.allows(b.Start, bound) || job.Kept && end < forever:
			if d.Does != CutsOff {
				return d.Does, ""
			}
			does = d.Does
		case end == forever:
			why = "it never ended, and its process is not known to have died"
		default:
			why = "its process was " + string(d.Does) + ", but it went on for longer than the bound"
		}
	}
	if does != "" {
		why = ""
	}
	return does, why
}

// allows is until when a disturbed run may go on after a second one started.
// Whoever is cut off knows it, and must have ended its work before it is
// buried; the frozen and the deaf are waited for.
func (d *Disturbance) allows(second Instant, bound time.Duration) Instant {
	switch {
	case d.Does == CutsOff:
		return second.Add(bound)
	case d.To == 0:
		return forever
	}
	return max(second, d.To).Add(bound)
}
