package sim

import (
	"context"
	"time"
)

// Listen implements [store.Listener]. Signals come late, in twos, without
// cause, and now and then not at all; the connection breaks and cuts break it.
func (p *process) Listen(ctx context.Context, ring func()) error {
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
	heard := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- p.store.Listen(limit, func() {
			select {
			case heard <- struct{}{}:
			default:
			}
		})
	}()
	defer func() { <-done }()
	defer stop()
	for {
		select {
		case <-heard:
			if err := p.hear(ctx, d, ring); err != nil {
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
func (p *process) hear(ctx context.Context, d dice, ring func()) error {
	if err := p.pass(ctx, d.between(0, time.Millisecond), nil); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	how, _ := p.line()
	quiet := p.w.over.Load()
	switch {
	case how == refusing:
		return errLost
	case how != connected, !quiet && d.chance(5):
		return nil // lost: the next poll finds it
	case !quiet && d.chance(10):
		ring()
	}
	ring()
	return nil
}
