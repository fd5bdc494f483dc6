package engine

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

const (
	// scheduleBatch bounds what is fired in one transaction.
	scheduleBatch = 200

	// scheduleEvery is how often an engine looks for schedules that it was not
	// told of, or that a step of the database's clock made due; a ring comes
	// earlier.
	scheduleEvery = 2 * time.Second

	// scheduleSpacing spaces looks out: rings come with every enqueue.
	scheduleSpacing = 50 * time.Millisecond

	// scheduleAgain is when it tries again to plan what it could not.
	scheduleAgain = 30 * time.Second
)

// schedule fires schedules when they are due by the store's clock. Every engine
// does, without a lease: the store sees to it that each occurrence makes one job.
// It begins by declaring those of the program.
func (s *session) schedule(ctx context.Context) {
	store, ok := s.store.(stint.Scheduler)
	if !ok {
		if len(s.mux.Schedules()) > 0 {
			s.trouble(ctx, "declare schedules", stint.ErrNoScheduler)
		}
		return
	}
	planner := stint.NewPlanner(s.mux.Recurrences())
	if !s.declare(ctx, store, planner) {
		return
	}
	puzzles := puzzles{}
	for wait := newBackoff(); ctx.Err() == nil; {
		limit, cancel := s.limit(ctx)
		fired, err := store.FireSchedules(limit, stint.Firing{
			Limit: scheduleBatch, Functions: planner.Functions(), Except: puzzles.names(time.Now()),
		}, planner.Plan)
		cancel()
		if err != nil {
			s.trouble(ctx, "fire schedules", err)
			wait.sleep(ctx)
			continue
		}
		wait.reset()
		for _, name := range slices.Sorted(maps.Keys(fired.Problems)) {
			puzzles[name] = time.Now().Add(scheduleAgain)
			s.trouble(ctx, "plan the schedule "+name, fired.Problems[name])
		}
		if len(fired.Jobs) > 0 {
			s.bell.ring()
		}
		if fired.Next == 0 {
			if fired.Moved == 0 {
				// Others were faster, or all of it is beyond this program.
				pause(ctx, promotePause)
			}
			continue
		}
		next := scheduleEvery
		if fired.Next > 0 {
			next = min(next, fired.Next)
		}
		if s.schedulebell.wait(ctx, next) {
			pause(ctx, min(next, scheduleSpacing))
		}
	}
}

// declare stores the schedules of the program, and tries until that is done; false
// says that ctx ended before. What can never be stored must not keep the engine
// from firing the others.
func (s *session) declare(ctx context.Context, store stint.Scheduler, planner *stint.Planner) bool {
	schedules := s.mux.Schedules()
	for wait := newBackoff(); ; {
		limit, cancel := s.limit(ctx)
		err := stint.Declare(limit, store, s.config.Instance, schedules, planner)
		cancel()
		switch {
		case err == nil:
			return true
		case ctx.Err() != nil:
			return false
		}
		s.trouble(ctx, "declare schedules", err)
		if errors.Is(err, stint.ErrUnstorable) {
			return true
		}
		if !wait.sleep(ctx) {
			return false
		}
	}
}

// puzzles are schedules that this engine could not plan, and until when it leaves
// them to others.
type puzzles map[string]time.Time

func (p puzzles) names(now time.Time) []string {
	maps.DeleteFunc(p, func(_ string, until time.Time) bool { return now.After(until) })
	return slices.Sorted(maps.Keys(p))
}
