package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Canceller = (*Store)(nil)

const (
	anyCancelledSQL = `select 1 from stint_cancellations limit 1`
	cancelledSQL    = `select 1 from stint_cancellations where job = ?`
	cancelledInSQL  = `select 1 from stint_cancellations where job in (?, ?)` // it, or its flow or what called it
	whySQL          = `select why, at from stint_cancellations where job = ?`
	clearSQL        = `delete from stint_cancellations where job = ?`

	// What is cancelled with its flow, or with the job that called it, and is not marked yet.
	whyParentSQL = `
	select ` + whyWith + `, k.at from stint_entries e cross join stint_cancellations k on k.job = e.flow where e.pos = ?`

	// What is said of the jobs of a flow that is cancelled, or of what a job has called that is.
	whyWith = `
	case when exists (select 1 from stint_flows f where f.flow = k.job) then 'its flow ' || k.job || ' was cancelled' else 'job ' || k.job || ', which called it, was cancelled' end
	|| ifnull(': ' || nullif(k.why, ''), '')`

	// The first marker of a job stands, with its reason.
	markSQL = `insert into stint_cancellations (job, at, why) values (?, ?, ?) on conflict do nothing`

	// What has only a marker, set by another program: jobs that wait, jobs that are
	// ready, jobs that had ended, and what is no job.
	markedSQL = `
	select m.job from stint_cancellations m
	where exists (` + waitsSQL + `) or exists (` + readySQL + `) order by m.job limit ?`
	waitsSQL = `select 1 from stint_waiting w where w.job = m.job and not exists (select 1 from stint_flows f where f.flow = w.job)`
	readySQL = `
	select 1 from stint_entries e
	where e.pos in (select m.job union all select l.pos from stint_entries l where l.job = m.job) and ` + unclaimed + `
	`
	tooLateSQL = `
	delete from stint_cancellations
	where exists (` + finalOfSQL + `) or not exists (` + jobOfSQL + `)`
	jobOfSQL   = `select 1 from stint_entries e where e.pos = stint_cancellations.job and e.job is null`
	finalOfSQL = `
	select 1 from stint_executions x where x.pos = stint_cancellations.job and x.job is null and x.final = 1
	union all
	select 1 from stint_executions x where x.job = stint_cancellations.job and x.final = 1`
	anyLeftSQL = `
	select 1 from stint_notes
	union all
	select 1 from (` + cancelledFlowsSQL + `)
	union all
	select 1 from stint_cancellations
	where exists (` + finalOfSQL + `) or not exists (` + jobOfSQL + `)
	union all
	select 1 from stint_cancellations m where exists (` + waitsSQL + `) or exists (` + readySQL + `)`

	stateSQL = `select state from stint_jobs where id = ?`

	finalSQL = `
	select outcome from stint_executions where pos = ?1 and job is null and final = 1
	union all
	select outcome from stint_executions where job = ?1 and final = 1`
)

// cancellingSQL are those of some jobs that are cancelled, themselves or with their flow or what called them, and have not ended.
var cancellingSQL = `
	select value from json_each(?1)
	where exists (select 1 from stint_cancellations k where k.job = value)
	   or exists (select 1 from stint_entries e cross join stint_cancellations k on k.job = e.flow where e.pos = value) and ` +
	fmt.Sprintf(outcomeOf, "value") + ` is null
	order by value`

// Cancel implements [store.Canceller]. The marker and the look where the job
// is are one transaction, while which no engine promotes, claims or records.
func (s *Store) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	why = valid.CleanText(why, 1<<10)
	answers, err := writing(ctx, s, fmt.Sprintf("cancel %d jobs", len(ids)), func(c *conn) (map[stint.ID]stint.CancelStatus, bool, error) {
		answers, err := eachOnce(ids, func(id stint.ID) (stint.CancelStatus, error) { return c.cancel(id, why) })
		return answers, true, err
	})
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		s.waits.Nudge(id)
	}
	return answers, nil
}

// eachOnce asks about each of the jobs once, by rising ID.
func eachOnce[V any](ids []stint.ID, ask func(id stint.ID) (V, error)) (map[stint.ID]V, error) {
	answers := make(map[stint.ID]V, len(ids))
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		var err error
		if answers[id], err = ask(id); err != nil {
			return nil, fmt.Errorf("job %d: %w", id, err)
		}
	}
	return answers, nil
}

func (c *conn) cancel(id stint.ID, why string) (stint.CancelStatus, error) {
	state, err := oneRow(c, firstText[stint.State], stateSQL, int64(id))
	if err != nil || state == "" {
		return stint.CancelNotFound, err
	}
	final, err := oneRow(c, firstNumber[stint.Outcome], finalSQL, int64(id))
	switch {
	case err != nil:
		return "", err
	case final == stint.OutcomeCancelled, final == stint.OutcomeSkipped:
		return stint.CancelledNow, nil
	case final != 0:
		return stint.CancelTooLate, nil
	}
	if _, err := c.exec(markSQL, int64(id), micro(time.Now()), orNil(why)); err != nil {
		return "", err
	}
	if err := c.cancelCalls(); err != nil {
		return "", err
	}
	requested := state == stint.Running
	if state == stint.Blocked || state == stint.Cancelled { // which a flow is that was cancelled before
		if requested, err = c.found(isFlowSQL, int64(id)); err != nil {
			return "", err
		}
	}
	if requested {
		return stint.CancelRequested, nil
	}
	return stint.CancelledNow, c.endMarked(id)
}

