package check

import (
	"cmp"
	"slices"
)

// promise is what the history says of a key that was not committed for
// certain, and how many jobs have it. A key is meant to be used once; one
// that was tried again after a rollback is still judged rightly.
type promise struct {
	unknown    int
	rolledBack int
	jobs       int
}

// expect remembers the keys whose jobs are not known by id.
func (c *checker) expect(others []Enqueue) {
	c.others = make(map[string]*promise, len(others))
	for i := range others {
		p := c.others[others[i].Key]
		if p == nil {
			p = new(promise)
			c.others[others[i].Key] = p
		}
		if others[i].Fate == RolledBack {
			p.rolledBack++
			c.report.RolledBack++
		} else {
			p.unknown++
		}
	}
}

// origin checks where the job came from: that a committed enqueue became it,
// and that it came from an enqueue or from a job that had ended.
func (c *checker) origin(s *story) {
	if len(s.enqueues) == 0 {
		switch {
		case len(s.jobs) == 0:
		case s.jobs[0].Recovers != 0:
			c.recovered(&s.jobs[0])
		case s.jobs[0].Schedule != "":
		default:
			c.stray(&s.jobs[0])
		}
		return
	}
	e := &s.enqueues[0]
	if len(s.jobs) > 0 && s.jobs[0].Recovers != 0 {
		c.report.broken(RuleRecovered, s.id, "it was enqueued as %q, and is said to do job %d again", e.Key, s.jobs[0].Recovers)
	}
	if n := len(s.enqueues); n > 1 {
		c.report.broken(RuleIdentity, s.id, "its id was the answer to %d enqueues, of %q and %q", n, e.Key, s.enqueues[1].Key)
		return
	}
	if len(s.jobs) == 0 {
		c.report.Lost++
		c.report.broken(RuleCommitted, s.id, "%q was committed by %s and is not there", e.Key, c.history.Processes[e.Process].Name)
		return
	}
	if key := s.jobs[0].Key; key != "" && key != e.Key {
		c.report.broken(RuleIdentity, s.id, "it was enqueued as %q and is %q", e.Key, key)
	}
}

// stray judges a job whose id was never answered: its commit must have been
// of unknown fate.
func (c *checker) stray(job *Job) {
	p := c.others[job.Key]
	switch {
	case p != nil && p.jobs < p.unknown:
		p.jobs++
	case p != nil && p.unknown == 0:
		c.report.broken(RuleRolledBack, job.ID, "%q was rolled back and is there", job.Key)
	case p != nil:
		c.report.Doubled++
		c.report.broken(RuleStranger, job.ID, "%q is there again, more often than it was enqueued", job.Key)
	case !c.opt.Strangers:
		c.report.broken(RuleStranger, job.ID, "nobody enqueued it (key %q)", job.Key)
	}
}

// recovered judges a job that does another one again. That may have been
// deleted since, and then nothing is known of it.
func (c *checker) recovered(job *Job) {
	all := c.facts.Jobs
	i, found := slices.BinarySearchFunc(all, job.Recovers, func(j Job, id int64) int { return cmp.Compare(j.ID, id) })
	switch {
	case job.Recovers >= job.ID:
		c.report.broken(RuleRecovered, job.ID, "it does job %d again, which came later", job.Recovers)
	case !found:
	case !all[i].Final:
		c.report.broken(RuleRecovered, job.ID, "it does job %d again, which has not ended: that is %s", job.Recovers, all[i].State)
	case all[i].Key != job.Key:
		c.report.broken(RuleRecovered, job.ID, "it does job %d again, and is %q instead of %q", job.Recovers, job.Key, all[i].Key)
	}
}

// whole checks that of each transaction of unknown fate all jobs are there, or none.
// Of those that were deleted it is not known whose they were.
func (c *checker) whole(others []Enqueue) {
	type batch struct{ process, n int32 }
	type count struct{ jobs, of int }
	all := map[batch]*count{}
	for i := range others {
		e := &others[i]
		if e.Fate != Unknown {
			continue
		}
		b := batch{e.Process, e.Batch}
		if all[b] == nil {
			all[b] = new(count)
		}
		all[b].of++
		if c.others[e.Key].jobs > 0 {
			all[b].jobs++
		}
	}
	missing := 0
	for _, n := range all {
		if n.jobs > 0 {
			missing += n.of - n.jobs
		}
	}
	if missing <= c.strays {
		return
	}
	for b, n := range all {
		if n.jobs > 0 && n.jobs < n.of {
			c.report.broken(RuleWhole, 0, "of %d jobs that %s enqueued together %d are there", n.of, c.history.Processes[b.process].Name, n.jobs)
		}
	}
}

// absent counts what became of the unknown commits.
func (c *checker) absent() {
	for _, p := range c.others {
		c.report.UnknownCommitted += p.jobs
		c.report.UnknownAbsent += p.unknown - p.jobs
	}
}
