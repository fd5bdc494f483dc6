package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Scheduler = (*Store)(nil)

const (
	// What is declared again as it was keeps its revision: nothing that was
	// computed from it is out of date.
	declareScheduleSQL = `
	insert into stint_schedules as s (name, recurrence, function, zone, job, overlap, missed, not_before, not_after, after, created, declared, declared_by)
	values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?10, ?11)
	on conflict (name) do update set
	  recurrence = excluded.recurrence, function = excluded.function, zone = excluded.zone, job = excluded.job, overlap = excluded.overlap,
	  missed = excluded.missed, not_before = excluded.not_before, not_after = excluded.not_after,
	  declared = excluded.declared, declared_by = excluded.declared_by,
	  revision = s.revision + not (` + sameTimesSQL + ` and (s.job, s.overlap, s.missed) is (excluded.job, excluded.overlap, excluded.missed)),
	  after = case when ` + sameTimesSQL + ` then s.after else max(s.after, excluded.after) end,
	  next = case when ` + sameTimesSQL + ` then s.next end,
	  ended = case when ` + sameTimesSQL + ` then s.ended end`

	sameTimesSQL = `(s.recurrence, s.zone, s.not_before, s.not_after) is (excluded.recurrence, excluded.zone, excluded.not_before, excluded.not_after)`

	// SQLite's null comes first. Two ranges of the index: what is not due is not
	// read.
	dueSchedulesSQL = `
	select ` + rows.ScheduleColumns + ` from (
	  select * from (select * from stint_schedules ` + firesSQL + ` and next is null order by name limit ?4)
	  union all
	  select * from (select * from stint_schedules ` + firesSQL + ` and next <= ?3 order by next, name limit ?4))
	order by next, name limit ?4`

	firesSQL = `where paused is null and ended is null
	  and (function is null or function in (select value from json_each(?1))) and name not in (select value from json_each(?2))`

	revisionSQL = `select fired, overlap, last_job from stint_schedules where name = ? and revision = ?`

	notEndedSQL = `
	select 1 from stint_entries e where e.pos = ?1
	and not exists (select 1 from stint_executions x where x.pos = ?1 and x.job is null and x.final = 1)
	and not exists (select 1 from stint_executions x where x.job = ?1 and x.final = 1)`

	occurredSQL = `select 1 from stint_entries where schedule = ? and occurrence = ?`

	moveSQL = `
	update stint_schedules set revision = revision + 1, after = ?2, next = ?3, ended = case when ?4 then ifnull(ended, ?5) end,
	  passed = passed + ?6, passed_at = case when ?6 > 0 then ?5 else passed_at end, skipped = skipped + ?7, fired = fired + ?8, last_job = ifnull(?9, last_job), last_occurrence = ifnull(?10, last_occurrence)
	where name = ?1`
)

// Declare is [store.Declare] without recurrence functions: what [stint.Client.Schedule]
// calls.
func (s *Store) Declare(ctx context.Context, by string, ready []stint.Schedule) error {
	return store.Declare(ctx, s, by, ready, nil, store.NewPlanner(nil).Plan)
}

