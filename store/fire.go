package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// Scheduler keeps schedules and fires them. Anybody may, without a lease and as
// many at once as like to: an occurrence makes its job in the same transaction
// that moves the schedule on, under a lock of the schedule's row.
type Scheduler interface {
	// DeclareSchedules stores schedules by their names, all or none, and wakes
	// engines. One that is there gets the new policies and keeps its counters, its
	// pause, and its next occurrence, unless the recurrence, the zone or a bound
	// is another: then the next one is the first after now that follows the
	// last one fired. By says who declares it. The schedules have passed
	// [stint.ReadySchedules].
	DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error

	// FireSchedules makes the jobs of occurrences that are due by the store's
	// clock, wakes engines, and moves their schedules on as plan says. It asks plan
	// while nothing is locked, so it may be asked in vain: when somebody else was
	// faster. A schedule whose next occurrence is not known yet, since it was just
	// declared or resumed, is planned in the same way and fires later.
	//
	// A schedule that plan has an error for is left to others: see
	// [FireResult.Problems]. After an error of the call itself it may have fired.
	FireSchedules(ctx context.Context, f FireRequest, plan PlanFunc) (FireResult, error)
}

// PlanFunc says what is to become of a schedule at an instant of the store's
// clock: [Planner.Plan].
type PlanFunc func(s *ScheduleInfo, now time.Time) (Plan, error)

// FireRequest says which schedules are looked at.
type FireRequest struct {
	Limit     int      // how many at once
	Functions []string // those recurrence functions that the caller has
	Except    []string // names that are passed over
	OnlyNew   bool     // only those whose next occurrence is not known yet: nothing fires
}

// FireResult is what one call of FireSchedules did and saw.
type FireResult struct {
	Jobs  []FiredJob
	Moved int // how many schedules went on, with or without jobs

	// Next is how long until the next schedule is to be looked at, 0 when one is;
	// negative when none is.
	Next time.Duration

	// Problems are the schedules that could not be planned here, by name.
	Problems map[string]error
}

// FiredJob is the job of one occurrence.
type FiredJob struct {
	Schedule   string
	Occurrence time.Time
	ID         stint.ID
}

// Declare declares schedules that are ready (see [stint.ReadySchedules]), and finds the next
// occurrences of those that are new, as far as plan and the recurrence functions named
// go. Engines find the others, so only declaring can fail.
func Declare(ctx context.Context, store Scheduler, by string, ready []stint.Schedule, functions []string, plan PlanFunc) error {
	if len(ready) == 0 {
		return nil
	}
	if err := store.DeclareSchedules(ctx, by, ready); err != nil {
		return err
	}
	_, _ = store.FireSchedules(ctx, FireRequest{Limit: len(ready), Functions: functions, OnlyNew: true}, plan)
	return nil
}
