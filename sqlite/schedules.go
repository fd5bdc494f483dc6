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

var _ store.ScheduleKeeper = (*Store)(nil)

const (
	anySQL = `select 1 from stint_schedules where name = ?`

	pauseScheduleSQL = `
	update stint_schedules set paused = ?2, paused_by = ?3, paused_why = ?4, revision = revision + 1 where name = ?1 and paused is null`

	// Occurrences of the pause are not made up for, so the next one is to be found
	// again.
	resumeScheduleSQL = `
	update stint_schedules set paused = null, paused_by = null, paused_why = null, next = null, after = max(after, ?2), revision = revision + 1
	where name = ?1 and paused is not null`

	removeScheduleSQL = `delete from stint_schedules where name = ?`

	pendingSQL = `
	select id from stint_jobs where id in (select pos from stint_entries where schedule = ?)
	and state in ('scheduled', 'retrying', 'blocked', 'available') order by id`
)

func scanSchedule(s *store.ScheduleInfo, q *stmt) error { return rows.ReadSchedule(s, q.scan) }

// Schedules implements [store.ScheduleKeeper].
func (s *Store) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	return s.schedules(ctx, "list schedules", ` order by name`)
}

// Schedule implements [store.ScheduleKeeper].
func (s *Store) Schedule(ctx context.Context, name string) (*store.ScheduleInfo, error) {
	all, err := s.schedules(ctx, "show schedule "+name, ` where name = ?`, name)
	if err != nil {
		return nil, err
	} else if len(all) == 0 {
		return nil, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return &all[0], nil
}

func (s *Store) schedules(ctx context.Context, what, which string, args ...any) ([]store.ScheduleInfo, error) {
	return reading(ctx, s, what, func(c *conn) ([]store.ScheduleInfo, error) {
		return readRows(c, scanSchedule, `select `+rows.ScheduleColumns+` from stint_schedules`+which, args...)
	})
}

// PauseSchedule implements [store.ScheduleKeeper].
func (s *Store) PauseSchedule(ctx context.Context, name, by, why string) (bool, error) {
	return s.changeSchedule(ctx, "pause", name, pauseScheduleSQL, orNil(valid.CleanText(by, 255)), orNil(valid.CleanText(why, 1<<10)))
}

// ResumeSchedule implements [store.ScheduleKeeper].
func (s *Store) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	return s.changeSchedule(ctx, "resume", name, resumeScheduleSQL)
}

func (s *Store) changeSchedule(ctx context.Context, doing, name, text string, args ...any) (bool, error) {
	if err := valid.Name("schedule", name); err != nil {
		return false, err
	}
	exists := false
	changed, err := writing(ctx, s, fmt.Sprintf("%s the schedule %q", doing, name), func(c *conn) (changed, wake bool, err error) {
		n, err := c.exec(text, append([]any{name, micro(time.Now())}, args...)...)
		if err == nil {
			exists, err = c.found(anySQL, name)
		}
		return n > 0, n > 0, err
	})
	if err == nil && !exists {
		err = fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return changed, err
}

// RemoveSchedule implements [store.ScheduleKeeper].
func (s *Store) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	if err := valid.Name("schedule", name); err != nil {
		return nil, err
	}
	removed := int64(0)
	ids, err := writing(ctx, s, fmt.Sprintf("remove the schedule %q", name), func(c *conn) (ids []stint.ID, wake bool, err error) {
		if removed, err = c.exec(removeScheduleSQL, name); err != nil || removed == 0 {
			return nil, false, err
		}
		ids, err = allRows(c, firstNumber[stint.ID], pendingSQL, name)
		for _, id := range ids {
			if err == nil {
				_, err = c.cancel(id, valid.CleanText(why, 1<<10))
			}
		}
		return ids, true, err
	})
	if err == nil && removed == 0 {
		err = fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return ids, err
}

// RunSchedule implements [store.ScheduleKeeper].
func (s *Store) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	get := func() (*store.ScheduleInfo, error) { return s.Schedule(ctx, name) }
	return store.RunSchedule(ctx, get, func(turn store.FireBatch) (moved bool, id stint.ID, busy bool, err error) {
		err = s.write(ctx, func(c *conn) (bool, error) {
			var jobs []store.FiredJob
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
