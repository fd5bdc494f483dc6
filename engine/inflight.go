package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// task is one claimed entry until its outcome is recorded. It belongs to the stage that has it. The
// tasks of a claim are allocated together and passed by reference.
type task struct {
	entry  *store.Entry
	claim  *claimState
	pool   *pool       // the pool of its slots; nil for an inline run
	runner *kindRunner // of its kind; nil if this engine does not know the kind
	inline *inlineRun  // nil for tasks from the claim stage
	batch  *batch      // that it belongs to; nil for none

	gates     *gateSet  // what it needs permits of; nil for nothing
	permitted bool      // it has them
	startBy   time.Time // of a start that was bought under a rate; zero for none
	again     bool      // it was claimed before, or waited to be tried again
	claimed   time.Time // since when it waited for them

	done store.Completion // its outcome; Slot and Started are set when the handler starts
	log  *store.LogRecord // what its handler said that no beat brought; nil for nothing
	tx   txOutcome        // the result of the handler's own completion
	drop bool             // the engine was fenced: nothing may be recorded

	uncertain bool // whether txRecord committed stays unknown

	// txRecord is what the handler's own completion recorded, if it arrived, while tx is txUnknown.
	txRecord *store.Completion
}

// ran returns for how long the handler ran: 0 if it did not, or if nothing may be recorded of it.
func (t *task) ran() time.Duration {
	if t.done.Started.IsZero() || t.done.Ended.IsZero() {
		return 0
	}
	return t.done.Ended.Sub(t.done.Started)
}

// kindRunner is what an engine needs to perform a kind.
type kindRunner struct {
	handler stint.Handler
	keep    bool            // handlers go on when the engine is fenced
	gather  stint.Gathering // zero if it performs one job at a time
}

// runner returns what performs a kind; nil if the engine does not know it.
func (s *session) runner(kind string) *kindRunner {
	if r := s.runners[kind]; r != nil {
		return r
	}
	return s.runners[stint.AnyKind]
}

// newKindRunners returns those of a mux by the names of their kinds.
func newKindRunners(m *stint.Mux) map[string]*kindRunner {
	all := map[string]*kindRunner{}
	for _, d := range m.Declarations() {
		all[d.Name] = &kindRunner{handler: m.Handler(d.Name), keep: d.Keep, gather: m.Gathering(d.Name)}
	}
	return all
}

// inlineRun is the caller's side of a task that [Engine.RunNow] or [Engine.RunReady] brought.
type inlineRun struct {
	caller context.Context   // the context of the call
	result chan inlineResult // has room for one
}

// inlineResult is what was recorded of an attempt, or why that is unknown.
type inlineResult struct {
	done store.Completion
	err  error
}

// claimState is one claim of this session, and how many of its entries have no recorded outcome.
type claimState struct {
	ref    store.ClaimRef
	serial int64
	open   int // guarded by inflight.mu
}

// inflight is what the engine has claimed and not yet recorded. A request is noted before it is
// sent, so the lowest serial number in it is a true lower bound of what may be open.
type inflight struct {
	mu         sync.Mutex
	last       int64                 // the last serial number given out
	claims     map[int64]*claimState // by serial; nil while the request is on its way or its outcome unknown
	unknown    map[int64]time.Time   // requests whose outcome is unknown, and since when
	comparedTo int64                 // claims with lower numbers were compared with the store, except unknown ones

	// once are entries with MaxLosses 0 that have started or are about to: beats announce them
	// until their outcomes are in the store.
	once map[store.Position]bool

	parked *wakeup // notified at the next request; nil for none

	proof store.Proof // what was acknowledged since the last beat that arrived was sent
}

func newInflight() *inflight {
	return &inflight{claims: map[int64]*claimState{}, unknown: map[int64]time.Time{}, once: map[store.Position]bool{}}
}

// request numbers claims that are about to be sent, and returns the first number and the lowest open
// one.
func (h *inflight) request(claims int) (first, low int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for range claims {
		h.last++
		h.claims[h.last] = nil
	}
	if h.parked != nil {
		h.parked.notify()
		h.parked = nil
	}
	return h.last - int64(claims) + 1, h.lowLocked()
}

// park has a wakeup notified at the next request, and reports true, unless something is open.
func (h *inflight) park(w *wakeup) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.emptyLocked() {
		return false
	}
	h.parked = w
	return true
}

// empty reports whether nothing is open.
func (h *inflight) empty() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.emptyLocked()
}

func (h *inflight) emptyLocked() bool { return len(h.claims) == 0 && len(h.unknown) == 0 }

