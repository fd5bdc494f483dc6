package check

import "time"

// occurrences checks that no occurrence of a schedule has two jobs, and that those
// that are to have one do.
func (c *checker) occurrences() {
	type occurrence struct {
		schedule string
		at       int64
	}
	made := map[occurrence]int64{}
	for i := range c.facts.Jobs {
		j := &c.facts.Jobs[i]
		if j.Schedule == "" || j.Occurrence.IsZero() {
			continue // run out of turn
		}
		key := occurrence{j.Schedule, j.Occurrence.UnixMicro()}
		if other, twice := made[key]; twice && other != j.ID {
			c.report.Doubled++
			c.report.broken(RuleOccurrence, j.ID, "it is of %s at %s, as job %d is", j.Schedule, j.Occurrence.UTC().Format(time.RFC3339Nano), other)
		}
		made[key] = j.ID
	}
	for schedule, times := range c.facts.Occurrences {
		for _, at := range times {
			if made[occurrence{schedule, at.UnixMicro()}] == 0 {
				c.report.Lost++
				c.report.broken(RuleOccurrence, 0, "%s has no job of %s", schedule, at.UTC().Format(time.RFC3339Nano))
			}
		}
	}
}
