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

// gates are what a job waits for, and how many of each may run at once: its limits, and its unique key.
func (j *Job) gates() map[gate]int {
	if len(j.AtOnce) == 0 && j.Unique == "" {
		return nil
	}
	all := map[gate]int{}
	for name, most := range j.AtOnce {
		all[gate{RuleLimit, name}] = most
	}
	if j.Unique != "" {
		all[gate{RuleUnique, j.Unique}] = 1
	}
	return all
}

// gate is a limit with its key, or a unique key.
type gate struct {
	rule Rule
	name string
}

func (g gate) compare(h gate) int {
	return cmp.Or(cmp.Compare(g.rule, h.rule), cmp.Compare(g.name, h.name))
}

// holds notes the runs of a job that waits for gates. One that its handler completed itself holds nothing from
// then on, and when that was is not in its history.
func (c *checker) holds(s *story) {
	if len(s.jobs) == 0 {
		return
	}
	gates := s.jobs[0].gates()
	if len(gates) == 0 {
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
		for g := range gates {
			c.gates[g] = append(c.gates[g], h)
		}
	}
}

// limits checks that no more jobs ran at once than their limits allow, and that those of a unique key did one
// after the other, each with all of its runs. As among the runs of one job, of which
// [RuleOverlap] speaks, those that are stale do not count, and must end within the bound. So it is with one that
// was about to begin when its process stood still, and began when that woke up.
func (c *checker) limits() {
	for _, g := range slices.SortedFunc(maps.Keys(c.gates), gate.compare) {
		all := c.gates[g]
		slices.SortFunc(all, func(a, b held) int { return cmp.Or(cmp.Compare(a.run.Start, b.run.Start), cmp.Compare(a.end, b.end)) })
		var now []held
		var last *Job // that began
		over := map[*Job]bool{}
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
			if most := b.job.gates()[g]; len(others) >= most {
				c.report.Doubled++
				c.report.broken(g.rule, b.job.ID, "%s started it while others of %s ran, which allows %d: jobs %d",
					c.process(b.run), g.name, most, slices.Sorted(maps.Keys(others)))
				break
			}
			if over[b.job] && g.rule == RuleUnique {
				c.report.broken(g.rule, b.job.ID, "%s started it again when job %d of %s had begun", c.process(b.run), last.ID, g.name)
				break
			}
			if now = append(now, b); last != nil && last != b.job {
				over[last] = true
			}
			last = b.job
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
