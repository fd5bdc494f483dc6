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
	then.Drained, then.Clean = false, o.left(opt.Clean, true)
	old := Compare(before, o.Had, then)

	opt.Clean, opt.replaced = o.left(opt.Clean, false), o.At
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
	r.Undone = Undone{
		Jobs:     len(o.Had.Jobs) - len(o.Kept.Jobs),
		Claims:   len(o.Had.Claims) - len(o.Kept.Claims),
		Outcomes: len(o.Had.Executions) - len(o.Kept.Executions),
		Runs:     len(lost),
	}
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
	entries := index(f.Entries, func(e *Entry) (int64, *Entry) { return e.Pos, e })
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
	claims := index(o.Kept.Claims, func(c *Claim) (claimID, bool) { return idOf(c), true })
	gone := works(o.Had, func(c *Claim) bool { return !claims[idOf(c)] })
	stay := works(o.Kept, func(*Claim) bool { return true })
	now := works(f, func(c *Claim) bool { return !claims[idOf(c)] })

	// Ids that were lost are given again, and one that snoozed has the same attempt
	// again, so an engine may have had the same in hand several times: the latest run is that of
	// the newest claim. Nobody had any of the other server's before it was reached. Of the
	// first server's the earlier claims stayed, and what was claimed last may not have begun.
	runs := slices.Clone(h.Runs)
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(b.Start, a.Start) })
	runs = slices.DeleteFunc(runs, func(r Run) bool {
		w := workOf(&r)
		if r.Start < o.At || now[w] == 0 {
			return false
		}
		now[w]--
		after.Runs = append(after.Runs, r)
		return true
	})
	for _, r := range slices.Backward(runs) {
		w := workOf(&r)
		switch {
		case stay[w] > 0:
			stay[w]--
			before.Runs, after.Runs = append(before.Runs, r), append(after.Runs, r)
		case gone[w] > 0:
			gone[w]--
			lost = append(lost, r)
			before.Runs = append(before.Runs, r)
		default:
			after.Runs = append(after.Runs, r)
		}
	}
	return before, after, lost
}

// keys are the names of jobs by their ids.
func keys(f *Facts) map[int64]string {
	return index(f.Jobs, func(j *Job) (int64, string) { return j.ID, j.Key })
}

// index maps rows by a key.
func index[T any, K comparable, V any](rows []T, of func(*T) (K, V)) map[K]V {
	all := make(map[K]V, len(rows))
	for i := range rows {
		key, value := of(&rows[i])
		all[key] = value
	}
	return all
}

// left leaves out the engines that the other server began with and that stood on
// the first one, and left later; or that had left there, which was lost.
func (o *Failover) left(clean []int64, stood bool) []int64 {
	had, kept := set(o.Had.Roster), set(o.Kept.Roster)
	return slices.DeleteFunc(slices.Clone(clean), func(token int64) bool { return kept[token] && had[token] == stood })
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
	claims := index(o.Had.Claims, func(c *Claim) (claimID, bool) { return idOf(c), true })
	for i := range o.Kept.Claims {
		if k := &o.Kept.Claims[i]; len(k.Positions) > 0 && !claims[idOf(k)] { // a rebased log begins with claims of nothing
			c.report.broken(RuleKept, 0, "the other server began with claim %d/%d of engine %d, which the one that failed had not", k.Lane, k.N, k.Engine)
		}
	}
	outcomes := index(o.Had.Executions, func(x *Execution) (int64, string) { return x.Pos, x.Outcome })
	for i := range o.Kept.Executions {
		if x := &o.Kept.Executions[i]; outcomes[x.Pos] != x.Outcome {
			c.report.broken(RuleKept, x.Job, "the other server began with entry %d as %s; on the one that failed it was %q", x.Pos, x.Outcome, outcomes[x.Pos])
		}
	}
}

// cross checks that an engine whose claim was lost soon learns of that: its
// runs may go on beside those of whoever claimed the jobs again, but not for
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
