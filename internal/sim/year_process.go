package sim

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/sqlite"
)

// soldier is the store as one process of a long run sees it: it can be killed.
// Whoever asks again and again, and would hear nothing new, is kept waiting for
// his answer: a year of looks every second would be nothing else.
type soldier struct {
	*sqlite.Store
	y    *year
	gone chan struct{}
	kill func()

	armed atomic.Int32 // 1: it dies before its next firing is done, 2: when it is, 3: while what it fired runs

	mu    sync.Mutex
	dice  dice
	until time.Time // nothing is due before
}

// mortal is what its engine sees of it.
type mortal struct {
	stint.Store
	stint.Scheduler
}

func (y *year) newSoldier(name string) *soldier {
	s := &soldier{Store: y.store, y: y, gone: make(chan struct{}), dice: roll(y.seed, name, 0)}
	s.kill = sync.OnceFunc(func() { close(s.gone) })
	return s
}

func (s *soldier) dead() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

// hold passes a time; false says that the caller gave up or died.
func (s *soldier) hold(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-s.gone:
	}
	return false
}

// march does what a living process asks for, and answers if it still lives.
func march[T any](s *soldier, do func() (T, error)) (answer T, err error) {
	if s.dead() {
		return answer, errGone
	}
	answer, err = do()
	if s.dead() {
		err = errGone
	}
	return answer, err
}

// FireSchedules implements [stint.Scheduler]. What was read may be old when it is
// planned, refused, done without an answer, done twice, or the process's end.
func (s *soldier) FireSchedules(ctx context.Context, f stint.Firing, plan stint.PlanFunc) (stint.Fired, error) {
	s.mu.Lock()
	wait, fault, slow := time.Until(s.until), s.dice.IntN(100), s.dice.chance(3)
	lag := s.dice.between(0, 3*time.Second)
	s.mu.Unlock()
	if wait > 0 && !s.hold(ctx, wait) {
		return stint.Fired{}, errLost
	}
	slowly := func(i *stint.ScheduleInfo, now time.Time) (stint.Plan, error) {
		if slow {
			slow = false
			s.hold(ctx, lag)
		}
		if s.armed.CompareAndSwap(1, 0) {
			s.kill()
		}
		return plan(i, now)
	}
	f.Limit = min(f.Limit, 25) // in several turns where more are due
	fire := func() (stint.Fired, error) { return s.y.scheduler.FireSchedules(ctx, f, slowly) }
	fired, err := march(s, fire)
	if len(fired.Jobs) > 0 && s.armed.CompareAndSwap(2, 0) {
		s.kill()
		return stint.Fired{}, errGone
	}
	if len(fired.Jobs) > 0 && s.armed.CompareAndSwap(3, 0) {
		time.AfterFunc(lag/3, s.kill)
	}
	switch {
	case err != nil:
	case len(fired.Jobs) > 0 && fault == 0:
		return stint.Fired{}, errLost
	case len(fired.Jobs) > 0 && fault == 1:
		fired, err = march(s, fire)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Time{}
	if err == nil && fired.Next > 0 {
		s.until = time.Now().Add(fired.Next)
	}
	return fired, err
}

// DeclareSchedules implements [stint.Scheduler].
func (s *soldier) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	_, err := march(s, func() (none, error) { return none{}, s.y.scheduler.DeclareSchedules(ctx, by, schedules) })
	return err
}

// Look implements [stint.Claimer].
func (s *soldier) Look(ctx context.Context, known stint.KnownLanes) ([]stint.Sight, error) {
	return march(s, func() ([]stint.Sight, error) { return s.Store.Look(ctx, known) })
}

// Claim implements [stint.Claimer].
func (s *soldier) Claim(ctx context.Context, req stint.ClaimRequest) (stint.Claim, error) {
	return march(s, func() (stint.Claim, error) { return s.Store.Claim(ctx, req) })
}

// Fetch implements [stint.Claimer].
func (s *soldier) Fetch(ctx context.Context, at []stint.Position) ([]stint.Entry, error) {
	return march(s, func() ([]stint.Entry, error) { return s.Store.Fetch(ctx, at) })
}

// Finish implements [stint.Finisher].
func (s *soldier) Finish(ctx context.Context, engine stint.Token, claims []stint.ClaimRef, done []stint.Execution) (int, error) {
	return march(s, func() (int, error) { return s.Store.Finish(ctx, engine, claims, done) })
}

// Join implements [stint.Roster]. All of these processes are one, which would
// vouch for the dead.
func (s *soldier) Join(ctx context.Context, e stint.EngineInfo, kinds []stint.Declaration) error {
	e.BootID = ""
	_, err := march(s, func() (none, error) {
		err := s.Store.Join(ctx, e, kinds)
		s.Release(e.Token)
		return none{}, err
	})
	return err
}

// Beat implements [stint.Roster].
func (s *soldier) Beat(ctx context.Context, engine stint.Token, b stint.Beat) (stint.Orders, error) {
	return march(s, func() (stint.Orders, error) { return s.Store.Beat(ctx, engine, b) })
}

// Bury implements [stint.Roster].
func (s *soldier) Bury(ctx context.Context, b stint.Burial, judge func(e *stint.Entry, begun bool) stint.Execution) (int, error) {
	return march(s, func() (int, error) {
		n, err := s.Store.Bury(ctx, b, judge)
		if err == nil {
			s.y.buried.Add(1)
		}
		return n, err
	})
}

// Engines implements [stint.Roster].
func (s *soldier) Engines(ctx context.Context) ([]stint.EngineInfo, error) {
	s.hold(ctx, yearTTL/8)
	return march(s, func() ([]stint.EngineInfo, error) { return s.Store.Engines(ctx) })
}

// Promote implements [stint.Promoter]. Nothing ever waits.
func (s *soldier) Promote(ctx context.Context, from time.Time, limit int) (stint.Promotion, error) {
	s.hold(ctx, yearTTL/2)
	return march(s, func() (stint.Promotion, error) { return s.Store.Promote(ctx, from, limit) })
}
