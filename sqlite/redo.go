package sqlite

import (
	"fmt"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const (
	// aroundSQL is the flow that a job belongs to, and whether that is open, or exists at all.
	aroundSQL = `
	select flow, exists (select 1 from stint_waiting where job = flow), exists (select 1 from stint_flows f where f.flow = e.flow)
	from stint_entries e where pos = ? and flow is not null`

	// redoneSQL is what does a job again in an open flow, or is one.
	redoneSQL = `
	select e.pos from stint_entries e indexed by stint_entries_recovered
	where e.recovered in (?1, ?2)
	  and (e.recovered = ?2 and e.flow = ?3
	       or exists (select 1 from stint_waiting w where w.job in (e.pos, e.flow) and exists (select 1 from stint_flows f where f.flow = w.job)))
	order by e.recovered = ?1 desc, e.pos desc limit 1`

	// withinSQL are the jobs of a flow, and of the flows within it, without those that others have taken the place of.
	withinSQL = `
	with recursive inside(pos, flow) as (
	  select m.pos, m.flow from stint_entries m where m.flow = ?1 and ` + notReplaced + `
	  union
	  select m.pos, m.flow from inside i cross join stint_flows f on f.flow = i.pos cross join stint_entries m on m.flow = f.flow
	  where ` + notReplaced + `
	)
	select i.pos, i.flow, %s from inside i`
	notReplaced = `not exists (select 1 from stint_entries r indexed by stint_entries_recovered where r.recovered = m.pos and r.flow = m.flow)`

	dependOnSQL = `select child from stint_needs indexed by stint_needs_parent where parent = ?`

	// What is copied of a flow. What it needs of those that are not done again, it needs still.
	namesOfSQL = `select name, job from stint_nodes where flow = ?`
	needsOfSQL = `select parent, wants from stint_needs where child = ?`

	takeNameSQL = `update stint_nodes set job = ?1 where job = ?2 and flow = ?3`
	bendSQL     = `update stint_needs indexed by stint_needs_parent set parent = ?1 where parent = ?2`
	waitOnSQL   = `
	update stint_waiting set watch = ?1, verdict = 0, cause = null
	where verdict is not null and (job = ?3 or job in (select child from stint_needs indexed by stint_needs_parent where parent = ?2))`
)

var (
	membersWithinSQL = fmt.Sprintf(withinSQL, fmt.Sprintf(outcomeOf, "i.pos"))
	endOfSQL         = "select " + fmt.Sprintf(outcomeOf, "?1")
)

// redoing is what is done again when an ended job is.
type redoing struct {
	now, due int64
	target   int64   // the job, or the outermost flow of it that has ended
	isFlow   bool    // that is a flow
	into     int64   // the open flow in which that is; 0 for none
	jobs     []int64 // with the target, in order

	anew map[int64]int64 // what does each of them again
}

// toRedo says what is done again when a job is. Of one whose flow has ended this is what did not complete of that flow, and the
// job with what depends on it.
func (c *conn) toRedo(job int64, all bool) (*redoing, error) {
	r := &redoing{target: job, anew: map[int64]int64{}}
	type around struct {
		flow         int64
		open, exists bool
	}
	for {
		a, err := oneRow(c, func(q *stmt) around { return around{q.ColumnInt64(0), q.ColumnInt64(1) != 0, q.ColumnInt64(2) != 0} }, aroundSQL, r.target)
		if err != nil {
			return nil, err
		}
		if a.open {
			r.into = a.flow
		}
		if a.open || !a.exists {
			break
		}
		r.target = a.flow
	}
	var err error
	if r.isFlow, err = c.found(isFlowSQL, r.target); err != nil || !r.isFlow {
		r.jobs = []int64{job}
		return r, err
	}
	if job == r.target && !all { // of one that completed there is nothing else to do
		how, err := oneRow(c, firstNumber[stint.Outcome], endOfSQL, job)
		if err != nil {
			return nil, err
		}
		all = how == stint.OutcomeCompleted
	}
	members, err := c.within(r.target)
	if err != nil {
		return nil, err
	}
	named := map[int64]member{}
	if job != r.target {
		if named, err = c.within(job); err != nil {
			return nil, err
		}
		named[job] = member{}
	}
	again := map[int64]bool{} // whether what depends on it is done again whatever came of that
	var queue []int64
	add := func(id int64, whatever bool) {
		if was, found := again[id]; !found || whatever && !was {
			again[id], queue = whatever, append(queue, id)
		}
	}
	for id, m := range members {
		if _, is := named[id]; all || is {
			add(id, true)
		} else if m.outcome != stint.OutcomeCompleted && m.outcome != stint.OutcomeSkipped {
			add(id, false)
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		if flow := members[id].flow; flow != r.target {
			if _, inside := members[flow]; inside {
				add(flow, again[id])
			}
		}
		children, err := allRows(c, firstNumber[int64], dependOnSQL, id)
		if err != nil {
			return nil, err
		}
		for _, child := range children {
			if m, inside := members[child]; inside && (again[id] || m.outcome != stint.OutcomeCompleted) {
				add(child, again[id])
			}
		}
	}
	r.jobs = []int64{r.target}
	for id := range again {
		r.jobs = append(r.jobs, id)
	}
	slices.Sort(r.jobs)
	return r, nil
}

// instead is what took the place of a job, or of the innermost flow around it of which that is so.
func (c *conn) instead(job int64) (before stint.ID, err error) {
	for before == 0 && job != 0 && err == nil {
		if before, err = oneRow(c, firstNumber[stint.ID], recoveredSQL, job); err == nil && before == 0 {
			job, err = oneRow(c, firstNumber[int64], flowOfSQL, job)
		}
	}
	return before, err
}

// member is a job in a flow that has ended.
type member struct {
	flow    int64
	outcome stint.Outcome
}

// within are the jobs of a flow, and of the flows within it, as they ended.
func (c *conn) within(flow int64) (map[int64]member, error) {
	all := map[int64]member{}
	err := c.query(membersWithinSQL, []any{flow}, func(q *stmt) error {
		all[q.ColumnInt64(0)] = member{q.ColumnInt64(1), stint.Outcome(q.ColumnInt(2))}
		return nil
	})
	return all, err
}

// copy does one job again, as a new one with a copy of its contents.
func (c *conn) copy(r *redoing, id int64) error {
	var (
		contents int64
		flow     int64
		w        = newWait{due: r.due, why: stint.Scheduled, attempt: 1}
		tags     []string
	)
	err := c.query(contentsSQL, []any{id}, func(q *stmt) (err error) {
		contents, w.queue, w.priority, w.kind, w.limits = q.ColumnInt64(0), q.ColumnText(1), q.ColumnInt(2), q.ColumnText(3), q.words(7)
		flow = q.ColumnInt64(8)
		tags, err = list[string](q, 4)
		return err
	})
	if err != nil {
		return err
	}
	switch {
	case id == r.target:
		flow = r.into
	case r.anew[flow] != 0:
		flow = r.anew[flow]
	}
	if w.needs = r.isFlow || flow != 0; w.needs {
		w.why = stint.Blocked
	}
	lane := normalLane(w.queue, w.priority, w.limits)
	if w.needs || r.due > 0 {
		lane = store.NoLane
	}
	if _, err := c.exec(recoverSQL, int64(lane), r.now, nilInt(r.due), id, contents, nilInt(flow)); err != nil {
		return err
	}
	anew := c.db.LastInsertRowID()
	r.anew[id] = anew
	if _, err := c.exec(takeStepsSQL, anew, id); err != nil {
		return err
	}
	if _, err := c.exec(takeSignalsSQL, anew, id); err != nil {
		return err
	}
	if w.limits != "" {
		if err := c.goFirst(anew, stint.ID(id), &w, lane); err != nil {
			return err
		}
	}
	for _, tag := range tags {
		if _, err := c.exec(tagSQL, tag, anew); err != nil {
			return err
		}
	}
	if lane == store.NoLane {
		w.job, w.body = anew, anew
		_, err = c.exec(waitSQL, w.args()...)
	}
	return err
}

// connect has the new jobs of a flow need what the old ones needed: of two that are done again the new one needs the new.
func (c *conn) connect(r *redoing) error {
	newest := map[int64]int64{} // by job or flow
	for _, id := range r.jobs {
		anew := r.anew[id]
		type edge struct {
			parent int64
			wants  int
		}
		needs, err := allRows(c, func(q *stmt) edge { return edge{q.ColumnInt64(0), q.ColumnInt(1)} }, needsOfSQL, id)
		if err != nil {
			return err
		}
		for _, n := range needs {
			parent := r.newOf(n.parent)
			if _, err := c.exec(addNeedSQL, anew, parent, n.wants); err != nil {
				return err
			}
			newest[anew] = max(newest[anew], parent)
		}
		flow, err := oneRow(c, firstNumber[int64], flowOfSQL, anew)
		if err != nil {
			return err
		}
		newest[flow] = max(newest[flow], anew)
		if isFlow, err := c.found(isFlowSQL, id); err != nil {
			return err
		} else if !isFlow {
			continue
		}
		if _, err := c.exec(addFlowSQL, anew); err != nil {
			return err
		}
		type node struct {
			name string
			job  int64
		}
		names, err := allRows(c, func(q *stmt) node { return node{q.ColumnText(0), q.ColumnInt64(1)} }, namesOfSQL, id)
		if err != nil {
			return err
		}
		for _, n := range names {
			if _, err := c.exec(addNodeSQL, anew, n.name, r.newOf(n.job)); err != nil {
				return err
			}
		}
	}
	for _, id := range r.jobs {
		anew := r.anew[id]
		if _, err := c.exec(newestSQL, anew, nilInt(newest[anew])); err != nil {
			return err
		}
		if err := c.note(anew); err != nil {
			return err
		}
	}
	if r.into == 0 {
		return nil
	}
	return c.takePlace(r.into, r.target, r.anew[r.target])
}

// newOf is what does a job again, or the job.
func (r *redoing) newOf(job int64) int64 {
	if anew := r.anew[job]; anew != 0 {
		return anew
	}
	return job
}

// takePlace has a new job take the place of the old one in their flow, which is open: it has its name, and
// those that need the old one need it. It is the newest of all, so what they need is judged again.
func (c *conn) takePlace(flow, old, anew int64) error {
	if _, err := c.exec(takeNameSQL, anew, old, flow); err != nil {
		return err
	}
	if _, err := c.exec(waitOnSQL, anew, old, flow); err != nil {
		return err
	}
	if _, err := c.exec(membersMarkedSQL, flow, nil); err != nil { // if the flow is being cancelled, so is the new one
		return err
	}
	_, err := c.exec(bendSQL, anew, old)
	return err
}
