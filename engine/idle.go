package engine

import (
	"context"
	"time"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// awakeFor is how long an engine works without a pause before it tells the store that it need not
// be notified of every job.
const awakeFor = 2 * time.Second

// idle is how an engine without work waits: for a notification, and without one for a time that
// depends on whether the store can notify at all. It belongs to the claim stage.
type idle struct {
	s      *session
	next   time.Duration // how long to wait while the store cannot notify
	asleep bool          // the store was told that the engine sleeps
	slept  time.Time     // when it last did
}

func (s *session) newIdle() *idle { return &idle{s: s} }

// ended is called when there is work.
func (i *idle) ended(ctx context.Context) {
	i.next = 0
	if i.asleep && time.Since(i.slept) > awakeFor {
		i.tellStore(ctx, false)
	}
}

// wait sleeps, and returns the wakeup that ended it: the claim stage's, another one if given, or
// nil. An engine that has not told its store that it sleeps does that instead, and has to look once
// more: what was enqueued before may have sent no notification.
func (i *idle) wait(ctx context.Context, other *wakeup) (rang *wakeup) {
	defer func() { i.slept = time.Now() }()
	d := i.s.config.Poll
	switch {
	case !i.s.listening.Load():
		// Nobody calls: look often at first, then less.
		i.next = min(max(2*i.next, i.s.config.PollFrom), i.s.config.PollTo)
		d = i.next
	case !i.asleep && i.tellStore(ctx, true):
		return nil
	}
	switch rang = i.s.wakeups[work].waitEither(ctx, d, other); {
	case rang == i.s.wakeups[work]:
		i.next = 0
	case rang == nil && ctx.Err() == nil:
		i.s.meters.with(func(m *report.Metrics) { m.Listener.Timeouts++ })
	}
	return rang
}

// tellStore tells the store whether the engine sleeps, if the store wants to know, and reports
// whether the store now believes that it does. If the answer is lost, polling finds the work.
func (i *idle) tellStore(ctx context.Context, asleep bool) bool {
	sleeper, ok := i.s.store.(store.IdleNotifier)
	if !ok {
		return false
	}
	i.asleep = false
	limit, cancel := i.s.limit(ctx)
	defer cancel()
	if err := sleeper.Asleep(limit, i.s.token, asleep); err != nil {
		i.s.trouble(ctx, "say whether it sleeps", err)
		return false
	}
	i.asleep = asleep
	return asleep
}
