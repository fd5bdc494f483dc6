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
	"github.com/stint-go/stint/store"
)

const (
	// scheduleBatch bounds what is fired in one transaction.
	scheduleBatch = 200

	// scheduleEvery is how often an engine looks for schedules that it was not notified of, or that
	// a change of the database's clock made due.
	scheduleEvery = 2 * time.Second

	// scheduleSpacing spaces the looks out: every enqueue sends a notification.
	scheduleSpacing = 50 * time.Millisecond

	// scheduleShare is how many times longer than a look the space between looks is at least. While
	// something pins the database's horizon, each look steps over all versions of the schedules
	// since then.
	scheduleShare = 10

	// scheduleAgain is when the engine tries again to plan a schedule that it could not plan.
	scheduleAgain = 30 * time.Second
)

// fire makes the jobs of schedules when they are due by the store's clock. Every engine does,
// without a lease: the store makes sure that each occurrence makes one job. First it declares the
// schedules of the program. It ends when the engine is told to stop or to drain.
func (s *session) fire(ctx context.Context) {
	st, ok := s.store.(store.Scheduler)
	if !ok {
		if len(s.mux.Schedules()) > 0 {
			s.trouble(ctx, "declare schedules", fmt.Errorf("the store %T keeps no schedules: %w", s.store, errors.ErrUnsupported))
		}
		return
	}
	planner := store.NewPlanner(s.mux.Recurrences())
	plan := (&planCaller{planner: planner}).plan
	if !s.declare(ctx, st, planner.Functions(), plan) {
		return
	}
	unplanned := unplannable{}
	s.repeat(ctx, schedules, "fire schedules", func(limit context.Context) (pause, error) {
		began := time.Now()
		fired, err := st.FireSchedules(limit, store.FireRequest{
			Limit: scheduleBatch, Functions: planner.Functions(), Except: unplanned.names(began),
		}, plan)
		if err != nil {
			return pause{}, err
		}
		for _, name := range slices.Sorted(maps.Keys(fired.Problems)) {
			unplanned[name] = time.Now().Add(scheduleAgain)
			s.troubleAbout(ctx, "plan the schedule", name, fired.Problems[name])
		}
		if len(fired.Jobs) > 0 {
			s.wakeups[work].notify()
		}
		next := s.shared(scheduleEvery)
		switch {
		case fired.Next > 0:
			next = min(next, fired.Next)
		case fired.Next == 0 && fired.Moved > 0:
			next = 0
		case fired.Next == 0:
			next = promotePause // other engines were faster, or this program can plan none of them
		}
		return pause{next, max(scheduleSpacing, scheduleShare*time.Since(began))}, nil
	})
}

// declare stores the schedules of the program, and tries until that is done; false means that ctx
// ended before. A schedule that can never be stored does not keep the others from being declared
// and fired.
func (s *session) declare(ctx context.Context, st store.Scheduler, functions []string, plan store.PlanFunc) bool {
	todo := s.mux.Schedules()
	together := true
	for wait := new(backoff); len(todo) > 0; {
		batch := todo
		if !together {
			batch = todo[:1]
		}
		limit, cancel := s.limit(ctx)
		err := store.Declare(limit, st, s.config.Instance, batch, functions, plan)
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

// planCaller plans schedules, and calls recurrence functions in goroutines of their own. A function
// that does not return is not called again while it hangs; other schedules go on.
type planCaller struct {
	planner *store.Planner
	busy    sync.Map // schedules whose function has not returned
}

const longestRecurrence = time.Second

func (a *planCaller) plan(s *store.ScheduleInfo, now time.Time) (store.Plan, error) {
	name, asked := s.Recurrence.Func()
	if !asked {
		return a.planner.Plan(s, now)
	}
	if _, hangs := a.busy.LoadOrStore(s.Name, true); hangs {
		return store.Plan{}, fmt.Errorf("the recurrence function %q has still not answered", name)
	}
	type answer struct {
		plan store.Plan
		err  error
	}
	c := make(chan answer, 1)
	go func() {
		defer a.busy.Delete(s.Name)
		plan, err := a.planner.Plan(s, now)
		c <- answer{plan, err}
	}()
	timer := time.NewTimer(longestRecurrence)
	defer timer.Stop()
	select {
	case got := <-c:
		return got.plan, got.err
	case <-timer.C:
		return store.Plan{}, fmt.Errorf("the recurrence function %q did not answer within %v", name, longestRecurrence)
	}
}

// unplannable are schedules that this engine could not plan, and until when it leaves them to other
// engines.
type unplannable map[string]time.Time

func (p unplannable) names(now time.Time) []string {
	maps.DeleteFunc(p, func(_ string, until time.Time) bool { return now.After(until) })
	return slices.Sorted(maps.Keys(p))
}
