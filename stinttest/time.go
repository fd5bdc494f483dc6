package stinttest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// jumping is the time of a bubble, where a sleep ends at once.
type jumping struct {
	store   Store
	planner *store.Planner
}

func (j *jumping) now(context.Context) (time.Time, error) { return time.Now(), nil }

// next promotes one job, since two that are due together would run in the order
// of their lanes instead of their times. Schedules have no end, so they fire only
// up to an instant.
func (j *jumping) next(ctx context.Context, by time.Time) (bool, error) {
	for {
		wait, some, err := j.fire(ctx, by)
		if err != nil || some {
			return some, err
		}
		p, err := j.store.Promote(ctx, time.Time{}, 1)
		if err != nil || p.Moved > 0 {
			return p.Moved > 0, err
		}
		if p.Next >= 0 && (wait < 0 || p.Next < wait) {
			wait = p.Next
		}
		if by.IsZero() && wait > 0 {
			if only, err := j.blockedOnly(ctx); err != nil || only {
				return false, err
			}
		}
		if wait < 0 || !by.IsZero() && time.Now().Add(wait).After(by) {
			if !by.IsZero() {
				time.Sleep(time.Until(by))
			}
			return false, nil
		}
		time.Sleep(max(wait, time.Microsecond))
	}
}

// blockedOnly reports whether no job waits for its time alone.
func (j *jumping) blockedOnly(ctx context.Context) (bool, error) {
	waiting, err := listJobs(ctx, j.store, "that wait", stint.Scheduled, stint.Retrying)
	return !slices.ContainsFunc(waiting, func(job stint.JobInfo) bool { return job.PendingRetry == "" }), err
}

// fire makes the jobs of schedules that are due, or says how long until one is,
// negative for never.
func (j *jumping) fire(ctx context.Context, by time.Time) (wait time.Duration, some bool, err error) {
	scheduler, ok := j.store.(store.Scheduler)
	if by.IsZero() || !ok {
		return -1, false, nil
	}
	for {
		fired, err := scheduler.FireSchedules(ctx, store.FireRequest{Limit: 100, Functions: j.planner.Functions()}, j.planner.Plan)
		if err != nil {
			return -1, false, err
		}
		for name, problem := range fired.Problems {
			return -1, false, fmt.Errorf("plan the schedule %s: %w", name, problem)
		}
		if len(fired.Jobs) > 0 || fired.Moved == 0 {
			return fired.Next, len(fired.Jobs) > 0, nil
		}
	}
}

// timeline is the time of a test, which passes from one job to the next.
type timeline interface {
	// now is its present.
	now(ctx context.Context) (time.Time, error)

	// next makes the job ready that is due first, and moves the time ahead to it. It reports false
	// when no job waits, or none that is due by a given instant (zero: no bound); then that instant
	// is the present.
	next(ctx context.Context, by time.Time) (bool, error)
}

// reckoned is a computed time: it is ahead of the store's clock by what was skipped. A job is due at
// its date plus how far ahead the time was when the date was set.
type reckoned struct {
	store Store
	ahead time.Duration
	dates map[stint.ID]date // of the jobs that wait
}

// date is when a job is due: as the store has it, and as reckoned.
type date struct{ stored, due time.Time }

func (r *reckoned) now(ctx context.Context) (time.Time, error) {
	now := time.Now()
	if clock, ok := r.store.(store.Clock); ok {
		var err error
		if now, err = clock.Now(ctx); err != nil {
			return now, fmt.Errorf("ask for the time: %w", err)
		}
	}
	return now.Add(r.ahead), nil
}

func (r *reckoned) next(ctx context.Context, by time.Time) (bool, error) {
	// What is due by the clock is by the computed time, too; and jobs that got their signal.
	p, err := r.store.Promote(ctx, time.Time{}, 1000)
	if err != nil || p.Moved > 0 {
		return p.Moved > 0, err
	}
	if err := r.look(ctx); err != nil {
		return false, err
	}
	now, err := r.now(ctx)
	if err != nil {
		return false, err
	}
	for len(r.dates) > 0 {
		first := stint.ID(0)
		for id, d := range r.dates {
			if first == 0 || d.due.Before(r.dates[first].due) || d.due.Equal(r.dates[first].due) && id < first {
				first = id
			}
		}
		due := r.dates[first].due
		if !by.IsZero() && due.After(by) {
			break
		}
		delete(r.dates, first)
		done, err := r.store.Retry(ctx, []stint.ID{first}, stint.RerunOptions{})
		if err != nil {
			return false, fmt.Errorf("make job %d ready: %w", first, err)
		}
		r.ahead += max(0, due.Sub(now))
		if a := done[first].Answer; a == stint.RerunReady || a == stint.RerunAvailable {
			return true, nil
		}
	}
	if !by.IsZero() {
		r.ahead += max(0, by.Sub(now))
	}
	return false, nil
}

// look finds the jobs that wait for a date, and notes the dates of new ones. A job that waits for a
// retry function has none.
func (r *reckoned) look(ctx context.Context) error {
	waiting, err := listJobs(ctx, r.store, "that wait", stint.Scheduled, stint.Retrying)
	if err != nil {
		return err
	}
	seen := make(map[stint.ID]date, len(r.dates))
	for _, job := range waiting {
		if job.PendingRetry != "" {
			continue
		}
		d, known := r.dates[job.ID]
		if !known || !d.stored.Equal(job.Due) {
			d = date{job.Due, job.Due.Add(r.ahead)}
		}
		seen[job.ID] = d
	}
	r.dates = seen
	return nil
}
