package engine

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// lanes is what an engine learned about lanes from its looks.
type lanes struct {
	mux     *stint.Mux
	queues  []string        // nil: every queue
	order   func() []string // Config.QueueOrder; nil for none
	sorted  []string        // what it answered last
	known   map[store.LaneID]store.Lane
	foreign map[store.LaneID]bool
}

func newLanes(mux *stint.Mux, queues []string) *lanes {
	return &lanes{mux: mux, queues: queues, known: map[store.LaneID]store.Lane{}, foreign: map[store.LaneID]bool{}}
}

// hints returns what to tell the store in the next look.
func (l *lanes) hints() store.LaneHints {
	k := store.LaneHints{Mine: make([]store.LaneID, 0, len(l.known)), Foreign: make([]store.LaneID, 0, len(l.foreign))}
	for id := range l.known {
		k.Mine = append(k.Mine, id)
	}
	for id := range l.foreign {
		k.Foreign = append(k.Foreign, id)
	}
	return k
}

// count returns how many lanes a look at all goes through.
func (l *lanes) count() int { return len(l.known) + len(l.foreign) }

// target is a lane to claim from.
type target struct {
	store.Lane // its limits include that of its queue
	settle     bool
	first      store.Position // where its work began when it was seen
	seen       time.Time
	place      int      // of its queue in the order of these
	most       int      // how many entries there are permits for; 0 if that is not bounded
	gates      *gateSet // of its limits, as permits found it last
}

// targets turns the lanes of a look into an order of claims: by priority, and within a priority
// returned work first, then work that looks for an engine with its kind, then the rest. Queues of
// one priority come in the order of their first entries, since what stands together in the log is
// read and recorded for less, rotated by turn so that none is always first.
func (l *lanes) targets(heads []store.LaneHead, turn int) []target {
	slices.SortFunc(heads, func(a, b store.LaneHead) int { return cmp.Compare(a.First, b.First) })
	if len(heads) > 1 {
		turn %= len(heads)
		heads = append(slices.Clone(heads[turn:]), heads[:turn]...)
	}
	var list []target
	now := time.Now()
	for _, head := range heads {
		lane, mine := l.learn(head)
		if mine {
			if head.Limited {
				lane.Limits = queueGate(lane.Queue, lane.Limits)
			}
			list = append(list, target{Lane: lane, settle: head.Settle, first: head.First, seen: now, place: placeIn(l.sorted, lane.Queue)})
		}
	}
	slices.SortStableFunc(list, inOrder)
	return list
}

// placeIn is the place of a queue in an order; those that are not in it come last.
func placeIn(order []string, queue string) int {
	if i := slices.Index(order, queue); i >= 0 {
		return i
	}
	return len(order)
}

// queueGate adds the gate of a queue to the limits of jobs.
func queueGate(queue, limits string) string {
	gate := store.QueueGate(queue)
	if limits == "" {
		return gate
	}
	lines := append(strings.Split(limits, "\n"), gate)
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// isFirst reports whether a lane is known and no other known lane comes before it.
func (l *lanes) isFirst(t target) bool {
	if _, ok := l.known[t.ID]; !ok || t.Part != store.PartNormal || l.order != nil {
		return false
	}
	for _, lane := range l.known {
		if lane.Priority < t.Priority || lane.Priority == t.Priority && rank[lane.Part] < rank[t.Part] {
			return false
		}
	}
	return true
}

// leads reports whether a lane is known and all other known lanes come after it.
func (l *lanes) leads(t target) bool {
	if !l.isFirst(t) {
		return false
	}
	for id, lane := range l.known {
		if id != t.ID && lane.Priority == t.Priority && rank[lane.Part] == rank[t.Part] {
			return false // they take turns
		}
	}
	return true
}

var rank = map[store.Part]int{store.PartFront: 0, store.PartKind: 1, store.PartNormal: 2}

// learn returns the lane that was seen, and whether it is for this engine. A lane's id is a hash;
// the traits of its first entry tell which lane it is.
func (l *lanes) learn(s store.LaneHead) (store.Lane, bool) {
	if lane, ok := l.known[s.Lane]; ok {
		return lane, true
	}
	if s.Settle && s.Queue == "" {
		// No visible entry tells what it is, but one engine has to step over it.
		return store.Lane{ID: s.Lane}, true
	}
	for _, part := range []store.Part{store.PartNormal, store.PartFront, store.PartKind} {
		lane := store.LimitedLane(s.Queue, s.Priority, part, s.Kind, s.Limits)
		if lane.ID != s.Lane {
			continue
		}
		mine := l.queues == nil || slices.Contains(l.queues, lane.Queue)
		if part == store.PartKind && l.mux.Handler(lane.Kind) == nil {
			mine = false
		}
		if mine {
			l.known[lane.ID] = lane
		} else {
			l.foreign[lane.ID] = true
		}
		return lane, mine
	}
	// A lane of another version of the program.
	l.foreign[s.Lane] = true
	return store.Lane{}, false
}

// pauseSpacing spaces the queries out: every enqueue sends a notification.
const pauseSpacing = 50 * time.Millisecond

// pauses are the paused queues, as far as this engine knows. Each look tells the claim stage again;
// what is claimed already is checked against these before it starts.
type pauses struct {
	queues atomic.Pointer[map[string]bool]
}

func (p *pauses) has(queue string) bool {
	known := p.queues.Load()
	return known != nil && (*known)[queue]
}

// update replaces the paused queues, and reports whether they changed.
func (p *pauses) update(names []string) bool {
	var next *map[string]bool
	if len(names) > 0 {
		next = &map[string]bool{}
		for _, name := range names {
			(*next)[name] = true
		}
	}
	last := p.queues.Swap(next)
	return (last == nil) != (next == nil) || next != nil && !maps.Equal(*last, *next)
}

// watchPauses keeps the list of paused queues up to date. Pausing and resuming notify, and so does
// a look that sees something else; without both it asks once in each beat's time, in a fleet of more than
// ten up to ten times as seldom.
func (s *session) watchPauses(ctx context.Context) {
	pauser, ok := s.store.(store.Pauser)
	if !ok {
		return
	}
	s.repeat(ctx, pausedQueues, "look for paused queues", func(ctx context.Context) (pause, error) {
		names, err := pauser.Paused(ctx)
		if err != nil {
			return pause{}, err
		}
		s.pausedNow(names)
		s.guests.pause(names)
		sleep(ctx, pauseSpacing)
		next := s.config.TimeToLive / 4
		if s.listening.Load() {
			next = next * time.Duration(min(max(s.countPeers(), 10), 100)) / 10
		}
		return pause{next: next}, nil
	})
}

// pausedNow notes which queues are paused.
func (s *session) pausedNow(names []string) {
	if s.pauses.update(names) {
		s.passedOver.Store(true) // what was resumed
		s.wakeups[work].notify()
	}
}

// claimable leaves out the lanes of paused queues, those that are avoided for a while, and those that begin with what
// only an engine beside this one can run. The
// lanes of a queue that this engine believes to be paused are left out too, since it would return
// what it claimed there; but then one of both is out of date.
func (s *session) claimable(heads []store.LaneHead) []store.LaneHead {
	kept, news, now := heads[:0], false, time.Now()
	for _, head := range heads {
		believed := s.pauses.has(head.Queue)
		news = news || believed != head.Paused
		if !believed && !head.Paused && !s.pools.avoids(head.Lane, now) && !s.leftToGuests(head) {
			kept = append(kept, head)
		}
	}
	if news {
		s.askPauses()
	}
	return kept
}
