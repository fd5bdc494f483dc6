package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.ScheduleKeeper = (*Store)(nil)

const scheduleColumns = `s.name, s.recurrence, s.zone, s.job, s.overlap, s.missed, s.not_before, s.not_after, s.after, s.next, s.ended,
  s.paused, s.paused_by, s.paused_why, s.fired, s.skipped, s.passed, s.last_occurrence, s.last_job, s.created, s.declared, s.declared_by, s.revision`

// scanSchedule reads scheduleColumns and what the caller selected after them.
func scanSchedule(row pgx.CollectableRow, more ...any) (store.ScheduleInfo, error) {
	var (
		s                                            store.ScheduleInfo
		text                                         store.ScheduleTexts
		overlap                                      bool
		notBefore, notAfter, next, ended, paused, at *time.Time
		by, why, declarer                            *string
		job                                          *stint.ID
		args                                         []byte
	)
	err := row.Scan(append([]any{&s.Name, &text.Recurrence, &s.Zone, &args, &overlap, &text.Missed, &notBefore, &notAfter, &s.After, &next, &ended,
		&paused, &by, &why, &s.Fired, &s.Skipped, &s.Passed, &at, &job, &s.Created, &s.Declared, &declarer, &s.Revision}, more...)...)
	if err != nil {
		return s, err
	}
	utc := func(t *time.Time) time.Time { return deref(t).UTC() }
	s.Unique = !overlap
	s.NotBefore, s.NotAfter, s.Next, s.Ended, s.Paused, s.LastOccurrence = utc(notBefore), utc(notAfter), utc(next), utc(ended), utc(paused), utc(at)
	s.After, s.Created, s.Declared = s.After.UTC(), s.Created.UTC(), s.Declared.UTC()
	s.PausedBy, s.PausedWhy, s.By, s.LastJob = deref(by), deref(why), deref(declarer), deref(job)
	text.Job = args
	s.Read(text)
	return s, nil
}

// Schedules implements [store.ScheduleKeeper].
func (s *Store) Schedules(ctx context.Context) ([]store.ScheduleInfo, error) {
	return collect(ctx, s.pool, "list schedules", s.sql.in(`select `+scheduleColumns+` from stint.schedules s order by s.name`), nil, func(row pgx.CollectableRow) (store.ScheduleInfo, error) { return scanSchedule(row) })
}

// Schedule implements [store.ScheduleKeeper].
func (s *Store) Schedule(ctx context.Context, name string) (*store.ScheduleInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(`select `+scheduleColumns+` from stint.schedules s where s.name = $1`), valid.CleanText(name, 1<<10))
	if err != nil {
		return nil, fmt.Errorf("show schedule %s: %w", name, translate(err))
	}
	info, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (store.ScheduleInfo, error) { return scanSchedule(row) })
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w: %q", stint.ErrNoSchedule, name)
	} else if err != nil {
		return nil, fmt.Errorf("show schedule %s: %w", name, translate(err))
	}
	return &info, nil
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
