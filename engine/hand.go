package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

// task is one entry in the engine's hand, from its claim until its outcome is
// recorded. It belongs to the stage that has it; the tasks of a claim are made
// together, and go from stage to stage by reference.
type task struct {
	entry *stint.Entry
	claim *held
	pool  *pool  // whose slots it is for; nil for a guest's
	trade *trade // of its kind; nil when this engine does not know that
	guest *guest // what only a guest's has; nil for others

	done stint.Execution // what came of it; behind the start, Slot and Started say who runs it since when
	fate fate            // what the handler's own completion came to
	drop bool            // the engine was fenced: nothing may be recorded

	// What the handler's own completion recorded, if that arrived, while fate is
	// unknown. A record that changes nothing tells that it did.
	vague  bool // it did or it did not: nobody knows any more
	commit *stint.Execution
}

// trade is what an engine knows about a kind that it performs.
type trade struct {
	handler stint.Handler
	keep    bool // its handlers go on when the engine is fenced
}

// trades are those of a mux by their kinds.
func trades(m *stint.Mux) map[string]*trade {
	all := map[string]*trade{}
	for _, d := range m.Declarations() {
		all[d.Name] = &trade{handler: m.Handler(d.Name), keep: d.Keep}
	}
	return all
}

// guest is who brought a task along.
type guest struct {
	caller context.Context // who waits for it
	answer chan receipt    // what is recorded; has room
}

// receipt says what is recorded of an attempt, or why nobody knows.
type receipt struct {
	done stint.Execution
	err  error
}

// held is one claim of this session with how many of its entries have no
// recorded outcome yet.
type held struct {
	ref    stint.ClaimRef
	serial int64
	open   int // guarded by hand.mu
}

// hand is what the engine has claimed and not yet recorded. It knows every
// request from before it is sent, so that the lowest serial number in it is a
// true lower bound of what may be open.
type hand struct {
	mu     sync.Mutex
	last   int64               // the last serial number given out
	claims map[int64]*held     // by serial; nil while the request is on its way or its fate unknown
	doubt  map[int64]time.Time // requests whose fate is unknown, and since when
	agreed int64               // what has lower numbers has been compared with the store, but for what is in doubt

	// once are the entries that must run at most once and have begun, or are
	// about to: beats announce them until their outcomes are in the store.
	once map[stint.Position]bool
}

func newHand() *hand {
	return &hand{claims: map[int64]*held{}, doubt: map[int64]time.Time{}, once: map[stint.Position]bool{}}
}

// request numbers a claim that is about to be sent, and bounds what is open.
func (h *hand) request() (serial, low int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	h.claims[h.last] = nil
	return h.last, h.lowest()
}

// took notes what a request brought.
func (h *hand) took(c stint.Claim) *held {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(c.Positions) == 0 {
		delete(h.claims, c.Serial)
		return nil
	}
	k := &held{ref: c.ClaimRef, serial: c.Serial, open: len(c.Positions)}
	h.claims[c.Serial] = k
	return k
}

// nothing notes that a request certainly took nothing.
func (h *hand) nothing(serial int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.claims, serial)
}

// unknown notes that nobody can say yet what became of a request. It bounds what is
// open also when the hand was done with it: the store says that it is there.
func (h *hand) unknown(serial int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.doubt[serial] = time.Now()
	if _, there := h.claims[serial]; !there {
		h.claims[serial] = nil
	}
}

// glance is what the hand knew at some moment.
type glance struct {
	from  int64 // the lowest serial number that the store is to be asked about
	last  int64 // the last one that had been given out
	known map[int64]bool
}

// glance notes what the hand knows now, requests on their way included. A claim is
// compared with the store once: beside one long job an engine may make any
// number of claims, which no beat could read.
func (h *hand) glance() glance {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := glance{from: max(h.agreed, h.lowest()), last: h.last, known: make(map[int64]bool, len(h.claims))}
	for serial := range h.claims {
		g.known[serial] = true
	}
	for serial := range h.doubt {
		g.from = min(g.from, serial)
	}
	return g
}

// agrees notes that the store was asked, and that what it said was looked at.
func (h *hand) agrees(g glance) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.agreed = g.last + 1
}

// strange tells whether the engine does not know that it holds a claim that
// the store says it does: the request's answer was lost, or its outcomes were. Of
// what was known before the store was asked, or requested behind that, the
// outcomes may just have been recorded meanwhile.
func (h *hand) strange(serial int64, before glance) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, doubt := h.doubt[serial]
	return doubt || !before.known[serial] && serial <= before.last
}

// settled notes that a request in doubt turned out to be a claim, which was
// handed back.
func (h *hand) settled(serial int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.claims, serial)
	delete(h.doubt, serial)
}

// forget gives up on requests that have been in doubt for so long that the
// server has certainly ended their transactions without a commit. What the store
// says is there is in doubt anew each time that it could not be handed back.
func (h *hand) forget(before time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for serial, since := range h.doubt {
		if since.Before(before) {
			delete(h.doubt, serial)
			delete(h.claims, serial)
		}
	}
}

// recorded notes that the entries of a batch have outcomes in the store, but for
// those that were dropped.
func (h *hand) recorded(batch []*task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, t := range batch {
		if t.drop {
			continue
		}
		if len(h.once) > 0 {
			delete(h.once, t.entry.Pos)
		}
		if t.claim.open--; t.claim.open <= 0 {
			delete(h.claims, t.claim.serial)
		}
	}
}

// begins notes that an entry which must run at most once is about to begin.
func (h *hand) begins(pos stint.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.once[pos] = true
}

// begun adds to what the slots work on what must run at most once, and whose
// slot may be free again: an heir that did not know it would run it again.
func (h *hand) begun(slots []stint.Position) []stint.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.DeleteFunc(slots, func(pos stint.Position) bool { return h.once[pos] })
	for pos := range h.once {
		all = append(all, pos)
	}
	return all
}

// low is the bound that beats promise: no claim with a lower number is open
// or on its way.
func (h *hand) low() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lowest()
}

// lowest is the same under the mutex.
func (h *hand) lowest() int64 {
	low := h.last + 1
	for serial := range h.claims {
		low = min(low, serial)
	}
	return low
}
