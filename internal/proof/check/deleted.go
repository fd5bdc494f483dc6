package check

// deleted judges a job that the test deleted, and reports whether it is gone:
// then there is nothing more to hold the history against.
func (c *checker) deleted(s *story) bool {
	at, asked := c.gone[s.id]
	rows := len(s.jobs) + len(s.entries) + len(s.executions) + len(s.waiting)
	if asked && len(s.enqueues)+rows > 0 {
		c.strays--
	}
	switch {
	case !asked, at == 0 && rows > 0:
		return false
	case rows > 0:
		c.report.broken(RuleDeleted, s.id, "it was deleted, and %d rows still speak of it", rows)
	}
	c.report.Deleted++
	for i := range s.runs {
		r := &s.runs[i]
		if r.How == Open {
			c.report.OpenRuns++
		}
		if at != 0 && r.Start > at {
			c.report.Doubled++
			c.report.broken(RuleDeleted, s.id, "%s began to run it %v after it had ended and was deleted", c.process(r), r.Start.Sub(at))
		}
		for k := range s.runs[:i] {
			c.beside(s, &s.runs[k], r)
		}
	}
	return true
}

// beside checks two runs of a deleted job, the second of which began later. What
// came of the first is gone with the job, but not what had been done to its
// process.
func (c *checker) beside(s *story, a, b *Run) {
	end := c.end(a)
	if end <= b.Start {
		return
	}
	for i := range c.opt.Disturbances {
		d := &c.opt.Disturbances[i]
		if d.Does != Kills && d.Does != Stops && d.hits(c.history, a) && d.From <= b.Start && (d.To == 0 || a.Start <= d.To.Add(c.opt.aftermath())) && end <= d.allows(b.Start, c.opt.Bound) {
			c.report.excuse(d.Does, 1)
			return
		}
	}
	c.report.Doubled++
	c.report.broken(RuleOverlap, s.id, "before it was deleted it still ran on %s when it started on %s", c.process(a), c.process(b))
}
