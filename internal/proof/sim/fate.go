package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint/store"
)

// op is a kind of call. Calls of each kind are numbered by themselves, so
// that one more look does not change the fate of every claim after it.
type op int

const (
	opEnqueue op = iota
	opLook
	opClaim
	opFetch
	opFinish
	opJoin
	opBeat
	opHeld
	opBury
	opEngines
	opPromote
	opNow
	opEvict
	opListen
	opCancel
	opCancelling
	opComplete // a transaction that begins when its commit arrives
	opCommit   // one that is open for longer
	opSweep
	opRetry
	opDelete
	opFind
	opPause // and resume
	opPaused
	opImmediate
	opUndecided
	opDecide
	opDeclare
	opFire
	opKeep // people change a schedule
	opRun  // and have it run
	opLease
	opRetain
	ops
)

var opNames = [ops]string{
	"enqueue", "look", "claim", "fetch", "finish", "join", "beat", "held", "bury", "engines", "promote", "now", "evict", "listen",
	"cancel", "cancelling", "complete", "commit", "sweep",
	"retry", "delete", "find", "pause", "paused", "immediate", "undecided", "decide",
	"declare", "fire", "keep", "run", "lease", "retain",
}

func (o op) String() string { return opNames[o] }

// fate is what becomes of one call.
type fate struct {
	n      int           // which call of its kind this is
	before time.Duration // on the way to the store
	after  time.Duration // and back
	fault  fault

	// late lets the call arrive even though its caller gave up on it or was
	// killed, lag after it would have.
	late bool
	lag  time.Duration

	// held keeps the call in a process that is frozen while it sends; it
	// arrives after the thaw. Otherwise it arrives during the freeze.
	held bool

	// open says that a held call has begun its transaction, so that the
	// engine cannot be buried until somebody evicts it.
	open bool
}

type fault string

const (
	fine    fault = ""
	refused fault = "refused"     // it fails and was not done
	lost    fault = "answer lost" // it was done and fails
	half    fault = "half"        // a claim that was made and could not be read; of a cancellation, the marker only
	twice   fault = "twice"       // it was done twice
	busy    fault = "busy"        // another claim of the lane is under way
)

// maxLate bounds how late a call can arrive. The engine keeps a claim in doubt
// for a minute.
const maxLate = 5 * time.Second

// weather is how bad the connections of a process are: faults in 100 calls.
var weathers = []int{0, 2, 2, 5, 15, 30}

// fateOf decides. Once the trouble is over calls only take their time.
func fateOf(d dice, o op, weather int) fate {
	f := fate{before: d.between(50*time.Microsecond, 2*time.Millisecond)}
	if d.chance(30) {
		f.after = d.between(50*time.Microsecond, 2*time.Millisecond)
	}
	if weather < 0 {
		return f
	}
	switch {
	case d.chance(1):
		f.before = d.between(0, 3*time.Second)
	case d.chance(1):
		f.after = d.between(0, 3*time.Second)
	case d.chance(5):
		f.before = d.between(0, 200*time.Millisecond)
	case d.chance(5):
		f.after = d.between(0, 200*time.Millisecond)
	}
	f.late, f.lag = d.chance(50), d.between(0, maxLate)
	f.held = d.chance(50)
	f.open = f.held && d.chance(50)
	if d.chance(weather) {
		f.fault = []fault{refused, lost, half, twice, busy}[d.IntN(5)]
	}
	if o == opComplete && d.chance(15) {
		f.before = d.between(0, 8*time.Second) // nobody waits for it but its handler
	}
	// What cannot happen to this kind of call becomes something that can.
	switch {
	case f.fault == twice && once[o]:
		f.fault = lost
	case f.fault == half && (o == opCancel || o == opImmediate):
	case (f.fault == half || f.fault == busy) && o != opClaim:
		f.fault = refused
	}
	return f
}

// once are the calls that nothing repeats but their callers.
var once = [ops]bool{
	opEnqueue: true, opClaim: true, opJoin: true, opBury: true, opComplete: true, opCommit: true,
	opRetry: true, opDelete: true, opPause: true, opImmediate: true, opKeep: true, opRun: true,
}

// What calls answer that went wrong.
var (
	errRefused = errors.New("sim: connection refused")
	errLost    = errors.New("sim: connection reset by peer")
	errEvicted = errors.New("sim: terminating connection due to administrator command")

	// errGone is told to the remains of a process that was killed. They must
	// end, and this is what ends an engine at once.
	errGone = fmt.Errorf("sim: the process was killed: %w", store.ErrBuried)
)
