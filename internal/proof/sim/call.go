package sim

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/stint-go/stint/store"
)

// swallowed bounds how long a call waits for an answer that never comes.
const swallowed = 15 * time.Second

// call is one request to the store and its answer. Apply does it; it may be
// run more than once, and after call has returned, so it must keep nothing of
// its caller's but what never changes.
func call[T any](ctx context.Context, p *process, o op, apply func(ctx context.Context) (T, error)) (T, fate, error) {
	return callWith(ctx, p, o, func(ctx context.Context, _ fate) (T, error) { return apply(ctx) })
}

// ask is call for whom the fate does not concern.
func ask[T any](ctx context.Context, p *process, o op, apply func(ctx context.Context) (T, error)) (T, error) {
	answer, _, err := call(ctx, p, o, apply)
	return answer, err
}

// callWith is call for what is not always done in the same way.
func callWith[T any](ctx context.Context, p *process, o op, apply func(ctx context.Context, f fate) (T, error)) (T, fate, error) {
	var none T
	if !p.awake() {
		return none, fate{}, errGone
	}
	f := p.fate(o)
	how, _ := p.line()
	switch how {
	case refusing:
		err := p.pass(ctx, 10*time.Millisecond, errRefused)
		return none, f, err
	case silent:
		err := p.swallow(ctx)
		return none, f, err
	}
	if f.fault != fine {
		p.w.note(p.name, nil, "%v %d: %s", o, f.n, f.fault)
	}
	if err := p.send(ctx, f, o, func() { _, _ = apply(context.WithoutCancel(ctx), f) }); err != nil {
		return none, f, err
	}
	switch f.fault {
	case refused:
		return none, f, p.pass(ctx, f.after, errRefused)
	case busy:
		return none, f, p.pass(ctx, f.after, store.ErrLaneBusy)
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx) // it was sent by a thawed process
	}
	answer, err := apply(ctx, f)
	if f.fault == twice {
		answer, err = apply(ctx, f)
	}
	if how, _ := p.line(); how == silent || how == oneWay {
		err := p.swallow(ctx)
		return none, f, err
	}
	if f.fault == lost {
		return none, f, p.pass(ctx, f.after, errLost)
	}
	if way := p.pass(ctx, f.after, nil); way != nil {
		return none, f, way
	}
	return answer, f, err
}

// send lets the request travel to the store. An error says that it has not
// arrived; it may do so later.
func (p *process) send(ctx context.Context, f fate, o op, arrive func()) error {
	select {
	case <-time.After(f.before):
		if !f.held {
			return nil
		}
		return p.hold(f, o)
	case <-ctx.Done():
	case <-p.gone:
	}
	if f.late && o.travels() {
		p.w.strays.Go(func() {
			time.Sleep(f.lag)
			if p.outdated(o, f) {
				return
			}
			p.w.note(p.name, nil, "a %v that was given up arrives", o)
			arrive()
		})
	}
	if !p.awake() {
		return errGone
	}
	return ctx.Err()
}

// hold keeps a request in a frozen process until the thaw. One that has begun
// its transaction stands in the way of a burial.
func (p *process) hold(f fate, o op) error {
	if p.isAwake() {
		return nil
	}
	evicted := func() bool { return false }
	if f.open && o.fenced() {
		evicted = p.w.open.begin(p.engine())
	}
	if alive := p.awake(); evicted() {
		p.w.note(p.name, nil, "a %v was evicted", o)
		return errEvicted
	} else if !alive {
		return errGone
	}
	return nil
}

func (p *process) isAwake() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.thaw == nil
}

// travels tells whether a request can arrive without its caller: not one that
// has to ask it something on the way, nor the end of a transaction that is the
// caller's own.
func (o op) travels() bool { return o != opBury && o != opSweep && o != opCommit }

// outdated tells whether a request that arrives late comes to nothing. One for permits does after a later
// one: what PostgreSQL is sent is what they are to be after what was read (see store.Grant), and the later
// one named these gates as doubted, as [store.Limiter] demands.
func (p *process) outdated(o op, f fate) bool { return o == opPermits && p.count(o) > f.n+1 }

// fenced tells whether a request holds the fence of its engine while it is
// under way.
func (o op) fenced() bool {
	return o == opClaim || o == opFinish || o == opComplete || o == opCommit || o == opImmediate || o == opDecide
}

