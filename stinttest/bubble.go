package stinttest

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// jumping is the time of a bubble: to sleep is to jump.
type jumping struct {
	store     store.Promoter
	scheduler store.Scheduler // nil for none
	planner   *store.Planner
}

func newJumping(st Store, mux *stint.Mux) *jumping {
	j := &jumping{store: st, planner: store.NewPlanner(mux.Recurrences())}
	j.scheduler, _ = st.(store.Scheduler)
	return j
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
		if wait < 0 || !by.IsZero() && time.Now().Add(wait).After(by) {
			if !by.IsZero() {
				time.Sleep(time.Until(by))
			}
			return false, nil
		}
		time.Sleep(max(wait, time.Microsecond))
	}
}

// fire makes the jobs of schedules that are due, or says how long until one is,
// negative for never.
func (j *jumping) fire(ctx context.Context, by time.Time) (wait time.Duration, some bool, err error) {
	if by.IsZero() || j.scheduler == nil {
		return -1, false, nil
	}
	for {
		fired, err := j.scheduler.FireSchedules(ctx, store.FireRequest{Limit: 100, Functions: j.planner.Functions()}, j.planner.Plan)
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
