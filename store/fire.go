package store

import (
	"context"
	"errors"
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

// FireBatch is what stores share of firing: the plans of the schedules that were looked
// at, before anything is locked.
type FireBatch struct {
	Plans    []FirePlan
	Problems map[string]error // of those that could not be planned, by name
}

// FirePlan is the plan of one schedule. A store carries it out if the schedule's
// revision is still the same.
type FirePlan struct {
	Schedule *ScheduleInfo
	Plan
}

// A turn is carried out by one transaction, which must stay short whatever is due:
// it plans for so long, makes about so many jobs, and writes about so many bytes of
// arguments. The rest is for the next turn.
const (
	turnFor   = time.Second
	turnJobs  = 1000
	turnBytes = 8 << 20
)

// whenever is later than any occurrence.
var whenever = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// PlanDue begins what [Scheduler] says of FireSchedules, for stores: the turn that is
// to be carried out, unless it is empty, and what is told then. List gives the
// schedules that a firing is about and whose next occurrence is not known yet or
// comes no later than until, those that are due first before others, and the
// time by the store's clock. It is asked for one of them first, so that a look in
// vain costs a row, and then for no more than are due.
func PlanDue(f FireRequest, plan PlanFunc, list func(until time.Time, limit int) ([]ScheduleInfo, time.Time, error)) (FireBatch, FireResult, error) {
	none := FireResult{Next: -1}
	var until time.Time // nothing comes so early
	if !f.OnlyNew {
		first, now, err := list(whenever, 1)
		if err != nil || len(first) == 0 {
			return FireBatch{}, none, err
		}
		if wait := first[0].Next.Sub(now); !first[0].Next.IsZero() && wait > 0 {
			return FireBatch{}, FireResult{Next: wait}, nil
		}
		until = now
	}
	due, now, err := list(until, f.Limit)
	if err != nil {
		return FireBatch{}, none, err
	}
	turn := NewFireBatch(due, now, plan)
	return turn, FireResult{Problems: turn.Problems}, nil
}

// NewFireBatch plans what is due, as far as a turn goes. Each occurrence is later than
// all that came before it: a plan that says otherwise is a problem.
func NewFireBatch(due []ScheduleInfo, now time.Time, plan PlanFunc) FireBatch {
	var t FireBatch
	began, jobs, size := time.Now(), 0, 0
	for i := range due {
		if time.Since(began) > turnFor || jobs >= turnJobs || size >= turnBytes {
			break
		}
		s := &due[i]
		if !s.Next.IsZero() && s.Next.After(now) {
			continue // those after it are due later still
		}
		p, err := plan(s, now)
		if err == nil {
			err = p.check(s)
		}
		if err != nil {
			if t.Problems == nil {
				t.Problems = map[string]error{}
			}
			t.Problems[s.Name] = err
			continue
		}
		t.Plans = append(t.Plans, FirePlan{s, p})
		jobs += len(p.Occurrences)
		size += len(p.Occurrences) * (len(s.Job.Args) + len(s.Job.Metadata))
	}
	return t
}

// check keeps the promise that occurrences rise.
func (p *Plan) check(s *ScheduleInfo) error {
	last := s.After
	if s.LastOccurrence.After(last) {
		last = s.LastOccurrence
	}
	for _, at := range p.Occurrences {
		if !at.After(last) {
			return errBackwards
		}
		last = at
	}
	if !p.Ended && !p.Next.After(last) || p.After.Before(s.After) {
		return errBackwards
	}
	return nil
}

var errBackwards = errors.New("occurrences must rise")

// PlanOnce is the turn in which a job of one schedule is made out of turn: nothing
// else of the schedule changes.
func PlanOnce(s *ScheduleInfo) FireBatch {
	return FireBatch{Plans: []FirePlan{{s, Plan{
		Occurrences: []time.Time{{}}, After: s.After, Next: s.Next, Ended: !s.Ended.IsZero(),
	}}}}
}

// Jobs are the jobs of all plans, in their order.
func (t FireBatch) Jobs() []stint.NewJob {
	var jobs []stint.NewJob
	for _, p := range t.Plans {
		for range p.Occurrences {
			jobs = append(jobs, p.Schedule.Job)
		}
	}
	return jobs
}

// Columns are the schedules of these jobs and their occurrences; nil stands for
// none.
func (t FireBatch) Columns() (schedules []string, occurrences []*time.Time) {
	for _, p := range t.Plans {
		for _, at := range p.Occurrences {
			schedules = append(schedules, p.Schedule.Name)
			if at.IsZero() {
				occurrences = append(occurrences, nil)
			} else {
				occurrences = append(occurrences, &at)
			}
		}
	}
	return schedules, occurrences
}

// runPatience spaces out the attempts to run a schedule that others are busy
// with.
const runPatience = 5 * time.Millisecond

// RunSchedule does what [ScheduleKeeper] says of it, for stores: move carries a
// turn out, unless it came too late, and tells the job or that the schedule is
// busy.
func RunSchedule(ctx context.Context, get func() (*ScheduleInfo, error), move func(FireBatch) (moved bool, id stint.ID, busy bool, err error)) (stint.ID, error) {
	for {
		s, err := get()
		if err == nil {
			err = s.Problem
		}
		if err != nil {
			return 0, err
		}
		moved, id, busy, err := move(PlanOnce(s))
		switch {
		case err != nil:
			return 0, err
		case busy:
			return 0, &ScheduleBusyError{Schedule: s.Name, Job: s.LastJob}
		case moved:
			return id, nil
		}
		select {
		case <-time.After(runPatience):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}
