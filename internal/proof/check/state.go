package check

import "strconv"

func number(n int64) string { return strconv.FormatInt(n, 10) }

// state checks that people see the state of the place that the job is in:
// its final execution, its unfinished entry, or else a wait. Either index is
// -1 when there is none.
func (c *checker) state(s *story, open, final int) {
	job := &s.jobs[0]
	fits := false
	switch {
	case final >= 0:
		fits = job.State == stateAfter(s.done[final].Outcome)
	case job.State == StateCancelled:
		return // the marker shows from the cancellation on, the final execution follows
	case open < 0:
		fits = job.State == StateScheduled || job.State == StateRetrying || job.State == StateBlocked
	case s.entries[open].Behind:
		fits = job.State == StateRunning
	default:
		fits = job.State == StateAvailable
	}
	if !fits || job.Final != (final >= 0) {
		c.report.broken(RuleState, s.id, "%s, but it shows as %s (final: %v)", whereIs(s, open, final), job.State, job.Final)
	}
}

// whereIs says in words where a job is.
func whereIs(s *story, open, final int) string {
	switch {
	case final >= 0:
		return "entry " + number(s.entries[final].Pos) + " was " + s.done[final].Outcome
	case open < 0:
		return "it waits"
	case s.entries[open].Behind:
		return "entry " + number(s.entries[open].Pos) + " is claimed"
	}
	return "entry " + number(s.entries[open].Pos) + " is ready"
}

// stateAfter is the state of a job that ended with this outcome.
func stateAfter(outcome string) string {
	switch outcome {
	case OutcomeCompleted:
		return StateCompleted
	case OutcomeCancelled:
		return StateCancelled
	}
	return StateFailed
}

// drained checks that the job has ended, if all should have. A cancelled job
// that still stands somewhere has only been marked.
func (c *checker) drained(s *story) {
	if len(s.jobs) == 0 {
		return
	}
	c.report.Jobs++
	stands := len(s.waiting) > 0 || len(s.done) > 0 && s.done[len(s.done)-1] == nil
	switch {
	case s.jobs[0].Final && !stands:
		c.report.Final++
	case c.opt.Drained:
		c.report.broken(RuleDrained, s.id, "it is not final after the drain, but %s", s.jobs[0].State)
	}
}
