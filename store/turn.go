package store

import (
	"context"
	"errors"
	"time"

	"github.com/stint-go/stint"
)

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
