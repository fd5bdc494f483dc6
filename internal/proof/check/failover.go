package check

import (
	"cmp"
	"slices"
)

// Failover is the place of a server taken by another one, which had not all
// that the first one had. What only the first one knew is lost: it stands in
// its own rows and not in those that the other one began with. That, and nothing else, is
// excused. What was done before is held against the rows of the server that
// is gone, and what the other one kept or did against its own.
type Failover struct {
	Had  *Facts  // all that the first server had committed when it was gone
	Kept *Facts  // what the other one began with
	At   Instant // nobody reached the other one before
}

// Undone is what a failover lost.
type Undone struct {
	Jobs     int `json:"jobs"` // committed, and not there any more
	Claims   int `json:"claims"`
	Outcomes int `json:"outcomes"` // recorded, and not there any more
	Runs     int `json:"runs"`     // for claims that are lost
}

// compare judges both accounts of both servers.
func (o *Failover) compare(h *History, f *Facts, opt Options) *Report {
	opt.Failover = nil
	before, after, lost := o.part(h, f)
	then := opt
	then.Drained, then.Clean = false, o.leftBefore(opt.Clean)
	old := Compare(before, o.Had, then)

	opt.Clean, opt.replaced = o.left(opt.Clean), o.At
	opt.Disturbances = slices.Clone(opt.Disturbances)
	for _, token := range o.Kept.Roster { // they were the first server's
		opt.Disturbances = append(opt.Disturbances, Disturbance{Does: CutsOff, Engine: token, From: o.At, To: o.At})
	}
	r := Compare(after, f, opt)
	r.Enqueues, r.Runs = len(h.Enqueues), len(h.Runs)
	for _, v := range old.Violations {
		r.broken(v.Rule, v.Job, "on the server that failed: %s", v.Detail)
	}
	for rule, n := range old.Broken {
		r.Broken[rule] += max(0, n-Shown)
	}
	r.Lost += old.Lost
	r.Doubled += old.Doubled
	for does, n := range old.Overlaps {
		r.excuse(does, n)
	}
	c := &checker{history: h, facts: f, opt: opt, report: r}
	c.opt.Bound = opt.bound()
	o.prefix(c)
	o.cross(c, after.Runs, lost)
	r.Undone = o.undone(lost)
	return r
}

// work is what a run is for, as far as a handler knows.
type work struct {
	job, engine int64
	attempt     int
}

func workOf(r *Run) work { return work{r.Job, r.Engine, r.Attempt} }

// claim tells one claim from another.
type claimID struct{ lane, n, nonce int64 }

func idOf(c *Claim) claimID { return claimID{c.Lane, c.N, c.Nonce} }

// works counts, for each piece of work, how often it was claimed.
func works(f *Facts, which func(*Claim) bool) map[work]int {
	entries := make(map[int64]*Entry, len(f.Entries))
	for i := range f.Entries {
		entries[f.Entries[i].Pos] = &f.Entries[i]
	}
	all := map[work]int{}
	for i := range f.Claims {
		c := &f.Claims[i]
		if !which(c) {
			continue
		}
		for _, pos := range c.Positions {
			if e := entries[pos]; e != nil {
				all[work{e.Job, c.Engine, e.Attempt}]++
			}
		}
	}
	return all
}

// part parts a history in what was done on either server; what was kept was
// done on both. The lost runs are those for claims that only the first server
// had.
func (o *Failover) part(h *History, f *Facts) (before, after *History, lost []Run) {
	before, after = &History{Processes: h.Processes}, &History{Processes: h.Processes, Torn: h.Torn}
	had, kept := keys(o.Had), keys(o.Kept)
	for _, e := range h.Enqueues {
		here := e.Fate != Committed || had[e.Job] == e.Key
		if here {
			before.Enqueues = append(before.Enqueues, e)
		}
		if !here || e.Fate != Committed || kept[e.Job] == e.Key {
			after.Enqueues = append(after.Enqueues, e)
		}
	}
	claims := map[claimID]bool{}
	for i := range o.Kept.Claims {
		claims[idOf(&o.Kept.Claims[i])] = true
	}
	gone := works(o.Had, func(c *Claim) bool { return !claims[idOf(c)] })
	stay := works(o.Kept, func(*Claim) bool { return true })
	now := works(f, func(c *Claim) bool { return !claims[idOf(c)] })

	// Ids that were lost are given again, so an engine may have had the same in
	// hand twice: the latest run is that of the newest claim. Nobody had
	// any of the other server's before it was reached.
	runs := slices.Clone(h.Runs)
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(b.Start, a.Start) })
	for _, r := range runs {
		w := workOf(&r)
		switch {
		case r.Start >= o.At && now[w] > 0:
			now[w]--
			after.Runs = append(after.Runs, r)
		case gone[w] > 0:
			gone[w]--
			lost = append(lost, r)
			before.Runs = append(before.Runs, r)
		case stay[w] > 0:
			stay[w]--
			before.Runs, after.Runs = append(before.Runs, r), append(after.Runs, r)
		default:
			after.Runs = append(after.Runs, r)
		}
	}
	return before, after, lost
}

