package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.FlowReader = (*Store)(nil)

const (
	// outcomeOf is the outcome that a job ended with, null before. One that was deleted counts as
	// cancelled: it can no longer do what another waits for.
	outcomeOf = `coalesce(
	  (select x.outcome from stint_executions x where x.pos = %[1]s and x.job is null and x.final = 1),
	  (select x.outcome from stint_executions x where x.job = %[1]s and x.final = 1),
	  case when not exists (select 1 from stint_entries o where o.pos = %[1]s) then 6 end)`

	noteSQL = `insert into stint_notes (job, after) values (?, ?) on conflict (job) do update set after = excluded.after`
	// noteEndSQL notes that a job has ended, if somebody waits for that. There is one writer at a time, so nobody begins to meanwhile.
	noteEndSQL = `
	insert into stint_notes (job, after) select ?1, 0
	where exists (select 1 from stint_waiting indexed by stint_waiting_watch where watch = ?1) or exists (` + calledSQL + `)
	on conflict (job) do update set after = 0`

	nextNoteSQL = `select job, after from stint_notes order by job limit 1`
	lookedSQL   = `delete from stint_notes where job = ?`
	watchersSQL = `select job from stint_waiting indexed by stint_waiting_watch where watch = ? and job > ? order by job limit ?`

	needsOthersSQL = `select 1 from stint_waiting where job = ? and verdict is not null`
	isFlowSQL      = `select 1 from stint_flows where flow = ?`
	flowOfSQL      = `select flow from stint_entries where pos = ?`

	blockedSQL = `
	select w.job, ifnull(w.watch, 0), w.verdict, ifnull(w.cause, 0), exists (select 1 from stint_flows f where f.flow = w.job),
	       ifnull(b.due, 0)
	from stint_waiting w join stint_entries b on b.pos = w.job where w.job = ? and w.verdict is not null`

	watchSQL  = `update stint_waiting set watch = ?2, verdict = ?3, cause = ?4 where job = ?1`
	notYetSQL = `update stint_waiting set why = 'scheduled', due = ?2, watch = null, verdict = null, cause = null where job = ?1`
)

var (
	parentsSQL = `
	select n.parent, n.wants, ` + fmt.Sprintf(outcomeOf, "n.parent") + ` from stint_needs n
	where n.child = ? and n.parent <= ? order by n.parent desc limit ?`

	// The jobs of a flow. Of one that another does again in the flow, that one counts.
	membersSQL = `
	select e.pos, 0, case when exists (select 1 from stint_entries r indexed by stint_entries_recovered where r.recovered = e.pos and r.flow = e.flow) then 1
	  else ` + fmt.Sprintf(outcomeOf, "e.pos") + ` end from stint_entries e
	where e.flow = ? and e.pos <= ? order by e.pos desc limit ?`

	whatBecameSQL = `select ifnull((select kind from stint_entries where pos = ?1), 'deleted'), ` + fmt.Sprintf(outcomeOf, "?1")
)

const (
	// mostParents bounds how many of those that one job needs are looked at in one go.
	mostParents = 2000

	// lookedSoon is of about how many jobs it is decided when others are recorded; what is left is for Promote.
	lookedSoon = 100
)

// note has a promotion look at a job of a flow, and at those that wait for it.
func (c *conn) note(job int64) error {
	_, err := c.exec(noteSQL, job, 0)
	return err
}

