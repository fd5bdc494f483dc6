package check

import (
	"cmp"
	"slices"
	"time"
)

// taking is one position of one claim.
type taking struct {
	pos   int64
	claim int32
}

// takings lists what the claims took, by position.
func takings(claims []Claim) []taking {
	var all []taking
	for i := range claims {
		for _, pos := range claims[i].Positions {
			all = append(all, taking{pos, int32(i)})
		}
	}
	slices.SortFunc(all, func(a, b taking) int { return cmp.Compare(a.pos, b.pos) })
	return all
}

// claimed finds the claims that took a position: one or none, unless
// something is wrong.
func (c *checker) claimed(pos int64) []taking {
	i, _ := slices.BinarySearchFunc(c.taken, pos, func(t taking, pos int64) int { return cmp.Compare(t.pos, pos) })
	n := i
	for n < len(c.taken) && c.taken[n].pos == pos {
		n++
	}
	return c.taken[i:n]
}

// holder is the engine that claimed a position; 0 for none.
func (c *checker) holder(pos int64) int64 {
	if t := c.claimed(pos); len(t) > 0 {
		return c.facts.Claims[t[0].claim].Engine
	}
	return 0
}

// claim checks one entry against the claims, and its execution, if any,
// against the claim that took it.
func (c *checker) claim(e *Entry, x *Execution) {
	in := c.claimed(e.Pos)
	switch {
	case len(in) > 1:
		c.report.Doubled++
		a, b := &c.facts.Claims[in[0].claim], &c.facts.Claims[in[1].claim]
		c.report.broken(RuleClaim, e.Job, "entry %d was taken twice: by engine %d in claim %d/%d and by engine %d in claim %d/%d",
			e.Pos, a.Engine, a.Lane, a.N, b.Engine, b.Lane, b.N)
		return
	case e.Behind && len(in) == 0:
		c.report.Lost++
		c.report.broken(RuleClaim, e.Job, "entry %d was stepped over: it is behind the frontier and in no claim", e.Pos)
		return
	case !e.Behind && len(in) == 1:
		c.report.broken(RuleClaim, e.Job, "entry %d is in a claim, but not behind the frontier: it will be taken again", e.Pos)
		return
	}
	var by *Claim
	if len(in) == 1 {
		by = &c.facts.Claims[in[0].claim]
	}
	if x == nil {
		c.unfinished(e, by)
		return
	}
	c.recorded(x, by)
}

// unfinished checks who holds an entry that has no outcome yet.
func (c *checker) unfinished(e *Entry, by *Claim) {
	switch {
	case by == nil:
	case !c.roster[by.Engine]:
		c.report.broken(RuleRoster, e.Job, "entry %d is held by engine %d, which is not in the roster", e.Pos, by.Engine)
	case c.clean[by.Engine]:
		c.report.broken(RuleClean, e.Job, "entry %d is held by engine %d, which stopped cleanly", e.Pos, by.Engine)
	}
}

// recorded checks by whom, and when, an outcome was recorded. What burials
// and chores write on behalf of an engine comes after its end, so only the
// outcomes that it alone can know are held against it.
func (c *checker) recorded(x *Execution, by *Claim) {
	own := byEngine(x.Outcome) && !(x.Decided && x.Final)
	switch {
	case by == nil && (own || x.Nonce != 0):
		c.report.broken(RuleClaim, x.Job, "entry %d was %s under a claim that does not hold it", x.Pos, x.Outcome)
	case by != nil && x.Nonce != 0 && x.Nonce != by.Nonce:
		c.report.broken(RuleClaim, x.Job, "entry %d was %s under another claim than %d/%d, which holds it", x.Pos, x.Outcome, by.Lane, by.N)
	case by != nil && own && x.Engine != by.Engine:
		c.report.broken(RuleClaim, x.Job, "entry %d was %s by engine %d, but claimed by engine %d", x.Pos, x.Outcome, x.Engine, by.Engine)
	}
	if end, buried := c.facts.Buried[x.Engine]; buried && own && x.Finished.After(end.Add(c.opt.Slack)) {
		c.report.broken(RuleBuried, x.Job, "entry %d was %s %v after the burial of engine %d", x.Pos, x.Outcome, x.Finished.Sub(end), x.Engine)
	}
	if x.Outcome == OutcomeLost && c.clean[x.Engine] {
		c.report.broken(RuleClean, x.Job, "entry %d was lost with engine %d, which stopped cleanly", x.Pos, x.Engine)
	}
}

// engines checks that those that were buried or stopped cleanly have left.
func (c *checker) engines() {
	for _, token := range c.facts.Roster {
		if t, buried := c.facts.Buried[token]; buried {
			c.report.broken(RuleBuried, 0, "engine %d was buried at %v and stands in the roster", token, t)
		}
	}
	for _, token := range c.opt.Clean {
		if c.roster[token] {
			c.report.broken(RuleClean, 0, "engine %d stopped cleanly and still stands in the roster", token)
		}
	}
}

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

// kept checks that recorded steps, and what runs said, went with their jobs.
func (c *checker) kept() {
	jobs := index(c.facts.Jobs, func(j *Job) (int64, bool) { return j.ID, true })
	for _, job := range c.facts.Kept {
		if !jobs[job] {
			c.report.broken(RuleStep, job, "its steps, or what it said, are there, and it is not")
		}
	}
}

// accepted checks that all runs of a job were told the same of a step, and that this is what is recorded.
func (c *checker) accepted() {
	type step struct {
		job  int64
		name string
	}
	came := map[step]string{}
	for _, s := range c.facts.Steps {
		came[step{s.Job, s.Name}] = s.Value
	}
	jobs := map[int64]bool{}
	if c.facts.Steps != nil && len(c.history.Told) > 0 {
		jobs = index(c.facts.Jobs, func(j *Job) (int64, bool) { return j.ID, true })
	}
	for _, t := range c.history.Told {
		s := step{t.Job, t.Step}
		value, known := came[s]
		switch {
		case !known && jobs[t.Job]:
			c.report.broken(RuleStep, t.Job, "%s was told %s by the step %q, and nothing is recorded of it", c.history.Processes[t.Process].Name, t.Value, t.Step)
		case !known:
			came[s] = t.Value
		case value != t.Value:
			c.report.Doubled++
			c.report.broken(RuleStep, t.Job, "%s was told %s by the step %q, which came to %s", c.history.Processes[t.Process].Name, t.Value, t.Step, value)
		}
	}
}

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
		case s.jobs[0].Schedule != "", s.jobs[0].IsFlow:
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
