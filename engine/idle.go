package engine

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// awakeAfter is after how long without sleep an engine says that it need not
// be rung for every job any more.
const awakeAfter = 2 * time.Second

// idle is how an engine without work waits: for the bell, and in case nobody
// rings it, for a while that depends on whether the store can ring at all. It
// belongs to the claim stage.
type idle struct {
	s     *session
	next  time.Duration // how long to sleep where nobody rings
	told  bool          // the store believes that the engine sleeps
	slept time.Time     // when it last did
}

func (s *session) newIdle() *idle { return &idle{s: s} }

// over is called when there is work.
func (i *idle) over(ctx context.Context) {
	i.next = 0
	if i.told && time.Since(i.slept) > awakeAfter {
		i.tell(ctx, false)
	}
}

// wait sleeps, and returns the bell that it was woken by: the session's, or
// another one, if there is one. An engine that has not yet
// told its store that it sleeps does that instead, and has to look once more:
// for what was enqueued before, nobody may have rung.
func (i *idle) wait(ctx context.Context, other *bell) (rang *bell) {
	defer func() { i.slept = time.Now() }()
	d := i.s.config.Poll
	switch {
	case !i.s.hears.Load():
		// Nobody calls: look often at first, then less.
		i.next = min(max(2*i.next, i.s.config.PollFrom), i.s.config.PollTo)
		d = i.next
	case !i.told && i.tell(ctx, true):
		return nil
	}
	switch rang = i.s.bell.waitBeside(ctx, d, other); {
	case rang == i.s.bell:
		i.next = 0
	case rang == nil && ctx.Err() == nil:
		i.s.meters.listener.with(func(l *stint.ListenerMetrics) { l.Timeouts++ })
	}
	return rang
}

// tell says whether the engine sleeps, where the store wants to know, and
// reports whether the store now believes that it does. Should the answer be
// lost, the polls are the floor.
func (i *idle) tell(ctx context.Context, asleep bool) bool {
	sleeper, ok := i.s.store.(stint.Sleeper)
	if !ok {
		return false
	}
	i.told = false
	limit, cancel := i.s.limit(ctx)
	defer cancel()
	if err := sleeper.Asleep(limit, i.s.token, asleep); err != nil {
		i.s.trouble(ctx, "say whether it sleeps", err)
		return false
	}
	i.told = asleep
	return asleep
}
