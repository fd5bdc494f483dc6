package check

// deleted judges a job that the test deleted, and reports whether it is gone:
// then there is nothing more to hold the history against.
func (c *checker) deleted(s *story) bool {
	at, asked := c.gone[s.id]
	rows := len(s.jobs) + len(s.entries) + len(s.executions) + len(s.waiting)
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
	}
	return true
}
