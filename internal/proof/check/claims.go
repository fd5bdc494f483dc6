package check

import (
	"cmp"
	"slices"
)

// taking is one position of one claim.
type taking struct {
	pos   int64
	claim int32
}

// takings lists what the claims took, by position.
func takings(claims []Claim) []taking {
	n := 0
	for i := range claims {
		n += len(claims[i].Positions)
	}
	all := make([]taking, 0, n)
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