// keys are the names of jobs by their ids.
func keys(f *Facts) map[int64]string {
	all := make(map[int64]string, len(f.Jobs))
	for i := range f.Jobs {
		all[f.Jobs[i].ID] = f.Jobs[i].Key
	}
	return all
}

// left leaves out the engines of which it was lost that they left.
func (o *Failover) left(clean []int64) []int64 {
	had, kept := set(o.Had.Roster), set(o.Kept.Roster)
	return slices.DeleteFunc(slices.Clone(clean), func(token int64) bool { return kept[token] && !had[token] })
}

// leftBefore leaves out the engines that stood in both rosters, and left later.
func (o *Failover) leftBefore(clean []int64) []int64 {
	had, kept := set(o.Had.Roster), set(o.Kept.Roster)
	return slices.DeleteFunc(slices.Clone(clean), func(token int64) bool { return kept[token] && had[token] })
}

// prefix checks that the other server began with nothing that the first one
// did not have.
func (o *Failover) prefix(c *checker) {
	had := keys(o.Had)
	for i := range o.Kept.Jobs {
		if j := &o.Kept.Jobs[i]; had[j.ID] != j.Key {
			c.report.broken(RuleKept, j.ID, "the other server began with it as %q; the one that failed had %q", j.Key, had[j.ID])
		}
	}
	claims := map[claimID]bool{}
	for i := range o.Had.Claims {
		claims[idOf(&o.Had.Claims[i])] = true
	}
	for i := range o.Kept.Claims {
		if k := &o.Kept.Claims[i]; len(k.Positions) > 0 && !claims[idOf(k)] { // a rebased log begins with claims of nothing
			c.report.broken(RuleKept, 0, "the other server began with claim %d/%d of engine %d, which the one that failed had not", k.Lane, k.N, k.Engine)
		}
	}
	outcomes := outcomes(o.Had)
	for i := range o.Kept.Executions {
		if x := &o.Kept.Executions[i]; outcomes[x.Pos] != x.Outcome {
			c.report.broken(RuleKept, x.Job, "the other server began with entry %d as %s; on the one that failed it was %q", x.Pos, x.Outcome, outcomes[x.Pos])
		}
	}
}

func outcomes(f *Facts) map[int64]string {
	all := make(map[int64]string, len(f.Executions))
	for i := range f.Executions {
		all[f.Executions[i].Pos] = f.Executions[i].Outcome
	}
	return all
}

// cross checks that an engine whose claim was lost soon learns of that: its
// runs may go on beside those of whoever claimed the jobs anew, but not for
// longer than those of an engine that is cut off.
func (o *Failover) cross(c *checker, after, lost []Run) {
	kept := keys(o.Kept)
	later := map[int64][]*Run{}
	for i := range after {
		if r := &after[i]; r.Start >= o.At {
			later[r.Job] = append(later[r.Job], r)
		}
	}
	for i := range lost {
		a := &lost[i]
		if _, same := kept[a.Job]; !same {
			continue // its id is another job's by now
		}
		end := c.end(a)
		for _, b := range later[a.Job] {
			switch {
			case end <= b.Start:
			case end <= b.Start.Add(c.opt.Bound):
				c.report.excuse(FailsOver, 1)
			default:
				c.report.Doubled++
				c.report.broken(RuleOverlap, a.Job, "%s, whose claim was lost in the failover, went on for longer than the bound when it started on %s",
					c.process(a), c.process(b))
			}
		}
	}
}

// undone counts what was lost.
func (o *Failover) undone(lost []Run) Undone {
	return Undone{
		Jobs:     len(o.Had.Jobs) - len(o.Kept.Jobs),
		Claims:   len(o.Had.Claims) - len(o.Kept.Claims),
		Outcomes: len(o.Had.Executions) - len(o.Kept.Executions),
		Runs:     len(lost),
	}
}
