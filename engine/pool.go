package engine

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/store"
)

// pool is the slots that some queues share, and what was claimed for them. Pools have only the
// stages before and after them in common, so a full queue does not hold up another.
type pool struct {
	ready   chan *task // to run
	alone   chan *task // suspects, to run one at a time: the returner passes them on
	foreign chan *task // of kinds that this engine does not know

	slots    []slot     // a part of the session's
	together int        // how many tasks run in a slot at once: one, or a batch
	auto     *autoSlots // how many of the slots are in use; nil for all

	gathering *gathering // nil if no kind is performed in batches

	maxAhead     int          // how many entries to hold beyond the slots at most
	busy         atomic.Int64 // entries claimed for it that have not ended; a batch is one, once it waits for a slot
	limited      atomic.Int64 // entries claimed for it that wait for permits
	aloneWaiting atomic.Bool  // suspects wait for their turn
	started      atomic.Int64 // tasks that reached a slot
	filled       wakeups      // notified when it has something: its returner's, and its session's
	wakeAt       atomic.Int64 // the claim stage sleeps while more than these are busy
	pace         *pace
	bound        func() int // Config.AtOnce; nil for none

	aloneTask atomic.Pointer[task]         // the suspect that runs alone, if it is one of this pool
	avoided   atomic.Pointer[avoidedLanes] // lanes not to claim from for a while
}

// pools are all of an engine's: one, or one for each queue that has slots of its own and one for
// the rest.
type pools struct {
	all  []*pool
	own  map[string]*pool
	rest *pool // of queues without slots of their own; nil when there are none to work on
}

func newPools(c Config, runners map[string]*kindRunner, all []slot, filled *wakeup) pools {
	most := mostGathered(runners)
	if len(c.QueueSlots) == 0 {
		p := newPool(all, maxPrefetch, most, filled)
		p.bound = c.AtOnce
		return pools{all: []*pool{p}, rest: p}
	}
	l := pools{own: map[string]*pool{}}
	ahead := max(leastPrefetch, maxPrefetch/len(c.QueueSlots))
	for _, queue := range slices.Sorted(maps.Keys(c.QueueSlots)) {
		n := c.QueueSlots[queue]
		p := newPool(all[:n], ahead, most, filled)
		all = all[n:]
		l.all = append(l.all, p)
		if queue == "*" {
			l.rest = p
		} else {
			l.own[queue] = p
		}
	}
	return l
}

func newPool(slots []slot, ahead, gathered int, filled *wakeup) *pool {
	// The channels have room for more than is ever claimed, so that neither the
	// claim stage nor the returner waits on its own output.
	room := ahead + 1 + len(slots)
	var g *gathering
	if gathered > 0 {
		room += gathered + maxGathering
		g = newGathering(gathered)
	}
	return &pool{
		gathering: g, filled: wakeups{newWakeup(), filled},
		ready: make(chan *task, room), alone: make(chan *task, room), foreign: make(chan *task, room),
		slots: slots, together: max(1, gathered), maxAhead: ahead, pace: newPace(time.Now()),
	}
}

// of returns the pool of a queue; nil when the engine has no slots for it.
func (l pools) of(queue string) *pool {
	if p, ok := l.own[queue]; ok {
		return p
	}
	return l.rest
}

// hasRoom reports whether any pool has room for more.
func (l pools) hasRoom(now time.Time) bool {
	for _, p := range l.all {
		if p.room(now) > 0 {
			return true
		}
	}
	return false
}

// busy reports whether anything was claimed that has not ended.
func (l pools) busy() bool { return slices.ContainsFunc(l.all, (*pool).holds) }

// avoids reports whether a lane is left to other engines for a while.
func (l pools) avoids(lane store.LaneID, now time.Time) bool {
	return slices.ContainsFunc(l.all, func(p *pool) bool { return p.avoided.Load().has(lane, now) })
}