// lookAtNotes decides about jobs that wait for others of which something has changed, about so
// many as limit says, and returns how many began.
func (c *conn) lookAtNotes(limit int) (begun int, err error) {
	type note struct{ job, after int64 }
	for err == nil && limit > 0 {
		var n note
		n, err = oneRow(c, func(q *stmt) note { return note{q.ColumnInt64(0), q.ColumnInt64(1)} }, nextNoteSQL)
		if err != nil || n.job == 0 {
			break
		}
		if _, err = c.exec(lookedSQL, n.job); err != nil {
			break
		}
		var look []int64
		if look, err = allRows(c, firstNumber[int64], watchersSQL, n.job, n.after, limit); err != nil {
			break
		}
		if len(look) == limit {
			if _, err = c.exec(noteSQL, n.job, look[limit-1]); err != nil {
				break
			}
		}
		if n.after == 0 {
			look = append(look, n.job)
			if err = c.tellCallers(n.job, micro(time.Now())); err != nil {
				break
			}
		}
		limit -= 1 + len(look)
		for _, job := range look {
			began, wrong := c.decide(job)
			if err = wrong; err != nil {
				break
			}
			begun += int(flag(began))
		}
	}
	return begun, err
}

// blocked is a job that waits for others, or a flow.
type blocked struct {
	job, watch, cause int64
	verdict           int // see waiting
	flow              bool
	due               int64 // of the job, 0 for none
}

// decide looks whether what a job needs has ended, and then has it begin, skips it or cancels it, or ends the
// flow that it is. It reports whether the job began.
func (c *conn) decide(job int64) (began bool, err error) {
	b, err := oneRow(c, func(q *stmt) blocked {
		return blocked{q.ColumnInt64(0), q.ColumnInt64(1), q.ColumnInt64(3), q.ColumnInt(2), q.ColumnInt64(4) != 0, q.ColumnInt64(5)}
	}, blockedSQL, job)
	if err != nil || b.job == 0 {
		return false, err
	}
	done, err := c.judge(&b)
	switch {
	case err != nil:
		return false, err
	case !done:
		_, err = c.exec(watchSQL, job, b.watch, b.verdict, nilInt(b.cause))
		return false, err
	case b.flow || b.verdict > 0:
		return false, c.endBlocked(&b)
	case b.due > micro(time.Now()):
		_, err = c.exec(notYetSQL, job, b.due)
		return true, err
	}
	return true, c.runNow(stint.ID(job), micro(time.Now()))
}

var errEnough = errors.New("enough")

// judge looks at those that a job needs, the newest first, up to one that has not ended: that is watched.
// It reports whether all have. The verdict that counts is the highest, so the order in which they ended does not matter.
func (c *conn) judge(b *blocked) (done bool, err error) {
	text := parentsSQL
	if b.flow {
		text = membersSQL
	}
	seen := 0
	err = c.query(text, []any{b.job, b.watch, mostParents}, func(q *stmt) error {
		seen++
		parent := q.ColumnInt64(0)
		if q.isNull(2) {
			b.watch = parent
			return errEnough
		}
		b.watch = parent - 1
		if v := verdictOf(stint.Want(q.ColumnInt(1)), stint.Outcome(q.ColumnInt(2))); v > b.verdict {
			b.verdict, b.cause = v, parent
		}
		return nil
	})
	switch {
	case errors.Is(err, errEnough):
		return false, nil
	case err == nil && seen == mostParents:
		return false, c.note(b.job)
	}
	return err == nil, err
}

// verdictOf says what the end of a job means to one that wants something of it, or to its flow, which wants 0: 0 it is
// as it should be, 1 the other is skipped, 2 it is cancelled, or the flow has failed.
func verdictOf(wants stint.Want, outcome stint.Outcome) int {
	switch {
	case outcome == stint.OutcomeSkipped:
		return int(flag(wants != 0))
	case wants == stint.WantsEnd:
		return 0
	case wants == stint.WantsFailure:
		return int(flag(outcome == stint.OutcomeCompleted))
	case outcome == stint.OutcomeCompleted:
		return 0
	}
	return 2
}

