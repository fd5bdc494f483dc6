package engine

import (
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// pool is the slots that some queues share, and what was claimed for them.
// Pools have nothing in common but the stages before and behind them, so a
// queue that is full holds up no other.
type pool struct {
	inputs
	first int   // the number of its first slot, from 0
	slots slots // a part of the session's

	ahead int          // the most entries to hold beyond the slots
	busy  atomic.Int64 // entries claimed for it that have not ended
	apart atomic.Bool  // what is to be run alone waits for its turn
	begun atomic.Int64 // tasks that reached a slot
	calls atomic.Int64 // the claim stage sleeps while more than these are busy
	pace  *pace

	turn atomic.Pointer[task] // what has its turn to be run alone: the session's, if it is one of this pool
	left atomic.Pointer[left] // what is not to be claimed for a while
}

// pools are all of an engine's: one, or one for each queue that has slots of
// its own and one for the rest.
type pools struct {
	all  []*pool
	own  map[string]*pool
	rest *pool // of queues without slots of their own; nil when there are none to work on
}

// newPools divides the slots.
func newPools(c Config, all slots) pools {
	if len(c.QueueSlots) == 0 {
		p := newPool(0, all, maxPrefetch)
		return pools{all: []*pool{p}, rest: p}
	}
	l := pools{own: map[string]*pool{}}
	first, ahead := 0, max(leastPrefetch, maxPrefetch/len(c.QueueSlots))
	for _, queue := range slices.Sorted(maps.Keys(c.QueueSlots)) {
		n := c.QueueSlots[queue]
		p := newPool(first, all[first:first+n], ahead)
		first += n
		l.all = append(l.all, p)
		if queue == "*" {
			l.rest = p
		} else {
			l.own[queue] = p
		}
	}
	return l
}

func newPool(first int, slots slots, ahead int) *pool {
	return &pool{inputs: newInputs(ahead + 1 + len(slots)), first: first, slots: slots, ahead: ahead, pace: newPace(time.Now())}
}

// of is the pool of a queue; nil when the engine has no slots for it.
func (l pools) of(queue string) *pool {
	if p, ok := l.own[queue]; ok {
		return p
	}
	return l.rest
}

// roomy tells whether any pool has use for more.
func (l pools) roomy(now time.Time) bool {
	for _, p := range l.all {
		if p.room(now) > 0 {
			return true
		}
	}
	return false
}

// leaves tells whether a lane is left to other engines for a while.
func (l pools) leaves(lane stint.LaneID, now time.Time) bool {
	return slices.ContainsFunc(l.all, func(p *pool) bool { return p.left.Load().has(lane, now) })
}

// room is how many more entries of a lane the engine has use for. A lane that
// has yet to tell its queue may be anybody's.
func (l pools) room(lane stint.Lane, now time.Time) int {
	if l.leaves(lane.ID, now) {
		return 0
	}
	if lane.Queue != "" {
		return l.of(lane.Queue).room(now)
	}
	room := maxClaim
	for _, p := range l.all {
		room = min(room, p.room(now))
	}
	return room
}

// waiting is how many entries wait for slots.
func (l pools) waiting() (n int) {
	for _, p := range l.all {
		n += p.waiting()
	}
	return n
}

func (l pools) close() {
	for _, p := range l.all {
		p.close()
	}
}

// room is how many more entries the pool has use for. Claims are worth their
// round trip when they bring half of the prefetch.
func (p *pool) room(now time.Time) int {
	prefetch := min(p.ahead, p.pace.prefetch(now))
	most, least := len(p.slots)+prefetch, max(1, prefetch/2)
	// Said before it looks: what ends behind the look finds it, and rings.
	p.calls.Store(int64(most - least))
	// What is claimed may all have to be run alone.
	room := min(most-int(p.load(p.busy.Load())), cap(p.alone)-len(p.alone))
	if room < least {
		return 0
	}
	return min(room, maxClaim)
}

// load is how much room so many entries in hand take. What waits for its turn to be
// run alone takes none: of a pool's slots only one is to run it, and other work
// would wait for that one.
func (p *pool) load(busy int64) int64 {
	if p.apart.Load() {
		busy -= int64(1 + len(p.alone))
	}
	return busy
}

// take puts a task where it belongs.
func (p *pool) take(t *task) {
	p.busy.Add(1)
	p.send(t)
}

// ended notes that a task no longer takes room, and tells whether the claim stage
// may have been waiting for that: to wake it for every task costs as much as
// many a task.
func (p *pool) ended() bool {
	p.pace.add(1)
	return p.load(p.busy.Add(-1)) <= p.calls.Load()
}

// left are lanes to which entries were handed back that others may run sooner.
type left struct {
	lanes map[stint.LaneID]bool
	until time.Time
}

// has tells whether a lane is one of them, still.
func (l *left) has(lane stint.LaneID, now time.Time) bool {
	return l != nil && l.lanes[lane] && now.Before(l.until)
}
