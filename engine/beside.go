package engine

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/store"
)

// guests are the sessions of engines beside this one ([Config.Beside]). They learn from it what each
// engine otherwise asks the store for: a program may have a thousand of them.
type guests struct {
	count atomic.Int64 // of them

	mu        sync.Mutex             // guards the rest
	groups    map[string]*guestGroup // by their queues
	listening bool
	paused    []string
}

// guestGroup are guests that work on the same queues, and draw the same lots.
type guestGroup struct {
	queues   []string
	sessions map[store.EngineID]*session
	peers    *[]store.EngineID // all engines of these queues; nil while that is unknown
}

// hostNews has a guest listen to its host until ctx ends.
func (s *session) hostNews(ctx context.Context) {
	g := &s.config.Beside.guests
	g.add(s)
	defer g.remove(s)
	<-ctx.Done()
}

func (g *guests) add(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := strings.Join(s.config.Queues, ",")
	if g.groups == nil {
		g.groups = map[string]*guestGroup{}
	}
	group := g.groups[key]
	if group == nil {
		group = &guestGroup{queues: s.config.Queues, sessions: map[store.EngineID]*session{}}
		g.groups[key] = group
	}
	group.sessions[s.token] = s
	g.count.Add(1)
	s.peers.Store(group.peers)
	s.pauses.update(g.paused)
	s.listening.Store(g.listening)
	s.wakeups.notifyAll() // there may have been news before
}

func (g *guests) remove(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	key := strings.Join(s.config.Queues, ",")
	group := g.groups[key]
	g.count.Add(-1)
	if delete(group.sessions, s.token); len(group.sessions) == 0 {
		delete(g.groups, key)
	}
	s.listening.Store(false)
}

// listens tells the guests whether the host hears of news. It has them look in any case.
func (g *guests) listens(yes bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.listening = yes
	for _, group := range g.groups {
		for _, s := range group.sessions {
			s.listening.Store(yes)
			s.wakeups.notifyAll()
		}
	}
}

// hear tells the guests of news. Of work, and of what may be work, it tells those of each group that are
// drawn: one look finds it for all.
func (g *guests) hear(news store.News) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if news.Due {
		return // the host promotes
	}
	lot := news.Lot
	if lot == 0 {
		lot = rand.Uint64()
	}
	for _, group := range g.groups {
		drawn := drawnOf(group.peers, lot)
		for _, s := range group.sessions {
			switch {
			case news.Permits != "":
				s.hear(news)
			case drawn == nil, s.isNew(), s.token == drawn[0], s.token == drawn[1]:
				if news.Ready {
					s.wakeDrawn()
				} else {
					s.hear(news)
				}
			case !news.Ready:
				s.permits.mayHaveChanged()
				s.wakeups[cancellations].notify()
			}
		}
	}
}

// drawnOf returns the engines that a lot draws of all with the same queues; nil if these are unknown.
func drawnOf(peers *[]store.EngineID, lot uint64) []store.EngineID {
	if peers == nil {
		return nil
	}
	first, second := store.EngineID(0), store.EngineID(0)
	var least, next uint64
	for _, peer := range *peers {
		switch d := draw(peer, lot); {
		case first == 0 || d < least:
			first, second, least, next = peer, first, d, least
		case second == 0 || d < next:
			second, next = peer, d
		}
	}
	return []store.EngineID{first, second}
}

// present reports whether somebody is there to take jobs.
func (s *session) present() bool { return s.config.Present == nil || s.config.Present() }

// mayTake reports whether a guest would take a job of a lane now.
func (s *session) mayTake(head store.LaneHead) bool {
	select {
	case <-s.stopping:
		return false
	case <-s.draining:
		return false
	default:
	}
	return s.runner(head.Kind) != nil && s.present() && s.pools.hasRoom(time.Now())
}

// any reports whether there are guests.
func (g *guests) any() bool { return g.count.Load() > 0 }

// leftToGuests reports whether a lane begins with a job that a guest would take now, of a kind that this engine does not
// perform: to claim it would be to pass it on.
func (s *session) leftToGuests(head store.LaneHead) bool {
	g := &s.guests
	if !g.any() || s.runner(head.Kind) != nil {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, group := range g.groups {
		if group.queues != nil && !slices.Contains(group.queues, head.Queue) {
			continue
		}
		for _, guest := range group.sessions {
			if guest.mayTake(head) {
				return true
			}
		}
	}
	return false
}

// see tells the guests of the engines in the roster.
func (g *guests) see(roster []store.EngineInfo) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, group := range g.groups {
		peers := peersOf(roster, group.queues)
		group.peers = &peers
		for _, s := range group.sessions {
			s.peers.Store(&peers)
		}
	}
}

// pause tells the guests which queues are paused.
func (g *guests) pause(queues []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.paused = queues
	for _, group := range g.groups {
		for _, s := range group.sessions {
			s.pausedNow(queues)
		}
	}
}

// askPauses has the list of paused queues looked up again, by the host of a guest.
func (s *session) askPauses() {
	if s.config.Beside == nil {
		s.wakeups[pausedQueues].notify()
	} else if host := s.config.Beside.current.Load(); host != nil {
		host.wakeups[pausedQueues].notify()
	}
}

// ErrNotBeside says that an engine beats by itself.
var ErrNotBeside = errors.New("engine: it is not beside another one")

// Beat sends a heartbeat of an engine beside another one, which lives as long as it is called: see
// [Config.Beside]. It returns when the heartbeat has arrived. The error matches [store.ErrBuried] if the
// engine is not in the roster.
func (e *Engine) Beat(ctx context.Context) error {
	_, _, s := e.liveness.read()
	switch {
	case e.config.Beside == nil:
		return ErrNotBeside
	case s == nil:
		return store.ErrBuried
	case s.announceWithin(ctx):
		return nil
	case s.work.Err() != nil:
		return store.ErrBuried
	}
	return cmp.Or(context.Cause(ctx), errors.New("engine: the heartbeat did not arrive"))
}

// LookAgain has an engine look whether it may take jobs now, since what Config.Present or Config.AtOnce answer
// has changed. It looks again by itself after at most a second.
func (e *Engine) LookAgain() {
	if _, _, s := e.liveness.read(); s != nil {
		s.capacity.notify()
	}
}

// Abandon ends an engine as if it were dead, without a trace in the store: it cancels its handlers with
// [stint.ErrFenced] and records nothing more, and Run returns. It stands in the roster until it is buried.
// That is for programs in which somebody else goes on for it, or whose part in its life is over.
func (e *Engine) Abandon() {
	if _, _, s := e.liveness.read(); s != nil {
		s.fence()
	}
}