// pass lets an answer travel back, and returns it, or why it did not come.
func (p *process) pass(ctx context.Context, d time.Duration, answer error) error {
	if d > 0 {
		select {
		case <-time.After(d):
		case <-ctx.Done():
			answer = ctx.Err()
		case <-p.gone:
		}
	}
	if !p.awake() {
		return errGone
	}
	return answer
}

// swallow waits for an answer that never comes: until the caller gives up, or
// the connection is found to be broken.
func (p *process) swallow(ctx context.Context) error {
	_, healed := p.line()
	err := errLost
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-time.After(swallowed):
	case <-healed:
	case <-p.gone:
	}
	if !p.awake() {
		return errGone
	}
	return err
}

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
	opPermits
	opRule
	opSteps  // to read, of them and of flows
	opRecord // of steps
	opMessage
	ops
)

var opNames = [ops]string{
	"enqueue", "look", "claim", "fetch", "finish", "join", "beat", "held", "bury", "engines", "promote", "now", "evict", "listen",
	"cancel", "cancelling", "complete", "commit", "sweep",
	"retry", "delete", "find", "pause", "paused", "immediate", "undecided", "decide",
	"declare", "fire", "keep", "run", "lease", "retain", "permits", "rule", "steps", "record", "message",
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
	if (o == opComplete || o == opRecord) && d.chance(15) {
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
	opRetry: true, opDelete: true, opPause: true, opImmediate: true, opKeep: true, opRun: true, opMessage: true,
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

// Listen implements [store.Listener]. Signals come late, in twos, without
// cause, and now and then not at all; the connection breaks and cuts break it.
func (p *process) Listen(ctx context.Context, ring func(store.News)) error {
	if !p.awake() {
		return errGone
	}
	f := p.fate(opListen)
	if how, _ := p.line(); how != connected {
		return p.pass(ctx, 10*time.Millisecond, errRefused)
	}
	limit, stop := context.WithCancel(ctx)
	defer stop()
	if !p.w.over.Load() && f.fault != fine {
		// It breaks after a while.
		timer := time.AfterFunc(10*f.lag, stop)
		defer timer.Stop()
	}
	d := roll(p.w.seed.N, p.name+"ring", f.n)
	heard := make(chan store.News, 1)
	done := make(chan error, 1)
	go func() {
		done <- p.store.Listen(limit, func(news store.News) {
			select {
			case heard <- news:
			default:
			}
		})
	}()
	defer func() { <-done }()
	defer stop()
	for {
		select {
		case news := <-heard:
			if err := p.hear(ctx, d, news, ring); err != nil {
				return err
			}
		case <-p.gone:
			return errGone
		case <-ctx.Done():
			return nil
		case <-limit.Done():
			return p.pass(ctx, 0, errLost)
		}
	}
}

// hear passes one signal on.
func (p *process) hear(ctx context.Context, d dice, news store.News, ring func(store.News)) error {
	if err := p.pass(ctx, d.between(0, time.Millisecond), nil); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	how, _ := p.line()
	quiet := p.w.over.Load()
	if !quiet && d.chance(30) {
		ready := d.chance(50)
		news = store.News{Ready: ready, Due: !ready, Lot: d.Uint64()} // though it was about something else as well
	}
	switch {
	case how == refusing:
		return errLost
	case how != connected, !quiet && d.chance(5):
		return nil // lost: the next poll finds it
	case !quiet && d.chance(10):
		ring(news)
	}
	ring(news)
	return nil
}

// transactions are those that engines have begun and not ended.
type transactions struct {
	mu   sync.Mutex
	open map[store.EngineID][]*transaction
}

type transaction struct {
	mu             sync.Mutex
	evicted, ended bool
}

// begin notes a transaction of an engine. The function ends it, and tells
// whether somebody else had ended it before.
func (l *transactions) begin(engine store.EngineID) (end func() (evicted bool)) {
	x := new(transaction)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open == nil {
		l.open = map[store.EngineID][]*transaction{}
	}
	l.open[engine] = append(l.open[engine], x)
	return func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.ended = true
		return x.evicted
	}
}

// block tells whether one stands in the way of the engine's burial.
func (l *transactions) block(engine store.EngineID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.open[engine] {
		if x.stands() {
			return true
		}
	}
	return false
}

func (x *transaction) stands() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return !x.evicted && !x.ended
}

// evict ends all of the engine's.
func (l *transactions) evict(engine store.EngineID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, x := range l.open[engine] {
		x.mu.Lock()
		if !x.ended && !x.evicted {
			x.evicted = true
			n++
		}
		x.mu.Unlock()
	}
	delete(l.open, engine)
	return n
}
