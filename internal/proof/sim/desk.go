package sim

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint/engine"
)

// newDesk is a place where somebody has jobs run by hand, in some seeds.
func (w *world) newDesk() *machine {
	const number = 9 // no machine's
	if w.seed.Age >= Twisted || !roll(w.seed.N, "desk", 0).chance(40) {
		return nil
	}
	m := w.newMachine(number)
	m.kinds, m.desk = append(slices.Clone(kinds), kept), true
	return m
}

// work lets an engine run and in some lives callers bring jobs along; at a desk
// there are only these.
func (m *machine) work(ctx context.Context, l *life, e *engine.Engine) {
	d := roll(m.w.seed.N, l.name+"calls", 0)
	switch {
	case m.desk:
		go func() {
			l.callSome(ctx, d, e, m.kinds, 10*time.Second)
			<-ctx.Done()
			l.ended <- nil
		}()
		return
	case m.w.seed.Age < Twisted && len(m.kinds) > 0 && d.chance(20):
		l.callers.Go(func() { l.callSome(ctx, d, e, m.kinds, 15*time.Second) })
	}
	go func() { l.ended <- e.Run(ctx) }()
}
