package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.ScheduleKeeper = (*Store)(nil)

const (
	scheduleColumns = `name, recurrence, zone, job, overlap, missed, not_before, not_after, after, next, ended,
	  paused, paused_by, paused_why, fired, skipped, passed, last_occurrence, last_job, created, declared, declared_by, revision`

	schedulesSQL = `select ` + scheduleColumns + ` from stint_schedules order by name`
	scheduleSQL  = `select ` + scheduleColumns + ` from stint_schedules where name = ?`
	anySQL       = `select 1 from stint_schedules where name = ?`

	pauseScheduleSQL = `
	update stint_schedules set paused = ?2, paused_by = ?3, paused_why = ?4, revision = revision + 1 where name = ?1 and paused is null`

	// What came while it was paused is not made up for, so the next occurrence is
	// to be found anew.
	resumeScheduleSQL = `
	update stint_schedules set paused = null, paused_by = null, paused_why = null, next = null, after = max(after, ?2), revision = revision + 1
	where name = ?1 and paused is not null`

	removeScheduleSQL = `delete from stint_schedules where name = ?`

	pendingSQL = `
	select id from stint_jobs where id in (select pos from stint_entries where schedule = ?)
	and state in ('scheduled', 'retrying', 'blocked', 'available') order by id`
)

// scanSchedule reads scheduleColumns.
func scanSchedule(q *stmt) stint.ScheduleInfo {
	s := stint.ScheduleInfo{
		Schedule: stint.Schedule{
			Name: q.ColumnText(0), Zone: q.ColumnText(2), Unique: q.ColumnInt64(4) == 0, NotBefore: q.time(6), NotAfter: q.time(7),
		},
		After: q.time(8), Next: q.time(9), Ended: q.time(10), Paused: q.time(11), PausedBy: q.ColumnText(12), PausedWhy: q.ColumnText(13),
		Fired: q.ColumnInt64(14), Skipped: q.ColumnInt64(15), Passed: q.ColumnInt64(16),
		LastOccurrence: q.time(17), LastJob: stint.ID(q.ColumnInt64(18)),
		Created: q.time(19), Declared: q.time(20), By: q.ColumnText(21), Revision: q.ColumnInt64(22),
	}
	s.Read(stint.ScheduleTexts{Recurrence: q.ColumnText(1), Missed: q.ColumnText(5), Job: q.json(3)})
	return s
}

// Schedules implements [stint.ScheduleKeeper].
func (s *Store) Schedules(ctx context.Context) ([]stint.ScheduleInfo, error) {
	var list []stint.ScheduleInfo
	err := s.read(ctx, func(c *conn) error {
		list = nil
		return c.query(schedulesSQL, nil, func(q *stmt) error {
			list = append(list, scanSchedule(q))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list schedules: %w", err)
	}
	return list, nil
}

// Schedule implements [stint.ScheduleKeeper].
func (s *Store) Schedule(ctx context.Context, name string) (*stint.ScheduleInfo, error) {
	var info *stint.ScheduleInfo
	err := s.read(ctx, func(c *conn) error {
		info = nil
		return c.query(scheduleSQL, []any{name}, func(q *stmt) error {
			info = new(scanSchedule(q))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("show schedule %s: %w", name, err)
	} else if info == nil {
		return nil, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return info, nil
}

// PauseSchedule implements [stint.ScheduleKeeper].
func (s *Store) PauseSchedule(ctx context.Context, name, by, why string) (bool, error) {
	return s.changeSchedule(ctx, "pause", name, pauseScheduleSQL, orNil(stint.CleanText(by, 255)), orNil(stint.CleanText(why, 1<<10)))
}

// ResumeSchedule implements [stint.ScheduleKeeper].
func (s *Store) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	return s.changeSchedule(ctx, "resume", name, resumeScheduleSQL)
}

func (s *Store) changeSchedule(ctx context.Context, doing, name, text string, args ...any) (bool, error) {
	if err := stint.CheckName("schedule", name); err != nil {
		return false, err
	}
	changed, there := int64(0), false
	err := s.write(ctx, func(c *conn) (_ bool, err error) {
		if changed, err = c.exec(text, append([]any{name, micro(time.Now())}, args...)...); err != nil {
			return false, err
		}
		there, err = c.found(anySQL, name)
		return changed > 0, err
	})
	switch {
	case err != nil:
		return false, fmt.Errorf("%s the schedule %q: %w", doing, name, err)
	case !there:
		return false, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return changed > 0, nil
}

// RemoveSchedule implements [stint.ScheduleKeeper].
func (s *Store) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	if err := stint.CheckName("schedule", name); err != nil {
		return nil, err
	}
	var ids []stint.ID
	removed := int64(0)
	err := s.write(ctx, func(c *conn) (_ bool, err error) {
		ids = nil
		if removed, err = c.exec(removeScheduleSQL, name); err != nil || removed == 0 {
			return false, err
		}
		err = c.query(pendingSQL, []any{name}, func(q *stmt) error {
			ids = append(ids, stint.ID(q.ColumnInt64(0)))
			return nil
		})
		for _, id := range ids {
			if err == nil {
				_, err = c.cancel(id, stint.CleanText(why, 1<<10))
			}
		}
		return true, err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("remove the schedule %q: %w", name, err)
	case removed == 0:
		return nil, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return ids, nil
}

// RunSchedule implements [stint.ScheduleKeeper].
func (s *Store) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	get := func() (*stint.ScheduleInfo, error) { return s.Schedule(ctx, name) }
	return stint.RunSchedule(ctx, get, func(turn stint.Turn) (moved bool, id stint.ID, busy bool, err error) {
		err = s.write(ctx, func(c *conn) (bool, error) {
			var jobs []stint.FiredJob
			moved, jobs, busy, err = c.move(ctx, turn.Plans[0], false)
			if err != nil || len(jobs) == 0 {
				return false, err
			}
			id = jobs[0].ID
			return true, nil
		})
		if err != nil {
			err = fmt.Errorf("run the schedule %q: %w", name, err)
		}
		return moved, id, busy, err
	})
}
