package check

import (
	"cmp"
	"maps"
	"slices"
)

// held is a run of a job that waits for a limit, and what was recorded of it.
type held struct {
	run *Run
	x   *Execution
	job *Job
	end Instant // from when it holds nothing
}

// holds notes the runs of a job that waits for limits. One that its handler completed itself holds nothing from
// then on, and when that was is not in its history.
func (c *checker) holds(s *story) {
	if len(s.jobs) == 0 || len(s.jobs[0].AtOnce) == 0 {
		return
	}
	for i, at := range s.of {
		if at < 0 {
			continue
		}
		h := held{&s.runs[i], s.done[at], &s.jobs[0], c.end(&s.runs[i])}
		if h.job.CompletesItself && h.x != nil && h.x.Outcome == OutcomeCompleted {
			h.end = h.run.Start
		}
		for gate := range h.job.AtOnce {
			c.gates[gate] = append(c.gates[gate], h)
		}
	}
}

// limits checks that no more jobs ran at once than their limits allow. As among the runs of one job, of which
// [RuleOverlap] speaks, those that are stale do not count, and must end within the bound. So it is with one that
// was about to begin when its process stood still, and began when that woke up.
func (c *checker) limits() {
	for _, gate := range slices.Sorted(maps.Keys(c.gates)) {
		all := c.gates[gate]
		slices.SortFunc(all, func(a, b held) int { return cmp.Or(cmp.Compare(a.run.Start, b.run.Start), cmp.Compare(a.end, b.end)) })
		var now []held
		for _, b := range all {
			now = slices.DeleteFunc(now, func(a held) bool { return a.end <= b.run.Start || a.job != b.job && c.stale(a, b.run) })
			if c.stale(b, b.run) {
				continue
			}
			others := map[int64]bool{}
			for _, a := range now {
				if a.job != b.job {
					others[a.job.ID] = true
				}
			}
			if now = append(now, b); len(others) >= b.job.AtOnce[gate] {
				c.report.Doubled++
				c.report.broken(RuleLimit, b.job.ID, "%s started it while others of %s ran, which allows %d: jobs %d",
					c.process(b.run), gate, b.job.AtOnce[gate], slices.Sorted(maps.Keys(others)))
				break
			}
		}
	}
}

// stale reports whether a run that had not ended when another one started held nothing any more.
func (c *checker) stale(a held, b *Run) bool {
	if a.x == nil || a.x.Outcome != OutcomeLost && a.x.Outcome != OutcomeReturned && a.x.Outcome != OutcomeCancelled {
		return false
	}
	_, why := c.unexplained(a.job, a.run, b, a.end)
	return why == ""
}