// endBlocked ends a flow, or a job that is not to run.
func (c *conn) endBlocked(b *blocked) error {
	cancelled, err := c.found(cancelledSQL, b.job)
	if err != nil {
		return err
	}
	x := store.Completion{Pos: store.Position(b.job), Job: stint.ID(b.job), Attempt: 1, Ended: time.Now(), Final: true, Flow: true}
	switch {
	case b.flow && cancelled:
		x.Outcome = stint.OutcomeCancelled // for the reason of its marker
	case b.flow && b.verdict == 0:
		x.Outcome = stint.OutcomeCompleted
	case b.flow:
		x.Outcome, err = stint.OutcomeFailed, c.because(&x.Reason, "job %d (%s) %s", b.cause)
	case b.verdict == 1:
		x.Outcome, err = stint.OutcomeSkipped, c.because(&x.Reason, "needs job %d (%s), which %s", b.cause)
	default:
		x.Outcome, err = stint.OutcomeCancelled, c.because(&x.Reason, "needs job %d (%s), which %s", b.cause)
	}
	if err == nil {
		_, err = c.exec(promotedSQL, b.job)
	}
	if err == nil {
		r := recorder{conn: c, now: x.Ended, cancels: cancelled}
		_, err = r.record(&x)
	}
	return err
}

// because says what became of a job, for people.
func (c *conn) because(reason *string, format string, cause int64) error {
	return c.query(whatBecameSQL, []any{cause}, func(q *stmt) error {
		became := "failed"
		switch stint.Outcome(q.ColumnInt(1)) {
		case stint.OutcomeCompleted:
			became = "completed"
		case stint.OutcomeSkipped:
			became = "was skipped"
		case stint.OutcomeCancelled:
			became = "was cancelled"
		}
		*reason = fmt.Sprintf(format, cause, q.ColumnText(0), became)
		return nil
	})
}

const (
	// Flows whose jobs are to be cancelled with them, and before which job: above the watch all have ended.
	cancelledFlowsSQL = `
	select w.job, ` + whyWith + `, min(ifnull(k.down_to, w.watch + 1), w.watch + 1) from stint_cancellations k cross join stint_waiting w on w.job = k.job
	where k.down_to is not 0 and w.watch is not null and exists (select 1 from stint_flows f where f.flow = w.job)`

	// lastOfSQL finds the last of so many of a flow's jobs.
	lastOfSQL = `select pos from stint_entries where flow = ? and pos < ? order by pos desc limit 1 offset ?`

	membersMarkedSQL = `update stint_cancellations set down_to = ?2 where job = ?1`
)

var markMembersSQL = `
	insert into stint_cancellations (job, at, why)
	select e.pos, ?4, ?5 from stint_entries e
	where e.flow = ?1 and e.pos < ?2 and e.pos >= ?3 and not exists (select 1 from stint_cancellations k where k.job = e.pos)
	  and ` + fmt.Sprintf(outcomeOf, "e.pos") + ` is null`

// cancelFlows marks the jobs of flows that are being cancelled, the newest first, so that none begins because those that it
// needs have ended: up to limit of each. The flows end when these have.
func (c *conn) cancelFlows(limit int) error {
	type flow struct {
		id, below int64
		why       string
	}
	flows, err := allRows(c, func(q *stmt) flow { return flow{q.ColumnInt64(0), q.ColumnInt64(2), q.ColumnText(1)} }, cancelledFlowsSQL)
	for _, f := range flows {
		if err != nil {
			break
		}
		var last int64
		if last, err = oneRow(c, firstNumber[int64], lastOfSQL, f.id, f.below, limit-1); err == nil {
			_, err = c.exec(markMembersSQL, f.id, f.below, last, micro(time.Now()), f.why)
		}
		if err == nil {
			_, err = c.exec(membersMarkedSQL, f.id, last)
		}
		if err == nil && last == 0 {
			err = c.note(f.id)
		}
	}
	return err
}