// room returns how many more entries of a lane the engine has room for. A lane that has not told
// its queue yet may belong to any pool.
func (l pools) room(lane store.Lane, now time.Time) int {
	if l.avoids(lane.ID, now) {
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

// together returns how many lanes at the beginning of a list may be claimed from in one call: those
// that share a pool with the first, so that they share its room.
func (l pools) together(list []target, now time.Time) int {
	n := 1
	for n < len(list) && list[0].Queue != "" && list[n].Queue != "" &&
		l.of(list[n].Queue) == l.of(list[0].Queue) && !l.avoids(list[n].ID, now) {
		n++
	}
	return n
}

// waiting returns how many entries wait for slots.
func (l pools) waiting() (n int) {
	for _, p := range l.all {
		n += len(p.ready)
	}
	return n
}

// close ends what the claim stage sends. The returner closes ready, to which it sends too.
func (l pools) close() {
	for _, p := range l.all {
		close(p.foreign)
		close(p.alone)
	}
}

// inUse returns how many slots take tasks.
func (p *pool) inUse() int {
	if p.auto != nil {
		return p.auto.inUse()
	}
	return len(p.slots)
}

// room returns how many more entries the pool has room for. A claim is worth its round trip when it
// brings half of the prefetch.
func (p *pool) room(now time.Time) int {
	slots := p.inUse()
	prefetch := min(p.maxAhead, p.pace.prefetch(now, slots))
	most, least := slots+prefetch, max(1, prefetch/2)
	if p.bound != nil {
		most, least = min(slots, p.bound()), 1
	}
	// Stored before busy is read: a task that ends after that sees it and notifies.
	p.wakeAt.Store(int64(most - least))
	// All claimed entries may be suspects.
	suspects := cap(p.alone) - len(p.alone)
	room := min(most-int(p.load(p.busy.Load())+p.limited.Load()), suspects)
	if room < least {
		return 0
	}
	if p.gathering != nil {
		room = min(room+p.gathering.room(), suspects)
	}
	return min(room, maxClaim)
}

// load returns how much room busy entries take. Suspects that wait for their turn take none: only
// one of the pool's slots is to run them, and other work must not wait for that one.
func (p *pool) load(busy int64) int64 {
	if p.aloneWaiting.Load() {
		busy -= int64(1 + len(p.alone))
	}
	return busy
}

// place sends a task that has its permits where it belongs. There is always room.
func (p *pool) place(t *task) {
	if gathers(t) {
		p.gather(t)
		return
	}
	p.enter(&p.busy)
	switch {
	case t.runner == nil:
		p.foreign <- t
	case t.entry.Suspect >= suspectAlone:
		p.alone <- t
	default:
		p.ready <- t
	}
}

// enter counts something that the pool has from now on. It does so before anybody else sees that.
func (p *pool) enter(as *atomic.Int64) {
	as.Add(1)
	p.filled.notifyAll()
}

// holds reports whether it has anything that has not ended.
func (p *pool) holds() bool { return p.busy.Load()+p.limited.Load() > 0 }

// taskEnded notes that a task, or a batch, that ran for so long no longer takes room, and reports
// whether the claim stage may be waiting for that: to wake it for every task would cost too much.
func (p *pool) taskEnded(ran time.Duration) bool {
	p.pace.add(ran)
	return p.load(p.busy.Add(-1)) <= p.wakeAt.Load()
}

// avoidedLanes are lanes to which entries were returned that other engines may run sooner.
type avoidedLanes struct {
	lanes map[store.LaneID]bool
	until time.Time
}

// has reports whether a lane is still avoided.
func (l *avoidedLanes) has(lane store.LaneID, now time.Time) bool {
	return l != nil && l.lanes[lane] && now.Before(l.until)
}

// An engine claims beyond its free slots what its jobs finish in prefetchTime at the recent pace:
// enough to bridge the next claim, too little to keep work from others.
//
// While claims bring all that they ask for, there is enough for everybody, and each claim costs the
// server about as much for one entry as for many. Then it is worth it to claim a worthwhile number
// of entries, as long as these are done soon, and no sooner again than a multiple of what a claim
// takes: many engines that claim little and often would wait for each other at the lane's lock.
// What is claimed ahead overtakes what is more urgent and comes later, so it is never more than the
// slots get through in longestAhead by how long jobs run: where many jobs end at once, the pace of
// that moment says more.
const (
	prefetchTime   = 25 * time.Millisecond
	worthwhile     = 128
	worthwhileTime = 100 * time.Millisecond
	claimShare     = 20
	longestClaim   = 250 * time.Millisecond
	longestAhead   = 150 * time.Millisecond
)

// maxPrefetch bounds the memory for it.
const maxPrefetch = 5000

// leastPrefetch is the share of that bound that each pool has at least.
const leastPrefetch = 100

// pace measures how fast jobs end, and how long they run.
type pace struct {
	ended atomic.Int64 // since then
	ran   atomic.Int64 // how many nanoseconds those ran altogether
	mu    sync.Mutex   // guards the rest
	since time.Time
	rate  float64 // jobs per second, smoothed
	count float64 // how many jobs ended lately: the older, the less they count
	spent float64 // how many seconds those ran altogether
	full  bool    // the last claim brought all that it asked for
	took  float64 // how many seconds such claims take, smoothed
}

func newPace(now time.Time) *pace { return &pace{since: now} }

func (p *pace) add(ran time.Duration) {
	p.ran.Add(int64(ran))
	p.ended.Add(1)
}

// prefetch returns how many jobs to hold beyond so many slots: none when jobs are slow.
func (p *pace) prefetch(now time.Time, slots int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if elapsed := now.Sub(p.since); elapsed >= 5*time.Millisecond {
		ended := float64(p.ended.Swap(0))
		p.rate += (ended/elapsed.Seconds() - p.rate) / 2
		p.count = p.count/2 + ended
		p.spent = p.spent/2 + time.Duration(p.ran.Swap(0)).Seconds()
		p.since = now
	}
	ahead := p.rate * prefetchTime.Seconds()
	if p.full {
		ahead = max(ahead, min(worthwhile, p.rate*worthwhileTime.Seconds()), p.rate*min(claimShare*p.took, longestClaim.Seconds()))
	}
	if p.spent > 0 {
		ahead = min(ahead, float64(slots)*longestAhead.Seconds()*p.count/p.spent)
	}
	return min(maxPrefetch, int(ahead))
}

// claimed notes how long a claim took, and whether it brought all that it asked for.
func (p *pace) claimed(took time.Duration, full bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full = full; full {
		p.took += (took.Seconds() - p.took) / 4
	}
}

// fills reports whether the last claim brought all that it asked for.
func (p *pace) fills() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.full
}

// slow resets the pace, which turned out to be wrong.
func (p *pace) slow() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rate = 0
}
