package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

const (
	// watchEvery is how often each engine looks at the others. In a fleet of more than twenty, where each look
	// reads more and others look in between, it waits longer, up to five seconds or five sixths of the time to live.
	watchEvery = time.Second

	// orphansEvery is how many looks pass between two searches for what burials left.
	orphansEvery = 60

	// longestBurial bounds a burial, and a recovery of orphans: far longer than either takes, but a
	// connection may stop answering.
	longestBurial = 5 * time.Minute
)

// watch buries dead engines. An engine counts as dead only when its last beat is older than its
// time to live by the store's clock, and this engine saw that beat unchanged for as long by its
// own. Otherwise after an outage, a clock change or a laptop's sleep all would look dead, and the
// first engine back would bury all others. An engine whose process is proven to be gone is buried
// at once; one that the store knows to be alive is left alone.
func (s *session) watch(ctx context.Context) {
	seen := observedBeats{}
	next := watchEvery
	for looks := 0; ; looks++ {
		if looks%orphansEvery == orphansEvery-1 {
			s.recoverOrphans(ctx)
		}
		s.settleFormer(ctx)
		limit, cancel := s.limit(ctx)
		roster, err := s.store.Engines(limit)
		cancel()
		if err != nil {
			s.trouble(ctx, "look at the roster", err)
			clear(seen) // after a gap nothing is proven
		} else {
			seen.update(roster, time.Now())
			peers := peersOf(roster, s.config.Queues)
			s.peers.Store(&peers)
			s.guests.see(roster)
			next = min(watchEvery*time.Duration(min(max(len(roster), 20), 100))/20, max(watchEvery, s.config.TimeToLive*5/6))
			for _, e := range roster {
				s.buryIfDead(ctx, e, seen[e.Token])
			}
		}
		if !sleep(ctx, min(spread(next), seen.untilOneIsDead(roster))) {
			return
		}
	}
}

// peersOf returns the engines of a roster that work on exactly these queues.
func peersOf(roster []store.EngineInfo, queues []string) (peers []store.EngineID) {
	for _, e := range roster {
		if slices.Equal(e.Queues, queues) {
			peers = append(peers, e.Token)
		}
	}
	return peers
}

// countPeers returns how many engines work on the same queues as this one, itself included.
func (s *session) countPeers() int {
	if peers := s.peers.Load(); peers != nil {
		return len(*peers)
	}
	return 0
}

// shared returns how long to wait for something that any engine of the same queues would do. In a
// fleet of more than three that is longer, up to 33 times in the mean, since others do it in between:
// at random, or engines that were started together would all do it at once. Where nothing is
// notified, it is as long as alone.
func (s *session) shared(wait time.Duration) time.Duration {
	if !s.listening.Load() {
		return wait
	}
	more := wait * time.Duration(min(max(s.countPeers(), 3), 100)-3) / 3
	return wait + rand.N(2*more+1)
}

// observedBeats are the beats of other engines as this one saw them.
type observedBeats map[store.EngineID]*observedBeat

type observedBeat struct {
	beat    time.Time // by the store's clock
	since   time.Time // when this beat was first seen, by our clock
	blocked time.Time // since when its burial is blocked
}

func (l observedBeats) update(roster []store.EngineInfo, now time.Time) {
	there := map[store.EngineID]bool{}
	for _, e := range roster {
		there[e.Token] = true
		if old := l[e.Token]; old == nil || !old.beat.Equal(e.Beat) {
			l[e.Token] = &observedBeat{beat: e.Beat, since: now}
		}
	}
	for token := range l {
		if !there[token] {
			delete(l, token)
		}
	}
}

// untilOneIsDead returns how long it is until the next of those engines counts as dead whose beats have been
// missing for half of their times to live or longer; very long if there is none.
func (l observedBeats) untilOneIsDead(roster []store.EngineInfo) time.Duration {
	until := time.Duration(math.MaxInt64)
	for _, e := range roster {
		if seen := l[e.Token]; seen != nil {
			if left := e.TimeToLive - time.Since(seen.since); left > 0 && left <= e.TimeToLive/2 {
				until = min(until, left)
			}
		}
	}
	return until
}

