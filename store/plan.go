package store

import (
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/cron"
)

// MissedAfter is how late an occurrence may be before it counts as missed when
// it is the only one that is due.
const MissedAfter = time.Minute

// Plan is what is to become of a schedule that was looked at: the jobs that are
// made, and where it stands then.
type Plan struct {
	Occurrences []time.Time // to be made jobs of, in their order
	Passed      int         // how many were missed and are not made up for
	Skipped     int         // how many were due beside these, and the schedule is unique

	After time.Time // the instant up to which all occurrences are dealt with
	Next  time.Time // the next one
	Ended bool      // there is none
}

// Planner computes the next occurrences of schedules. It knows the recurrence
// functions of a program. Its methods may be called concurrently.
type Planner struct{ funcs *cron.Registry }

// NewPlanner returns a planner with functions, which may be nil for none.
func NewPlanner(funcs *cron.Registry) *Planner {
	return &Planner{funcs: funcs}
}

// Functions are the names of the recurrence functions that it has.
func (p *Planner) Functions() []string { return p.funcs.Names() }

// One plan goes through so many occurrences at most, for so long, and makes so
// many jobs: a year of seconds that nobody fired is caught up with in many short
// steps, and each is written within the time that an engine gives a statement.
const (
	planAtOnce = 10_000
	planFor    = 200 * time.Millisecond
	runAtOnce  = 100
)

// Plan is a [PlanFunc]. It depends on its arguments only. Occurrences rise
// strictly, whatever clocks and functions say. Those of a schedule whose problem it
// is, whose zone this machine does not have, or whose function this program does
// not have or that fails, are an error: others may do better.
func (p *Planner) Plan(s *ScheduleInfo, now time.Time) (Plan, error) {
	zone, err := zoneOf(s)
	if err != nil {
		return Plan{}, err
	}
	if s.Next.IsZero() {
		next, ok, err := p.first(s, zone)
		return Plan{After: s.After, Next: next, Ended: !ok}, err
	}
	most := s.Missed.Most()
	var due []time.Time // the last of those that are due, the oldest first
	plan, seen, next, ok := Plan{After: s.After}, 0, s.Next, true
	for began := time.Now(); ok && !next.After(now) && seen < planAtOnce && (seen <= most || time.Since(began) < planFor); {
		due, plan.After = append(due, next), next
		seen++
		if len(due) > 2*most+1 {
			due = slices.Delete(due, 0, len(due)-most-1)
		}
		if next, ok, err = p.next(s, next, zone); err != nil {
			return Plan{}, err
		}
	}
	if ok && !next.After(now) {
		// There are more. The last of these may be among the newest of all, and
		// are looked at again.
		again := due[len(due)-most:]
		plan.Passed, plan.Next = seen-most, again[0]
		if before := len(due) - most - 1; before >= 0 {
			plan.After = due[before]
		}
		return plan, nil
	}
	plan.Next, plan.Ended = next, !ok
	plan.choose(s, due, seen, now)
	if run := plan.Occurrences; len(run) > runAtOnce {
		plan.Occurrences, plan.After, plan.Next, plan.Ended = run[:runAtOnce], run[runAtOnce-1], run[runAtOnce], false
	}
	return plan, nil
}

// choose picks those that run of the occurrences that are due.
func (plan *Plan) choose(s *ScheduleInfo, due []time.Time, seen int, now time.Time) {
	if seen == 0 {
		return // looked at too early
	}
	run := due[max(0, len(due)-s.Missed.Most()):]
	if s.Missed == stint.MissedNone && now.Sub(run[0]) > MissedAfter {
		run = nil
	}
	plan.Passed = seen - len(run)
	if s.Unique && len(run) > 1 {
		plan.Skipped = len(run) - 1
		run = run[len(run)-1:]
	}
	plan.Occurrences = slices.Clone(run)
}

// Upcoming are the next n occurrences of a schedule, as far as there are so many.
func (p *Planner) Upcoming(s *ScheduleInfo, n int) ([]time.Time, error) {
	zone, err := zoneOf(s)
	if err != nil || n <= 0 {
		return nil, err
	}
	next, ok := s.Next, s.Ended.IsZero()
	if next.IsZero() && ok {
		if next, ok, err = p.first(s, zone); err != nil {
			return nil, err
		}
	}
	var times []time.Time
	for ok && len(times) < n {
		times = append(times, next.In(zone))
		if next, ok, err = p.next(s, next, zone); err != nil {
			return times, err
		}
	}
	return times, nil
}

func zoneOf(s *ScheduleInfo) (*time.Location, error) {
	if s.Problem != nil {
		return nil, s.Problem
	}
	return s.Location()
}

// first is the first occurrence of a schedule that was declared or resumed: behind
// all that was dealt with. An interval keeps the beat of what it fired before.
func (p *Planner) first(s *ScheduleInfo, zone *time.Location) (time.Time, bool, error) {
	after := s.After
	if s.LastOccurrence.After(after) {
		after = s.LastOccurrence
	}
	if !s.NotBefore.IsZero() && after.Before(s.NotBefore) {
		if _, isInterval := s.Recurrence.Interval(); isInterval && s.LastOccurrence.IsZero() {
			return p.bounded(s, s.NotBefore, true) // it begins with its bound
		}
		after = s.NotBefore.Add(-time.Microsecond)
	}
	last := s.LastOccurrence
	if last.IsZero() {
		last = after
	}
	next, ok, err := p.funcs.Resume(s.Recurrence, last, after, zone)
	if err != nil {
		return time.Time{}, false, err
	}
	return p.bounded(s, next, ok)
}

// next is the occurrence after another one.
func (p *Planner) next(s *ScheduleInfo, after time.Time, zone *time.Location) (time.Time, bool, error) {
	next, ok, err := p.funcs.Next(s.Recurrence, after, zone)
	if err != nil {
		return time.Time{}, false, err
	}
	if ok && !next.After(after) {
		return time.Time{}, false, fmt.Errorf("after %s comes %s, which is no later", after, next)
	}
	return p.bounded(s, next, ok)
}

func (p *Planner) bounded(s *ScheduleInfo, next time.Time, ok bool) (time.Time, bool, error) {
	if !ok || next.Year() > 9000 || !s.NotAfter.IsZero() && next.After(s.NotAfter) {
		return time.Time{}, false, nil
	}
	return next.UTC(), true, nil
}