const (
	// openFlowSQL answers 1 if there is no such flow, 2 if nothing can be added to it any more, and else 3.
	openFlowSQL = `
	select case when not exists (select 1 from stint_flows where flow = ?1) then 1
	  when exists (select 1 from stint_cancellations where job = ?1) or not exists (select 1 from stint_waiting where job = ?1) then 2 else 3 end`

	// openJobSQL answers the same of a job that calls others.
	openJobSQL = `
	select case when not exists (select 1 from stint_entries where pos = ?1) then 1
	  when exists (select 1 from stint_cancellations where job = ?1)
	    or exists (select 1 from stint_executions where pos = ?1 and job is null and final = 1)
	    or exists (select 1 from stint_executions where job = ?1 and final = 1) then 2 else 3 end`

	// needableSQL finds a job of a flow, or a flow.
	needableSQL = `
	select 1 from stint_entries e where e.pos = ?1 and e.job is null and (e.flow is not null or exists (select 1 from stint_flows where flow = ?1))`

	// isAroundSQL says whether a flow is another one, or that is within it.
	isAroundSQL = `
	with recursive around(flow) as (select ?1 union all select e.flow from around a join stint_entries e on e.pos = a.flow)
	select 1 from around where flow = ?2`

	correlationOfSQL = `select ifnull(correlation, cast(pos as text)) from stint_entries where pos = ?`

	nodeSQL = `select job from stint_nodes where flow = ? and name = ?`

	addFlowSQL = `insert into stint_flows (flow, deadline) select pos, created + timeout from stint_entries where pos = ?`
	addNodeSQL = `insert into stint_nodes (flow, name, job) values (?, ?, ?)`
	addNeedSQL = `insert into stint_needs (child, parent, wants) values (?, ?, ?) on conflict do nothing`
	newestSQL  = `update stint_waiting set watch = ?2 where job = ?1`
)

// checkMembers refuses jobs that cannot be added to a flow or that need what does not exist, before
// anything is written, and finds those that are in the flow already.
func (s *stored) checkMembers() error {
	if m := s.jobs[0].Member; m.Into != 0 {
		text, into := openFlowSQL, m.Into
		if m.Call {
			text = openJobSQL
		}
		switch open, err := s.number(text, int64(into)); {
		case err != nil:
			return err
		case open == 1 && m.Call:
			return fmt.Errorf("there is no job %d: %w", into, stint.ErrNotFound)
		case open == 2 && m.Call:
			return fmt.Errorf("job %d has ended: %w", into, stint.ErrEnded)
		case open == 1:
			return fmt.Errorf("there is no flow %d: %w", into, stint.ErrNotFound)
		case open == 2:
			return fmt.Errorf("the flow %d has ended: %w", into, stint.ErrEnded)
		}
	}
	for i := range s.jobs {
		m := s.jobs[i].Member
		if m.Into != 0 && m.Name != "" {
			id, err := s.number(nodeSQL, s.flowOf(m), m.Name)
			if err != nil {
				return err
			}
			s.receipts[i] = stint.Receipt{ID: stint.ID(id), Duplicate: id != 0}
		}
		if m.Into != 0 && s.exists(i) && s.receipts[i].ID == 0 {
			s.receipts[i].ID = stint.ID(s.flowOf(m)) // of what has no name, and is in a flow that is there, that flow
		}
		for _, need := range m.Needs {
			if need.Job == 0 || s.exists(i) {
				continue
			}
			if there, err := s.number(needableSQL, int64(need.Job)); err != nil {
				return err
			} else if there == 0 {
				return fmt.Errorf("no job of a flow has the id %d, which is needed: %w", need.Job, stint.ErrNotFound)
			}
			if around, err := s.number(isAroundSQL, int64(m.Into), int64(need.Job)); err != nil {
				return err
			} else if around != 0 {
				return valid.Invalid("needs", "a job needs the flow %d that it is in, which waits for it", need.Job)
			}
		}
	}
	return nil
}

// exists reports whether a job of a flow is not to be stored: the flow has its name, or it is within a flow
// that exists.
func (s *stored) exists(job int) bool {
	m, r := s.jobs[job].Member, &s.receipts[job]
	r.Duplicate = r.Duplicate || m.Place >= 0 && s.receipts[m.Place].Duplicate
	return r.Duplicate
}

