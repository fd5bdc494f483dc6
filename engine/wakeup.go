package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// wakeup wakes one goroutine. A notification while none waits is kept: the next wait returns at
// once, so that nothing is lost between looking and sleeping.
type wakeup struct{ c chan struct{} }

func newWakeup() *wakeup { return &wakeup{make(chan struct{}, 1)} }

// topic says what a loop waits for that the store notifies of.
type topic int

const (
	work          topic = iota // entries to claim
	dueTimes                   // a waiting job that is due earlier than was known
	cancellations              // cancelled jobs
	failures                   // failures to decide about
	pausedQueues               // paused or resumed queues
	schedules                  // changed schedules
	excess                     // more work than those who were drawn for it can take
	leases                     // free leases: a wakeup for each singleton task, from here on
)

// wakeups are the loops of a session, by topic.
type wakeups []*wakeup

func newWakeups(tasks int) wakeups {
	w := make(wakeups, int(leases)+tasks)
	for i := range w {
		w[i] = newWakeup()
	}
	return w
}

// notifyAll wakes all loops, the claim stage last, so that it is the first to run.
func (w wakeups) notifyAll() {
	for _, one := range slices.Backward(w) {
		one.notify()
	}
}

// leasesFree wakes the loops that wait for leases.
func (w wakeups) leasesFree() { w[leases:].notifyAll() }

func (b *wakeup) notify() {
	select {
	case b.c <- struct{}{}:
	default:
	}
}

// wait sleeps until a notification, for d at most, or until ctx ends. It reports whether there was
// a notification.
func (b *wakeup) wait(ctx context.Context, d time.Duration) bool {
	return b.waitEither(ctx, d, nil) == b
}