// DeclareSchedules implements [store.Scheduler].
func (s *Store) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	if len(schedules) == 0 {
		return nil
	}
	err := s.write(ctx, func(c *conn) (bool, error) {
		now := micro(time.Now())
		for _, d := range schedules {
			text, err := store.TextsOf(d)
			if err != nil {
				return false, fmt.Errorf("schedule %s: %w", d.Name, err)
			}
			_, err = c.exec(declareScheduleSQL, d.Name, text.Recurrence, orNil(text.Function), d.Zone, text.Job, flag(!d.Unique), text.Missed,
				timeOrNil(d.NotBefore), timeOrNil(d.NotAfter), now, orNil(valid.CleanText(by, 255)))
			if err != nil {
				return false, fmt.Errorf("schedule %s: %w", d.Name, err)
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("declare %d schedules: %w", len(schedules), err)
	}
	return nil
}

func timeOrNil(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return micro(t)
}

// FireSchedules implements [store.Scheduler]. When nothing is due it reads a row, else
// one and those that are due.
func (s *Store) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (_ store.FireResult, err error) {
	defer wrap(&err, "fire schedules")
	turn, fired, err := store.PlanDue(f, plan, func(until time.Time, limit int) ([]store.ScheduleInfo, time.Time, error) {
		return s.dueSchedules(ctx, f, until, limit)
	})
	if err != nil || len(turn.Plans) == 0 {
		return fired, err
	}
	err = s.write(ctx, func(c *conn) (wake bool, err error) {
		fired.Moved, fired.Jobs = 0, nil
		for _, p := range turn.Plans {
			moved, jobs, _, err := c.move(ctx, p, true)
			if err != nil {
				return false, fmt.Errorf("schedule %s: %w", p.Schedule.Name, err)
			}
			if moved {
				fired.Moved++
			}
			fired.Jobs = append(fired.Jobs, jobs...)
		}
		return len(fired.Jobs) > 0, nil
	})
	return fired, err
}

func (s *Store) dueSchedules(ctx context.Context, f store.FireRequest, until time.Time, limit int) (list []store.ScheduleInfo, now time.Time, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		now = time.Now()
		list, err = readRows(c, scanSchedule, dueSchedulesSQL, arrayOf(f.Functions), arrayOf(f.Except), micro(until), max(0, limit))
		return err
	})
	return list, fromMicro(micro(now)), err
}

// move carries a plan out, unless the schedule is another by now. No other
// transaction writes meanwhile.
func (c *conn) move(ctx context.Context, p store.FirePlan, skips bool) (moved bool, jobs []store.FiredJob, busy bool, err error) {
	var count, overlap, last int64
	err = c.query(revisionSQL, []any{p.Schedule.Name, p.Schedule.Revision}, func(q *stmt) error {
		moved, count, overlap, last = true, q.ColumnInt64(0), q.ColumnInt64(1), q.ColumnInt64(2)
		return nil
	})
	if err != nil || !moved {
		return false, nil, false, err
	}
	if overlap == 0 && last != 0 {
		if busy, err = c.found(notEndedSQL, last); err != nil {
			return false, nil, false, err
		}
	}
	skipped := int64(p.Skipped)
	switch {
	case !busy:
		jobs, err = c.makeJobs(ctx, p, count)
	case skips:
		skipped += int64(len(p.Occurrences))
	}
	if err != nil {
		return false, nil, false, err
	}
	var job, at, next any
	for _, made := range jobs {
		job = int64(made.ID)
		if !made.Occurrence.IsZero() {
			at = micro(made.Occurrence)
		}
	}
	if !p.Next.IsZero() {
		next = micro(p.Next)
	}
	_, err = c.exec(moveSQL, p.Schedule.Name, micro(p.After), next, flag(p.Ended), micro(time.Now()), p.Passed, skipped, len(jobs), job, at)
	return true, jobs, busy, err
}

func (c *conn) makeJobs(ctx context.Context, p store.FirePlan, count int64) (jobs []store.FiredJob, err error) {
	for _, at := range p.Occurrences {
		occurrence := int64(0)
		if !at.IsZero() {
			occurrence = micro(at)
			// What is there already is not made again, whatever the plan says.
			there, err := c.found(occurredSQL, p.Schedule.Name, occurrence)
			if err != nil {
				return nil, err
			} else if there {
				continue
			}
		}
		// It is ready at once, and was due at its occurrence.
		place := func(e *newEntry) {
			e.schedule, e.nth, e.occurrence = p.Schedule.Name, count+int64(len(jobs))+1, occurrence
			if e.due = occurrence; e.due != 0 && e.startBy != 0 {
				e.startBy += e.due - e.created
			}
		}
		receipt := []stint.Receipt{{}}
		if err := storeJobs(ctx, (*direct)(c), []stint.NewJob{p.Schedule.Job}, receipt, place); err != nil {
			return nil, err
		}
		jobs = append(jobs, store.FiredJob{Schedule: p.Schedule.Name, Occurrence: at, ID: receipt[0].ID})
	}
	return jobs, nil
}
