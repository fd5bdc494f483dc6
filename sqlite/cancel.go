package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Canceller = (*Store)(nil)

const (
	anyCancelledSQL = `select 1 from stint_cancellations limit 1`
	cancelledSQL    = `select 1 from stint_cancellations where job = ?`
	whySQL          = `select why from stint_cancellations where job = ?`
	clearSQL        = `delete from stint_cancellations where job = ?`

	// The first marker of a job stands, with its reason.
	markSQL = `insert into stint_cancellations (job, at, why) values (?, ?, ?) on conflict do nothing`

	cancellingSQL = `
	select job from stint_cancellations where job in (select value from json_each(?)) order by job`

	// What only has a marker, which somebody set by himself: jobs that wait,
	// jobs that had ended, and what is no job.
	markedWaitingSQL = `
	select w.job from stint_cancellations m cross join stint_waiting w on w.job = m.job order by w.job limit ?`
	tooLateSQL = `
	delete from stint_cancellations
	where exists (` + finalOfSQL + `) or not exists (` + jobOfSQL + `)`
	jobOfSQL   = `select 1 from stint_entries e where e.pos = stint_cancellations.job and e.job is null`
	finalOfSQL = `
	select 1 from stint_executions x where x.pos = stint_cancellations.job and x.job is null and x.final = 1
	union all
	select 1 from stint_executions x where x.job = stint_cancellations.job and x.final = 1`
	anyLeftSQL = `
	select 1 from stint_cancellations
	where exists (select 1 from stint_waiting w where w.job = stint_cancellations.job)
	or exists (` + finalOfSQL + `) or not exists (` + jobOfSQL + `)`

	stateSQL = `select state from stint_jobs where id = ?`

	finalSQL = `
	select outcome from stint_executions where pos = ?1 and job is null and final = 1
	union all
	select outcome from stint_executions where job = ?1 and final = 1`
)

// Cancel implements [stint.Canceller]. The marker and the look where the job
// is are one transaction, beside which nobody promotes, claims or records.
func (s *Store) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.Cancellation, error) {
	var answers map[stint.ID]stint.Cancellation
	why = stint.CleanText(why, 1<<10)
	err := s.write(ctx, func(c *conn) (wake bool, err error) {
		answers = make(map[stint.ID]stint.Cancellation, len(ids))
		for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
			if answers[id], err = c.cancel(id, why); err != nil {
				return false, fmt.Errorf("job %d: %w", id, err)
			}
		}
		return true, nil
	})
	if err != nil {
		return nil, fmt.Errorf("cancel %d jobs: %w", len(ids), err)
	}
	return answers, nil
}

func (c *conn) cancel(id stint.ID, why string) (stint.Cancellation, error) {
	state := stint.State("")
	err := c.query(stateSQL, []any{int64(id)}, func(q *stmt) error {
		state = stint.State(q.ColumnText(0))
		return nil
	})
	if err != nil || state == "" {
		return stint.CancelOfNothing, err
	}
	final := stint.Outcome(0)
	err = c.query(finalSQL, []any{int64(id)}, func(q *stmt) error {
		final = stint.Outcome(q.ColumnInt(0))
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case final == stint.OutcomeCancelled:
		return stint.CancelledNow, nil
	case final != 0:
		return stint.CancelTooLate, nil
	}
	if _, err := c.exec(markSQL, int64(id), micro(time.Now()), orNil(why)); err != nil {
		return "", err
	}
	if state == stint.Running {
		return stint.CancelAsked, nil
	}
	_, err = c.cancelWaiting(id)
	return stint.CancelledNow, err
}

// Cancelling implements [stint.Canceller].
func (s *Store) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	var list []stint.ID
	err := s.read(ctx, func(c *conn) error {
		list = nil
		return c.query(cancellingSQL, []any{arrayOf(ids)}, func(q *stmt) error {
			list = append(list, stint.ID(q.ColumnInt64(0)))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("look for cancelled jobs: %w", err)
	}
	return list, nil
}

// cancelMarked does what Cancel would have done for markers that somebody set
// by himself: it ends up to limit jobs that wait, and forgets what came too
// late.
func (c *conn) cancelMarked(limit int) error {
	if cancels, err := c.found(anyCancelledSQL); err != nil || !cancels {
		return err
	}
	if _, err := c.exec(tooLateSQL); err != nil {
		return err
	}
	var marked []stint.ID
	err := c.query(markedWaitingSQL, []any{limit}, func(q *stmt) error {
		marked = append(marked, stint.ID(q.ColumnInt64(0)))
		return nil
	})
	for _, id := range marked {
		if err == nil {
			_, err = c.cancelWaiting(id)
		}
	}
	return err
}

const (
	waitOfSQL = `
	select ` + waitColumns + ` from stint_waiting where job = ?`

	// What was ready before it waits has been tried.
	triedSQL = `select 1 from stint_executions where pos = ?1 or job = ?1`
)

// cancelWaiting ends a job whose marker is set, if it waits. One that was
// never ready has its contents in the lane that nobody claims: there its only
// execution stands. Another gets an entry of its own there, behind its earlier
// attempts.
func (c *conn) cancelWaiting(id stint.ID) (ended bool, err error) {
	var w newWait
	err = c.query(waitOfSQL, []any{int64(id)}, func(q *stmt) error {
		w = scanWait(q)
		return nil
	})
	if err != nil || w.job == 0 {
		return false, err
	}
	if _, err := c.exec(promotedSQL, w.job); err != nil {
		return false, err
	}
	now := time.Now()
	pos := w.job
	tried, err := c.found(triedSQL, w.job)
	if err == nil && tried {
		pos, err = c.append(&newEntry{
			lane: stint.NoLane, created: micro(now), job: w.job, body: w.body,
			attempt: w.attempt, priority: w.priority, losses: w.losses, suspect: w.suspect, queue: w.queue, kind: w.kind,
		})
	}
	if err != nil {
		return false, err
	}
	x := stint.Execution{
		Pos: stint.Position(pos), Job: id, Attempt: w.attempt, Ended: now, Outcome: stint.OutcomeCancelled, Final: true,
	}
	r := recorder{conn: c, now: now, cancels: true}
	return r.record(&x)
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}