// waitEither waits for either of two wakeups, of which other may be nil, and returns the one that
// was notified, or nil.
func (b *wakeup) waitEither(ctx context.Context, d time.Duration, other *wakeup) *wakeup {
	var beside chan struct{}
	if other != nil {
		beside = other.c
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-b.c:
		return b
	case <-beside:
		return other
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}

// pause is what a loop does until its next round.
type pause struct {
	next    time.Duration // how long it waits for a notification; 0 for not at all
	spacing time.Duration // how long after this one, at least, if there is a notification: many may come
}

// repeat calls round until ctx ends, each time with the limit of a call to the store. It reports
// errors and tries again.
func (s *session) repeat(ctx context.Context, t topic, doing string, round func(context.Context) (pause, error)) {
	for wait := new(backoff); ctx.Err() == nil; {
		limit, cancel := s.limit(ctx)
		p, err := round(limit)
		cancel()
		if err != nil {
			s.trouble(ctx, doing, err)
			wait.sleep(ctx)
			continue
		}
		wait.reset()
		ended := time.Now()
		if p.next > 0 && s.wakeups[t].wait(ctx, p.next) {
			sleep(ctx, time.Until(ended.Add(min(p.spacing, p.next))))
		}
	}
}

// listen wakes all loops whenever the store has news, and once after each new connection, so that
// what came meanwhile is found. A connection that soon breaks counts as a failed one: the next try
// waits longer and longer.
func (s *session) listen(ctx context.Context) {
	l, ok := s.store.(store.Listener)
	if !ok {
		return
	}
	wait := new(backoff)
	for began := false; ctx.Err() == nil; {
		first, since := true, time.Now()
		err := l.Listen(ctx, func(news store.News) {
			s.meters.with(func(m *report.Metrics) {
				switch {
				case !first:
					m.Listener.Notifications++
				case began:
					m.Listener.Reconnects++
				}
			})
			first, began = false, true
			if !s.listening.Swap(true) {
				s.guests.listens(true)
			}
			s.hear(news)
			s.guests.hear(news)
		})
		s.listening.Store(false)
		s.guests.listens(false)
		s.wakeups[work].notify() // it may be waiting for long, believing that it would be called
		if err != nil {
			s.trouble(ctx, "listen", err)
		}
		if time.Since(since) > longestBackoff {
			wait.reset()
		}
		wait.sleep(ctx)
	}
}

// hear wakes the loops that are concerned.
func (s *session) hear(news store.News) {
	switch {
	case news.Permits != "":
		if store.LimitOf(news.Permits) == stint.QueueLimit {
			s.passedOver.Store(true) // the lanes of a queue with a limit are others to this engine
			s.lookAgain.Store(true)
			s.wakeups[work].notify()
		}
		s.permits.hear(news)
	case news.Due:
		if news.Lot == 0 || s.draws(news.Lot) {
			s.wakeups[dueTimes].notify()
		}
	case !news.Ready:
		s.lookAgain.Store(true) // perhaps
		s.permits.mayHaveChanged()
		s.wakeups.notifyAll()
	case news.Lot == 0:
		s.wakeups[work].notify()
	case s.draws(news.Lot):
		s.wakeDrawn()
	}
}

// wakeDrawn has the session look for work of which few were notified.
func (s *session) wakeDrawn() {
	s.drawn.Store(true)
	if !s.pools.hasRoom(time.Now()) {
		s.passOn()
	}
	s.wakeups[work].notify()
}

// drawFew is how many engines of a fleet look when jobs are enqueued: two, since one may just have
// died.
const drawFew = 2

// newFor is how long after it joined an engine may be unknown to others: they look at the roster
// every five seconds at the latest.
const newFor = 8 * time.Second

// isNew reports whether others may not know the engine yet.
func (s *session) isNew() bool { return time.Since(s.beat) < newFor }

// draws reports whether this engine is one of the few that a number draws. All engines of the same
// queues draw the same ones, as far as they know each other. One that others may not know yet looks
// whatever the number is: they do not count on it, nor tell it of what is too much for them.
func (s *session) draws(lot uint64) bool {
	peers := s.peers.Load()
	if peers == nil || s.isNew() {
		return true
	}
	mine, before := draw(s.token, lot), 0
	for _, peer := range *peers {
		if draw(peer, lot) < mine {
			before++
		}
	}
	return before < drawFew
}

// draw mixes an engine's token and a number, as the finalizer of SplitMix64 does (Steele, Lea and
// Flood, 2014).
func draw(engine store.EngineID, lot uint64) uint64 {
	z := uint64(engine) ^ lot*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// passOn has others notified of what this engine was drawn for.
func (s *session) passOn() {
	if s.drawn.Swap(false) && s.countPeers() > drawFew {
		s.tooMuch.Store(true)
		s.wakeups[excess].notify()
	}
}

// shareWork notifies all engines of what was too much for those that were drawn. If that fails, they
// find it when they poll.
func (s *session) shareWork(ctx context.Context) {
	s.repeat(ctx, excess, "notify others of work", func(ctx context.Context) (pause, error) {
		p := pause{next: time.Hour, spacing: 10 * time.Millisecond}
		if ringer, ok := s.store.(store.IdleNotifier); ok && s.tooMuch.Swap(false) {
			return p, ringer.Ring(ctx)
		}
		return p, nil
	})
}

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
func (i *idle) wait(ctx context.Context, other *wakeup) (by *wakeup) {
	defer func() { i.slept = time.Now() }()
	d := i.s.config.Poll
	switch {
	case !i.s.listening.Load():
		// There are no notifications: look often at first, then less.
		i.next = min(max(2*i.next, i.s.config.PollFrom), i.s.config.PollTo)
		d = i.next
	case !i.asleep && i.tellStore(ctx, true):
		return nil
	default:
		d = i.s.shared(d)
	}
	if other != nil && !i.s.permits.none() {
		d = min(d, tryPermits)
	}
	switch by = i.s.wakeups[work].waitEither(ctx, d, other); {
	case by == i.s.wakeups[work]:
		i.next = 0
		i.takeTurn(ctx)
	case by == nil && ctx.Err() == nil:
		i.s.meters.with(func(m *report.Metrics) { m.Listener.Timeouts++ })
	}
	return by
}

// takeTurn has the engines of a large fleet look one after the other where all were notified. The first of them does so about a millisecond later; for the rest, the next notifications
// come meanwhile, so that all of these together cost each engine one look.
func (i *idle) takeTurn(ctx context.Context) {
	if peers := i.s.countPeers(); peers > 10 && i.s.listening.Load() && !i.s.drawn.Load() {
		sleep(ctx, rand.N(time.Duration(min(peers, 100))*time.Millisecond))
		select {
		case <-i.s.wakeups[work].c: // the look that comes now is for this as well
		default:
		}
	}
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
