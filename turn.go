package stint

import (
	"context"
	"errors"
	"time"
)

// Turn is what stores share of firing: the plans of the schedules that were looked
// at, before anything is locked.
type Turn struct {
	Plans    []TurnPlan
	Problems map[string]error // of those that could not be planned, by name
}

// TurnPlan is the plan of one schedule. A store carries it out if the schedule's
// revision is still the same.
type TurnPlan struct {
	Schedule *ScheduleInfo
	Plan
}

// NewTurn plans what is due. Each occurrence is later than all that came before
// it: a plan that says otherwise is a problem.
func NewTurn(due []ScheduleInfo, now time.Time, plan PlanFunc) Turn {
	var t Turn
	for i := range due {
		s := &due[i]
		if !s.Next.IsZero() && s.Next.After(now) {
			continue // those behind it are due later still
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
		t.Plans = append(t.Plans, TurnPlan{s, p})
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

// RunTurn is the turn in which a job of one schedule is made out of turn: nothing
// else of the schedule changes.
func RunTurn(s *ScheduleInfo) Turn {
	return Turn{Plans: []TurnPlan{{s, Plan{
		Occurrences: []time.Time{{}}, After: s.After, Next: s.Next, Ended: !s.Ended.IsZero(),
	}}}}
}

// Jobs are the jobs of all plans, in their order.
func (t Turn) Jobs() []NewJob {
	var jobs []NewJob
	for _, p := range t.Plans {
		for range p.Occurrences {
			jobs = append(jobs, p.Schedule.Job)
		}
	}
	return jobs
}

// Columns are the schedules of these jobs and their occurrences; nil stands for
// none.
func (t Turn) Columns() (schedules []string, occurrences []*time.Time) {
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
func RunSchedule(ctx context.Context, get func() (*ScheduleInfo, error), move func(Turn) (moved bool, id ID, busy bool, err error)) (ID, error) {
	for {
		s, err := get()
		if err == nil {
			err = s.Problem
		}
		if err != nil {
			return 0, err
		}
		moved, id, busy, err := move(RunTurn(s))
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
