package check

import (
	"slices"
	"strconv"
)

// identity checks that one row stands for the job, and one for each of its
// positions. Rows that are there twice are then left out, so that they are
// reported once.
func (c *checker) identity(s *story) {
	if n := len(s.jobs); n > 1 {
		c.report.broken(RuleIdentity, s.id, "is there %d times", n)
		s.jobs = s.jobs[:1]
	}
	twice := false
	for i := 1; i < len(s.entries); i++ {
		if pos := s.entries[i].Pos; pos == s.entries[i-1].Pos {
			twice = true
			c.report.broken(RuleIdentity, s.id, "two entries have the position %d", pos)
		}
	}
	if twice {
		s.entries = slices.CompactFunc(slices.Clone(s.entries), func(a, b Entry) bool { return a.Pos == b.Pos })
	}
}

// executions finds the execution of each entry.
func (c *checker) executions(s *story) {
	s.done = s.done[:0]
	rest := s.executions
	drop := func(x *Execution, n int) {
		switch {
		case len(s.jobs) == 0 && len(s.entries) == 0:
			// Reported as a job that is not there.
		case n > 0:
			c.report.Doubled++
			c.report.broken(RuleExecution, s.id, "entry %d was concluded again, as %s", x.Pos, x.Outcome)
		default:
			c.report.broken(RuleExecution, s.id, "an execution (%s) of position %d, which is no entry of it", x.Outcome, x.Pos)
		}
	}
	for i := range s.entries {
		pos := s.entries[i].Pos
		for ; len(rest) > 0 && rest[0].Pos < pos; rest = rest[1:] {
			drop(&rest[0], 0)
		}
		var x *Execution
		for n := 0; len(rest) > 0 && rest[0].Pos == pos; n, rest = n+1, rest[1:] {
			if n > 0 {
				drop(&rest[0], n)
				continue
			}
			x = &rest[0]
		}
		s.done = append(s.done, x)
	}
	for i := range rest {
		drop(&rest[i], 0)
	}
}

// key checks that no other job could be stored that has its unique key while it is unfinished.
func (c *checker) key(s *story) {
	if len(s.jobs) > 0 && s.jobs[0].Keyless && !s.jobs[0].Final {
		c.report.broken(RuleKey, s.id, "it is %s, and does not have its unique key", s.jobs[0].State)
	}
}

// place checks that the job is in exactly one place, and at the end of its
// way. Since each execution that is not final makes one successor, this is
// the same as to say that each of them has exactly one and a final one none.
func (c *checker) place(s *story) {
	if len(s.jobs) == 0 {
		if n := len(s.entries) + len(s.executions) + len(s.waiting); n > 0 {
			c.report.broken(RulePlace, s.id, "%d rows speak of it, but people see no such job", n)
		}
		return
	}
	open, final, finals := -1, -1, 0
	unfinished := 0
	for i, x := range s.done {
		switch {
		case x == nil:
			open = i
			unfinished++
		case x.Final:
			final = i
			finals++
			if x.Outcome == OutcomeSnoozed || x.Outcome == OutcomeReturned {
				c.report.broken(RuleFinal, s.id, "entry %d was %s, which is never the end", x.Pos, x.Outcome)
			}
		case x.Outcome == OutcomeCompleted || x.Outcome == OutcomeCancelled || x.Outcome == OutcomeExpired || x.Outcome == OutcomeSkipped:
			c.report.broken(RuleFinal, s.id, "entry %d was %s, which is always the end", x.Pos, x.Outcome)
		}
	}
	switch waits := len(s.waiting); {
	case finals > 1:
		c.report.Doubled++
		c.report.broken(RuleFinal, s.id, "it has %d final executions", finals)
	case finals == 1 && unfinished+waits > 0:
		c.report.Doubled++
		c.report.broken(RuleFinal, s.id, "it ended (%s) at %d and has a successor", s.done[final].Outcome, s.entries[final].Pos)
	case finals == 1 && final < len(s.done)-1:
		c.report.broken(RuleFinal, s.id, "it ended (%s) at %d, before entry %d", s.done[final].Outcome,
			s.entries[final].Pos, s.entries[len(s.entries)-1].Pos)
	case finals+unfinished+waits == 0:
		c.report.Lost++
		c.report.broken(RulePlace, s.id, "it is nowhere: %s", whereLast(s))
	case unfinished+waits > 1:
		c.report.Doubled++
		c.report.broken(RulePlace, s.id, "it is in %d places at once: %d unfinished entries, %d waits", unfinished+waits, unfinished, waits)
	case unfinished == 1 && open < len(s.done)-1:
		c.report.broken(RulePlace, s.id, "entry %d is unfinished, though entry %d follows", s.entries[open].Pos, s.entries[open+1].Pos)
	default:
		c.state(s, open, final)
	}
}

func whereLast(s *story) string {
	if len(s.entries) == 0 {
		return "it has no entry and does not wait"
	}
	last := len(s.entries) - 1
	return "entry " + number(s.entries[last].Pos) + " was " + s.done[last].Outcome + ", and nothing follows"
}

// attempts checks how attempts are counted and charged.
func (c *checker) attempts(s *story) {
	charged, losses, limit, told := 0, 0, 0, false
	if len(s.jobs) > 0 {
		limit = s.jobs[0].LossesMax
	}
	expect := func(got int, what string, pos int64) {
		if got != charged+1 && !told {
			told = true
			c.report.broken(RuleAttempt, s.id, "%s %d is attempt %d after %d were charged", what, pos, got, charged)
		}
	}
	for i, x := range s.done {
		expect(s.entries[i].Attempt, "entry", s.entries[i].Pos)
		if x == nil {
			continue
		}
		expect(x.Attempt, "the execution of", x.Pos)
		if x.Charged {
			charged++
		}
		if x.Outcome != OutcomeLost {
			continue
		}
		if losses++; limit > 0 && losses >= limit && !x.Final {
			c.report.broken(RuleLosses, s.id, "it went on after it was lost for the %d. time; it may be lost %d times", losses, limit)
		}
	}
	if len(s.waiting) == 1 && s.waiting[0].Attempt != 0 {
		expect(s.waiting[0].Attempt, "the wait of", s.id)
	}
	if len(s.jobs) == 0 {
		return
	}
	if limit := s.jobs[0].ChargedMax; limit > 0 && charged > limit {
		c.report.broken(RulePolicy, s.id, "%d attempts were charged; the policy grants %d", charged, limit)
	}
}

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
	case OutcomeCancelled, OutcomeSkipped:
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
