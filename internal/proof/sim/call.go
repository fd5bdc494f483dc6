package sim

import (
	"context"
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
	timer := time.NewTimer(f.before)
	defer timer.Stop()
	select {
	case <-timer.C:
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

// fenced tells whether a request holds the fence of its engine while it is
// under way.
func (o op) fenced() bool {
	return o == opClaim || o == opFinish || o == opComplete || o == opCommit || o == opImmediate || o == opDecide
}

// pass lets an answer travel back, and returns it, or why it did not come.
func (p *process) pass(ctx context.Context, d time.Duration, answer error) error {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
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
	timer := time.NewTimer(swallowed)
	defer timer.Stop()
	err := errLost
	select {
	case <-ctx.Done():
		err = ctx.Err()
	case <-timer.C:
	case <-healed:
	case <-p.gone:
	}
	if !p.awake() {
		return errGone
	}
	return err
}
