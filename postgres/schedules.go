package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.ScheduleKeeper = (*Store)(nil)

// scanSchedule reads the columns of a schedule and what the caller selected after them.
func scanSchedule(row pgx.CollectableRow, more ...any) (s store.ScheduleInfo, err error) {
	err = rows.ReadSchedule(&s, func(into ...any) error { return scan(row, into...) }, more...)
	return s, err
}

// Schedules implements [store.ScheduleKeeper].
func (s *Store) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	return s.schedules(ctx, "list schedules", ` order by name`)
}

// Schedule implements [store.ScheduleKeeper].
func (s *Store) Schedule(ctx context.Context, name string) (*store.ScheduleInfo, error) {
	all, err := s.schedules(ctx, "show schedule "+name, ` where name = $1`, valid.CleanText(name, 1<<10))
	if err != nil {
		return nil, err
	} else if len(all) == 0 {
		return nil, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return &all[0], nil
}

func (s *Store) schedules(ctx context.Context, what, which string, args ...any) ([]store.ScheduleInfo, error) {
	return collect(ctx, s.pool, what, s.sql.in(`select `+rows.ScheduleColumns+` from stint.schedules`+which), args,
		func(row pgx.CollectableRow) (store.ScheduleInfo, error) { return scanSchedule(row) })
}

// PauseSchedule implements [store.ScheduleKeeper].
func (s *Store) PauseSchedule(ctx context.Context, name, by, why string) (bool, error) {
	return s.changeSchedule(ctx, "pause", name, `select stint.pause_schedule($1, $2, $3)`, name, valid.CleanText(by, 255), valid.CleanText(why, 1<<10))
}

// ResumeSchedule implements [store.ScheduleKeeper].
func (s *Store) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	return s.changeSchedule(ctx, "resume", name, `select stint.resume_schedule($1)`, name)
}

func (s *Store) changeSchedule(ctx context.Context, doing, name, text string, args ...any) (bool, error) {
	if err := valid.Name("schedule", name); err != nil {
		return false, err
	}
	changed, err := answerOf[*bool](ctx, s, fmt.Sprintf("%s the schedule %q", doing, name), text, args...)
	if err == nil && changed == nil {
		err = fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	}
	return deref(changed), err
}

// RemoveSchedule implements [store.ScheduleKeeper]. With the schedule go the
// markers of its jobs; what waits is then ended at once, as a cancel does.
func (s *Store) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	if err := valid.Name("schedule", name); err != nil {
		return nil, err
	}
	ids, err := answerOf[[]stint.ID](ctx, s, fmt.Sprintf("remove the schedule %q", name), `select stint.remove_schedule($1, nullif($2, ''))`, name, valid.CleanText(why, 1<<10))
	switch {
	case err != nil:
		return nil, err
	case ids == nil:
		return nil, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	case len(ids) == 0:
		return nil, nil
	}
	if _, err := s.Cancel(ctx, ids, why); err != nil {
		return ids, fmt.Errorf("the schedule %q is removed: %w", name, err)
	}
	return ids, nil
}

// RunSchedule implements [store.ScheduleKeeper].
func (s *Store) RunSchedule(ctx context.Context, name string) (stint.ID, error) {
	get := func() (*store.ScheduleInfo, error) { return s.Schedule(ctx, name) }
	return store.RunSchedule(ctx, get, func(turn store.FireBatch) (bool, stint.ID, bool, error) {
		moved, jobs, busy, err := s.move(ctx, turn, false)
		if err != nil {
			return false, 0, false, fmt.Errorf("run the schedule %q: %w", name, err)
		}
		if len(jobs) == 0 {
			return moved > 0, 0, len(busy) > 0, nil
		}
		return true, jobs[0].ID, false, nil
	})
}
