package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
)

const (
	// watchEvery is how often each engine looks at the others.
	watchEvery = time.Second

	// sweepEvery is after how many looks it looks for what burials left.
	sweepEvery = 60

	// longestBurial bounds one, and one sweep: far longer than either takes,
	// but a connection may go silent under it.
	longestBurial = 5 * time.Minute
)

// watch buries engines that are dead. One is believed dead only when its
// last beat is older than its time to live by the store's clock, and this
// engine saw that beat unchanged for as long by its own: otherwise an outage, a
// stepped clock or a waking laptop would make everybody look dead, and the
// first one back would bury all. An engine whose process is proven to be gone
// is buried at once, and one whose store knows that it lives is left alone.
func (s *session) watch(ctx context.Context) {
	// Engines of a fleet that started together do not all look at once.
	tick := time.NewTicker(watchEvery - rand.N(watchEvery/10))
	defer tick.Stop()
	seen := sightings{}
	for looks := 0; ; looks++ {
		if looks%sweepEvery == sweepEvery-1 {
			s.sweep(ctx)
		}
		limit, cancel := s.limit(ctx)
		roster, err := s.store.Engines(limit)
		cancel()
		if err != nil {
			s.trouble(ctx, "look at the roster", err)
			clear(seen) // what was not watched without a gap proves nothing
		} else {
			seen.note(roster, time.Now())
			for _, e := range roster {
				s.buryIfDead(ctx, e, seen[e.Token])
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// sightings are the beats of other engines as this one saw them.
type sightings map[stint.Token]*sighting

type sighting struct {
	beat    time.Time // by the store's clock
	since   time.Time // when this beat was first seen, by our clock
	blocked time.Time // since when its burial has been blocked
}

func (l sightings) note(roster []stint.EngineInfo, now time.Time) {
	there := map[stint.Token]bool{}
	for _, e := range roster {
		there[e.Token] = true
		if old := l[e.Token]; old == nil || !old.beat.Equal(e.Beat) {
			l[e.Token] = &sighting{beat: e.Beat, since: now}
		}
	}
	for token := range l {
		if !there[token] {
			delete(l, token)
		}
	}
}

func (s *session) buryIfDead(ctx context.Context, e stint.EngineInfo, seen *sighting) {
	unless := e.TimeToLive
	switch {
	case e.Token == s.token, e.Held:
		return
	case e.Gone, s.me.provesDead(e):
		unless = 0
	case time.Since(seen.since) < e.TimeToLive:
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestBurial)
	defer cancel()
	scene, err := inspect(ctx, s.store, e.Token)
	if err != nil {
		s.troubleAbout(ctx, "see what was held by", e.Instance, err)
		return
	}
	began, lost := 0, casualties{}
	n, err := s.store.Bury(ctx, stint.Burial{Engine: e.Token, Unless: unless, Why: "stopped beating"}, func(entry *stint.Entry, begun bool) stint.Execution {
		if begun {
			began++
		}
		x := stint.Conclude(entry, scene.judge(entry, begun), s.clock.at(time.Now()), random01())
		lost.note(entry, x)
		return x
	})
	switch {
	case err == nil:
		s.emit(stint.Event{Type: stint.EventBurial, Engine: s.token, Other: &e, Count: n, Begun: began})
		s.bell.ring()
		s.ringLeases()
		s.mourn(lost)
	case errors.Is(err, stint.ErrBurialBlocked):
		s.unblock(ctx, e, seen)
	case errors.Is(err, stint.ErrBuried), errors.Is(err, stint.ErrAlive):
		// Somebody else was first, or it beat after all.
	default:
		s.troubleAbout(ctx, "bury", e.Instance, err)
	}
}

// sweep looks through what burials that were cut short left behind. Nobody
// knows any more what was running then.
func (s *session) sweep(ctx context.Context) {
	sweeper, ok := s.store.(stint.Sweeper)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, longestBurial)
	defer cancel()
	lost := casualties{}
	n, err := sweeper.Sweep(ctx, func(e *stint.Entry, begun bool) stint.Execution {
		x := stint.Conclude(e, scene{}.judge(e, begun), s.clock.at(time.Now()), random01())
		lost.note(e, x)
		return x
	})
	if err != nil {
		s.trouble(ctx, "sweep up behind burials", err)
	}
	if n > 0 {
		s.emit(stint.Event{Type: stint.EventBurial, Engine: s.token, Count: n})
		s.bell.ring()
		s.mourn(lost)
	}
}

// unblock ends the sessions that keep an engine from being buried, once they
// have done so for another time to live: a frozen client, a connection that
// was cut behind the fence.
func (s *session) unblock(ctx context.Context, e stint.EngineInfo, seen *sighting) {
	if seen.blocked.IsZero() {
		seen.blocked = time.Now()
	}
	evicter, ok := s.store.(stint.Evicter)
	if !ok || time.Since(seen.blocked) < e.TimeToLive {
		return
	}
	if _, err := evicter.Evict(ctx, e.Token); err != nil {
		s.troubleAbout(ctx, "end the sessions of", e.Instance, err)
	}
}