// flowOf is the flow of a job. What comes before the job was stored.
func (s *stored) flowOf(m *stint.Member) int64 {
	if m.Place >= 0 {
		return int64(s.receipts[m.Place].ID)
	}
	return int64(m.Into)
}

// sharedCorrelation is the correlation id of the flow that is stored, or added to.
func (s *stored) sharedCorrelation() (id string, err error) {
	if s.shared == "" {
		s.shared, err = s.word(correlationOfSQL, int64(cmp.Or(s.jobs[0].Member.Into, s.receipts[0].ID)))
	}
	return s.shared, err
}

// needed is what a job needs.
func (s *stored) needed(n stint.Need) int64 {
	if n.Job != 0 {
		return int64(n.Job)
	}
	return int64(s.receipts[n.Place].ID)
}

// keepMember stores what is special of a job of a flow, and notes what its row of waiting says.
func (s *stored) keepMember(m *stint.Member, w *newWait) error {
	flow := s.flowOf(m)
	if flow != 0 {
		s.newest[flow] = w.job
	}
	if m.Root {
		s.newest[w.job] = 0
		if err := s.run(addFlowSQL, w.job); err != nil {
			return err
		}
	}
	if m.Name != "" {
		if err := s.run(addNodeSQL, flow, m.Name, w.job); err != nil {
			return err
		}
	}
	look := false // what it needs may have ended
	for _, need := range m.Needs {
		parent := s.needed(need)
		if err := s.run(addNeedSQL, w.job, parent, int(need.Wants)); err != nil {
			return err
		}
		w.watch, look = max(w.watch, parent), look || need.Job != 0 || s.receipts[need.Place].Duplicate
	}
	if w.needs = blocks(m); w.needs {
		w.why = stint.Blocked
	}
	if look {
		return s.run(noteSQL, w.job, 0)
	}
	return nil
}

// blocks reports whether a job waits for others.
func blocks(m *stint.Member) bool { return m != nil && (m.Root || len(m.Needs) > 0) }

// watchNewest has the flows watch what was stored last of them. What is empty ends.
func (s *stored) watchNewest() error {
	for flow, newest := range s.newest {
		text := newestSQL
		if newest == 0 {
			text = noteSQL
		}
		if err := s.run(text, flow, newest); err != nil {
			return err
		}
	}
	return nil
}

const neededSQL = `
	select n.parent, ifnull(e.kind, '') as kind, ifnull((select d.name from stint_nodes d where d.job = n.parent and d.flow = e.flow), '') as name, n.wants,
	  ifnull(x.outcome, y.outcome) as outcome, cast(ifnull(x.result, y.result) as text) as result
	from stint_needs n left join stint_entries e on e.pos = n.parent
	left join stint_executions x on x.pos = n.parent and x.job is null and x.final = 1
	left join stint_executions y on y.job = n.parent and y.final = 1
	where n.child = ? and n.parent > ? order by n.parent limit ?`

// Node implements [store.FlowReader].
func (s *Store) Node(ctx context.Context, flow stint.ID, name string) (stint.ID, error) {
	all, err := collect(ctx, s, fmt.Sprintf("look for %q in flow %d", name, flow), nodeSQL, []any{int64(flow), name}, firstNumber[stint.ID])
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("flow %d has no job %q: %w", flow, name, stint.ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// Needed implements [store.FlowReader].
func (s *Store) Needed(ctx context.Context, job, after stint.ID, limit int) ([]stint.NeededJob, error) {
	return collect(ctx, s, fmt.Sprintf("read what job %d needs", job), neededSQL, []any{int64(job), int64(after), max(0, limit)}, func(q *stmt) stint.NeededJob {
		return stint.NeededJob{ID: stint.ID(q.ColumnInt64(0)), Kind: q.ColumnText(1), Name: q.ColumnText(2), Wants: stint.Want(q.ColumnInt(3)),
			Outcome: stint.Outcome(q.ColumnInt(4)), Result: q.json(5)}
	})
}
