package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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

	// scheduleShare is the least number of times that the space between looks is
	// longer than they are. While something pins the database's horizon, each
	// steps over all that the schedules have been since.
	scheduleShare = 10

	// scheduleAgain is when it tries again to plan what it could not.
	scheduleAgain = 30 * time.Second
)

// fire makes the jobs of schedules when they are due by the store's clock. Every engine
// does, without a lease: the store sees to it that each occurrence makes one job.
// It begins by declaring those of the program.
func (s *session) fire(ctx context.Context) {
	store, ok := s.store.(stint.Scheduler)
	if !ok {
		if len(s.mux.Schedules()) > 0 {
			s.trouble(ctx, "declare schedules", stint.ErrNoScheduler)
		}
		return
	}
	planner := stint.NewPlanner(s.mux.Recurrences())
	plan := (&asker{planner: planner, busy: map[string]bool{}}).plan
	if !s.declare(ctx, store, planner.Functions(), plan) {
		return
	}
	puzzles := puzzles{}
	for wait := newBackoff(); ctx.Err() == nil; {
		limit, cancel := s.limit(ctx)
		began := time.Now()
		fired, err := store.FireSchedules(limit, stint.Firing{
			Limit: scheduleBatch, Functions: planner.Functions(), Except: puzzles.names(time.Now()),
		}, plan)
		cancel()
		if err != nil {
			s.trouble(ctx, "fire schedules", err)
			wait.sleep(ctx)
			continue
		}
		wait.reset()
		for _, name := range slices.Sorted(maps.Keys(fired.Problems)) {
			puzzles[name] = time.Now().Add(scheduleAgain)
			s.troubleAbout(ctx, "plan the schedule", name, fired.Problems[name])
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
		now := time.Now()
		if s.schedulebell.wait(ctx, next) {
			pause(ctx, min(time.Until(now.Add(next)), max(scheduleSpacing, scheduleShare*now.Sub(began))))
		}
	}
}

// declare stores the schedules of the program, and tries until that is done; false
// says that ctx ended before. One that can never be stored must not keep the others
// from being declared and fired.
func (s *session) declare(ctx context.Context, store stint.Scheduler, functions []string, plan stint.PlanFunc) bool {
	todo := s.mux.Schedules()
	together := true
	for wait := newBackoff(); len(todo) > 0; {
		batch := todo
		if !together {
			batch = todo[:1]
		}
		limit, cancel := s.limit(ctx)
		err := stint.Declare(limit, store, s.config.Instance, batch, functions, plan)
		cancel()
		switch {
		case err == nil:
			todo = todo[len(batch):]
			wait.reset()
			continue
		case errors.Is(err, stint.ErrUnstorable) && len(batch) > 1:
			together = false
			continue
		case errors.Is(err, stint.ErrUnstorable):
			s.troubleAbout(ctx, "declare the schedule", batch[0].Name, err)
			todo = todo[1:]
			continue
		}
		s.trouble(ctx, "declare schedules", err)
		if !wait.sleep(ctx) {
			return false
		}
	}
	return true
}

// asker plans schedules, and asks recurrence functions aside. One that does not
// answer is left to itself, and not asked anew while it hangs: other schedules go
// on.
type asker struct {
	planner *stint.Planner

	mu   sync.Mutex
	busy map[string]bool // schedules whose function has not answered
}

// longestRecurrence is how long a recurrence function may take.
const longestRecurrence = time.Second

func (a *asker) plan(s *stint.ScheduleInfo, now time.Time) (stint.Plan, error) {
	name, asked := s.Recurrence.Func()
	if !asked {
		return a.planner.Plan(s, now)
	}
	if !a.begin(s.Name) {
		return stint.Plan{}, fmt.Errorf("the recurrence function %q has still not answered", name)
	}
	type answer struct {
		plan stint.Plan
		err  error
	}
	c := make(chan answer, 1)
	go func() {
		defer a.end(s.Name)
		plan, err := a.planner.Plan(s, now)
		c <- answer{plan, err}
	}()
	timer := time.NewTimer(longestRecurrence)
	defer timer.Stop()
	select {
	case got := <-c:
		return got.plan, got.err
	case <-timer.C:
		return stint.Plan{}, fmt.Errorf("the recurrence function %q did not answer within %v", name, longestRecurrence)
	}
}

func (a *asker) begin(schedule string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.busy[schedule] {
		return false
	}
	a.busy[schedule] = true
	return true
}

func (a *asker) end(schedule string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.busy, schedule)
}

// puzzles are schedules that this engine could not plan, and until when it leaves
// them to others.
type puzzles map[string]time.Time

func (p puzzles) names(now time.Time) []string {
	maps.DeleteFunc(p, func(_ string, until time.Time) bool { return now.After(until) })
	return slices.Sorted(maps.Keys(p))
}