func (s *session) buryIfDead(ctx context.Context, e store.EngineInfo, seen *observedBeat) {
	unless, why := e.TimeToLive, store.WhySilent
	switch {
	case e.Token == s.token, e.Held:
		return
	case e.Gone, s.me.provesDead(e):
		unless, why = 0, store.WhyProcessGone
	case time.Since(seen.since) < e.TimeToLive:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestBurial)
	defer cancel()
	scene, err := inspectCrash(ctx, s.store, e.Token)
	if err != nil {
		s.troubleAbout(ctx, "see what was held by", e.Instance, err)
		return
	}
	began, lost := 0, lostAttempts{}
	judge := lost.judge(scene, &s.clock)
	n, err := s.store.Bury(ctx, store.Burial{Engine: e.Token, Unless: unless, Silent: time.Since(seen.since), Why: why, By: s.token}, func(entry *store.Entry, begun bool) store.Completion {
		if begun {
			began++
		}
		return judge(entry, begun)
	})
	switch {
	case err == nil:
		s.workCameBack()
		s.wakeups.leasesFree()
		s.emit(event.Event{Type: event.EventBurial, Engine: s.token, Other: &e, Count: n, Begun: began}) // listeners may take their time
		s.reportLost(lost)
	case errors.Is(err, store.ErrBurialBlocked):
		s.terminateBlockers(ctx, e, seen)
	case errors.Is(err, store.ErrBuried), errors.Is(err, store.ErrAlive):
		// Another engine was first, or it beat after all.
	default:
		s.troubleAbout(ctx, "bury", e.Instance, err)
	}
}

// recoverOrphans returns the entries that interrupted burials left. What ran then is not known any
// more.
func (s *session) recoverOrphans(ctx context.Context) {
	recoverer, ok := s.store.(store.OrphanRecoverer)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestBurial)
	defer cancel()
	lost := lostAttempts{}
	n, err := recoverer.Sweep(ctx, lost.judge(crashScene{}, &s.clock))
	if err != nil {
		s.trouble(ctx, "recover what burials left", err)
	}
	if n > 0 {
		s.workCameBack()
		s.emit(event.Event{Type: event.EventBurial, Engine: s.token, Count: n})
		s.reportLost(lost)
	}
}

// workCameBack has the claim stage look at once: what dead engines held goes first.
func (s *session) workCameBack() {
	s.lookAgain.Store(true)
	s.wakeups[work].notify()
}

// terminateBlockers ends the database sessions that block a burial, after they did so for another
// time to live: a frozen client, or a connection that was cut after the fence.
func (s *session) terminateBlockers(ctx context.Context, e store.EngineInfo, seen *observedBeat) {
	if seen.blocked.IsZero() {
		seen.blocked = time.Now()
	}
	terminator, ok := s.store.(store.SessionTerminator)
	if !ok || time.Since(seen.blocked) < e.TimeToLive {
		return
	}
	if _, err := terminator.Evict(ctx, e.Token); err != nil {
		s.troubleAbout(ctx, "end the sessions of", e.Instance, err)
	}
}

// Bury takes an engine out of the roster by hand, dead or alive. What it held runs again elsewhere,
// as after a missed beat. It returns how many entries that was. An engine that is alive cancels its
// handlers when it notices, records nothing more, and joins again. The error matches
// [store.ErrBuried] when there is no such engine.
func Bury(ctx context.Context, st store.Store, token store.EngineID, why string) (int, error) {
	return buryWith(ctx, st, store.Burial{Engine: token, Why: why})
}

// BuryDead takes an engine out of the roster if it did not beat within its time to live, which somebody watched: see
// [Bury]. The error matches [store.ErrAlive] if it did.
func BuryDead(ctx context.Context, st store.Store, token store.EngineID, timeToLive time.Duration) (int, error) {
	return buryWith(ctx, st, store.Burial{Engine: token, Unless: timeToLive, Silent: timeToLive, Why: store.WhySilent})
}

func buryWith(ctx context.Context, st store.Store, b store.Burial) (int, error) {
	token := b.Engine
	roster, err := st.Engines(ctx)
	if err != nil {
		return 0, err
	}
	for _, e := range roster {
		if e.Token != token {
			continue
		}
		scene, err := inspectCrash(ctx, st, e.Token)
		if err != nil {
			return 0, err
		}
		var c clock
		c.sample(ctx, st)
		return st.Bury(ctx, b, lostAttempts{}.judge(scene, &c))
	}
	return 0, fmt.Errorf("engine %d: %w", token, store.ErrBuried)
}
