package check

import (
	"cmp"
	"slices"
)

// held is a run of a job that waits for a limit, and what was recorded of it.
type held struct {
	run *Run
	x   *Execution
	job *Job
	end Instant
}

// holds notes the runs of a job that waits for limits. One that its handler completed itself holds nothing from
// then on, and when that was is not in its history.
func (c *checker) holds(s *story) {
	if len(s.jobs) == 0 || s.jobs[0].CompletesItself {
		return
	}
	for gate := range s.jobs[0].AtOnce {
		for i, at := range s.of {
			if at >= 0 {
				c.gates[gate] = append(c.gates[gate], held{&s.runs[i], s.done[at], &s.jobs[0], c.end(&s.runs[i])})
			}
		}
	}
}

// limits checks that no more jobs ran at once than their limits allow. As among the runs of one job, of which
// [RuleOverlap] is, those that are stale do not count, and must end within the bound.
func (c *checker) limits() {
	for gate, all := range c.gates {
		slices.SortFunc(all, func(a, b held) int { return cmp.Compare(a.run.Start, b.run.Start) })
		var now []held
		for _, b := range all {
			now = slices.DeleteFunc(now, func(a held) bool { return a.end <= b.run.Start || a.job != b.job && c.stale(a, b.run) })
			now = append(now, b)
			others := slices.DeleteFunc(slices.Clone(now), func(a held) bool { return a.job == b.job })
			if len(others) >= b.job.AtOnce[gate] {
				c.report.Doubled++
				c.report.broken(RuleLimit, b.job.ID, "%s started it while %d others of %s ran, of which one was job %d on %s",
					c.process(b.run), len(others), gate, others[0].job.ID, c.process(others[0].run))
			}
		}
	}
}

// stale reports whether a run that had not ended when another one started held nothing any more.
func (c *checker) stale(a held, b *Run) bool {
	if a.x == nil || a.x.Outcome != OutcomeLost && a.x.Outcome != OutcomeReturned && a.x.Outcome != OutcomeCancelled {
		return false
	}
	does, why := c.unexplained(a.job, a.run, b, a.end)
	if why == "" {
		c.report.excuse(does, 1)
	}
	return why == ""
}