func (h *inflight) claimed(c store.Claim) *claimState {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(c.Positions) == 0 {
		delete(h.claims, c.Serial)
		return nil
	}
	h.proof.Claims = append(h.proof.Claims, c.ClaimRef)
	k := &claimState{ref: c.ClaimRef, serial: c.Serial, open: len(c.Positions)}
	h.claims[c.Serial] = k
	return k
}

// markUnknown notes that the outcome of a request is unknown. It counts as open even if it was
// resolved before: the store says that it is there.
func (h *inflight) markUnknown(serial int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.unknown[serial] = time.Now()
	if _, there := h.claims[serial]; !there {
		h.claims[serial] = nil
	}
}

// snapshot is what was in flight at one moment.
type snapshot struct {
	from  int64   // the lowest serial number to ask the store about
	last  int64   // the last one given out
	known []int64 // those that the store need not tell: no answer about them was lost
}

// snapshot returns what is in flight now, with requests on their way. Each claim is compared with
// the store once: beside one long job an engine may make any number of claims, too many to read
// with each beat.
func (h *inflight) snapshot() snapshot {
	h.mu.Lock()
	defer h.mu.Unlock()
	g := snapshot{from: max(h.comparedTo, h.lowLocked()), last: h.last}
	for serial := range h.unknown {
		g.from = min(g.from, serial)
	}
	for serial := range h.claims {
		if _, doubt := h.unknown[serial]; !doubt && serial >= g.from {
			g.known = append(g.known, serial)
		}
	}
	return g
}

// compared notes that the store's answer was compared with a snapshot.
func (h *inflight) compared(g snapshot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.comparedTo = g.last + 1
}

// resolved forgets a request whose entries were returned, or that took none.
func (h *inflight) resolved(serial int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.claims, serial)
	delete(h.unknown, serial)
}

// expireUnknown forgets requests that have been unknown since before a time, when the server has
// certainly ended their transactions without a commit. A claim that could not be returned is marked
// again each time.
func (h *inflight) expireUnknown(before time.Time) (expired []int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for serial, since := range h.unknown {
		if since.Before(before) {
			delete(h.unknown, serial)
			delete(h.claims, serial)
			expired = append(expired, serial)
		}
	}
	return expired
}

// recorded notes that the outcomes of a batch are in the store, except of dropped tasks.
func (h *inflight) recorded(batch []*task) {
	h.mu.Lock()
	defer h.mu.Unlock()
	flushed := false
	for _, t := range batch {
		if t.drop {
			continue
		}
		// A flush is one transaction, and what a handler completed is another.
		if t.tx == txCompleted || !flushed {
			h.proof.Recorded = append(h.proof.Recorded, t.entry.Pos)
			flushed = flushed || t.tx != txCompleted
		}
		if len(h.once) > 0 {
			delete(h.once, t.entry.Pos)
		}
		if t.claim.open--; t.claim.open <= 0 {
			delete(h.claims, t.claim.serial)
		}
	}
}

// acknowledged returns what was acknowledged since the last beat that arrived was sent.
func (h *inflight) acknowledged() store.Proof {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := &h.proof
	return store.Proof{Beat: p.Beat, Claims: slices.Clone(p.Claims), Recorded: slices.Clone(p.Recorded), Permits: slices.Clone(p.Permits)}
}

// beaten forgets what was acknowledged before a beat that arrived was sent.
func (h *inflight) beaten(number int64, before store.Proof) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proof.Beat = number
	h.proof.Claims = slices.Delete(h.proof.Claims, 0, len(before.Claims))
	h.proof.Recorded = slices.Delete(h.proof.Recorded, 0, len(before.Recorded))
	h.proof.Permits = slices.Delete(h.proof.Permits, 0, len(before.Permits))
}

// permitted notes that the store acknowledged a state of a gate.
func (h *inflight) permitted(ref store.GateRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.proof.Permits = append(h.proof.Permits, ref)
}

// addOnce notes that an entry with MaxLosses 0 is about to begin.
func (h *inflight) addOnce(pos store.Position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.once[pos] = true
}

// running adds to the positions in the slots the entries of once, whose slots may be free again: an
// engine that takes over must not run these again.
func (h *inflight) running(slots []store.Position) []store.Position {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.DeleteFunc(slots, func(pos store.Position) bool { return h.once[pos] })
	for pos := range h.once {
		all = append(all, pos)
	}
	return all
}

// low returns the bound that beats promise: no claim with a lower number is open or on its way.
func (h *inflight) low() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lowLocked()
}

func (h *inflight) lowLocked() int64 {
	low := h.last + 1
	for serial := range h.claims {
		low = min(low, serial)
	}
	return low
}
