package sim

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// FireSchedules implements [store.Scheduler] with a bug.
func (s *planted) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (store.FireResult, error) {
	bad := plan
	switch s.bug {
	case bugUnbound:
		bad = func(i *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			i.Missed = stint.MissedAll(stint.MaxMissed)
			return plan(i, now)
		}
	case bugOmits:
		bad = func(i *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			p, err := plan(i, now)
			if n := len(p.Occurrences); n > 1 {
				p.Occurrences = p.Occurrences[:n-1]
			}
			return p, err
		}
	case bugMoves:
		bad = func(i *store.ScheduleInfo, now time.Time) (store.Plan, error) {
			p, err := plan(i, now)
			p.Occurrences = nil
			return p, err
		}
	case bugOverlaps:
		s.exec(`update stint_schedules set last_job = null where last_job in (select job from stint_waiting where why = 'retrying')`)
	}
	fired, err := s.ground.FireSchedules(ctx, f, bad)
	for _, j := range fired.Jobs {
		if s.bug == bugAgain && err == nil {
			// As if the second of two transactions had not come to pass.
			s.exec(`update stint_schedules set next = ?, after = ?, revision = revision + 1 where name = ?`,
				j.Occurrence.UnixMicro(), j.Occurrence.UnixMicro()-1, j.Schedule)
		}
	}
	return fired, err
}

// DeclareSchedules implements [store.Scheduler] with a bug.
func (s *planted) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	err := s.ground.DeclareSchedules(ctx, by, schedules)
	if s.bug == bugRestarts && err == nil {
		for i := range schedules {
			s.exec(`update stint_schedules set next = null where name = ?`, schedules[i].Name)
		}
	}
	return err
}

// PauseSchedule implements [store.ScheduleKeeper] with a bug.
func (s *planted) PauseSchedule(ctx context.Context, name, by, why string) (bool, error) {
	if s.bug == bugRestless {
		return true, nil
	}
	return s.ground.PauseSchedule(ctx, name, by, why)
}

// ResumeSchedule implements [store.ScheduleKeeper] with a bug.
func (s *planted) ResumeSchedule(ctx context.Context, name string) (bool, error) {
	before, _ := s.ground.Schedule(ctx, name)
	news, err := s.ground.ResumeSchedule(ctx, name)
	if s.bug == bugMakesUp && news && before != nil && !before.Next.IsZero() {
		s.exec(`update stint_schedules set next = ?, after = ? where name = ?`, before.Next.UnixMicro(), before.After.UnixMicro(), name)
	}
	return news, err
}

// RemoveSchedule implements [store.ScheduleKeeper] with a bug.
func (s *planted) RemoveSchedule(ctx context.Context, name, why string) ([]stint.ID, error) {
	if s.bug == bugStays {
		return nil, nil
	}
	was, _ := s.ground.Schedule(ctx, name)
	ids, err := s.ground.RemoveSchedule(ctx, name, why)
	if s.bug == bugReturns && err == nil && was != nil {
		// Whoever fires it writes it as he knew it.
		_ = s.ground.DeclareSchedules(ctx, "", []stint.Schedule{was.Schedule})
	}
	return ids, err
}