// Cancelling implements [store.Canceller].
func (s *Store) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	return collect(ctx, s, "look for cancelled jobs", cancellingSQL, []any{arrayOf(ids)}, firstNumber[stint.ID])
}

// cancelMarked does what Cancel would have done for markers that another program
// set: it ends up to limit jobs that no engine has, and deletes markers that came too late.
func (c *conn) cancelMarked(limit int) error {
	if cancels, err := c.found(anyCancelledSQL); err != nil || !cancels {
		return err
	}
	if _, err := c.exec(tooLateSQL); err != nil {
		return err
	}
	if err := c.cancelFlows(limit); err != nil {
		return err
	}
	if err := c.cancelCalls(); err != nil {
		return err
	}
	marked, err := allRows(c, firstNumber[stint.ID], markedSQL, limit)
	for _, id := range marked {
		if err == nil {
			err = c.endMarked(id)
		}
	}
	return err
}

const (
	// lateFlowsSQL are flows whose time is over.
	lateFlowsSQL = `select flow from stint_flows where deadline <= ? order by deadline, flow limit ?`

	seenToSQL = `update stint_flows set deadline = null where flow = ?`
)

// cancelLateFlows marks flows whose time is over as cancelled, up to limit, and reports whether there were any.
func (c *conn) cancelLateFlows(limit int) (bool, error) {
	now := micro(time.Now())
	late, err := allRows(c, firstNumber[int64], lateFlowsSQL, now, max(0, limit))
	for _, flow := range late {
		if err != nil {
			break
		}
		if _, err = c.exec(seenToSQL, flow); err != nil {
			break
		}
		var how stint.Outcome
		if how, err = oneRow(c, firstNumber[stint.Outcome], endOfSQL, flow); err == nil && how == 0 {
			_, err = c.exec(markSQL, flow, now, "it took longer than its timeout")
		}
	}
	return len(late) > 0, err
}

const (
	waitOfSQL = `
	select ` + waitColumns + ` from stint_waiting where job = ?`

	// A flow ends when its jobs have.
	waitOfJobSQL = waitOfSQL + ` and not exists (select 1 from stint_flows f where f.flow = job)`

	// What is ready and was not claimed goes to the lane that no engine claims: so
	// no claim finds it, and its final execution stands at it.
	takeReadySQL = `
	update stint_entries as e set lane = -1
	where e.pos in (select ?1 union all select l.pos from stint_entries l where l.job = ?1) and ` + unclaimed + `
	returning pos, attempt, (select m.flow is not null from stint_entries m where m.pos = ?1)`
	unclaimed = `e.lane >= 0
	and e.pos > ifnull((select f.frontier from stint_claims f where f.lane = e.lane order by f.n desc limit 1), 0)`

	// What was ready before it waits has been tried.
	triedSQL = `
	select exists (select 1 from stint_executions where pos = ?1 or job = ?1), flow is not null from stint_entries where pos = ?1`
)

// endMarked ends a job whose marker is set, if no engine has it: if it waits, or is ready
// and was not claimed.
func (c *conn) endMarked(id stint.ID) error {
	w, err := c.takeWait(waitOfJobSQL, int64(id))
	if err != nil {
		return err
	}
	if w.job != 0 {
		return c.cancelWaiting(w)
	}
	type entry struct {
		pos     store.Position
		attempt int
		flow    bool
	}
	e, err := oneRow(c, func(q *stmt) entry {
		return entry{store.Position(q.ColumnInt64(0)), q.ColumnInt(1), q.ColumnInt64(2) != 0}
	}, takeReadySQL, int64(id))
	if err != nil || e.pos == 0 {
		return err
	}
	return c.cancelAt(id, e.pos, e.attempt, e.flow)
}

// cancelWaiting ends a job that waited. One that was never ready has its contents in the
// lane that no engine claims: there its only execution stands. Another gets an
// entry of its own there, after its earlier attempts.
func (c *conn) cancelWaiting(w newWait) error {
	pos, tried, flow := w.job, false, false
	err := c.query(triedSQL, []any{w.job}, func(q *stmt) error { return q.scan(&tried, &flow) })
	if err == nil && tried {
		pos, err = c.append(w.entry(store.NoLane, micro(time.Now())))
	}
	if err != nil {
		return err
	}
	return c.cancelAt(stint.ID(w.job), store.Position(pos), w.attempt, flow)
}

// cancelAt records at an entry that no engine claims that its job was cancelled.
func (c *conn) cancelAt(id stint.ID, pos store.Position, attempt int, flow bool) error {
	now := time.Now()
	r := recorder{conn: c, now: now, cancels: true}
	_, err := r.record(&store.Completion{Pos: pos, Job: id, Attempt: attempt, Ended: now, Outcome: stint.OutcomeCancelled, Final: true, Flow: flow})
	return err
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
