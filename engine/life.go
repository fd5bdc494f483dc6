package engine

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// life is the context of a run without its values: it ends with the work, the
// timeout, or when somebody cancels the job. To be told of that it takes a place
// among its parent's children, under a lock that all slots share; so that is made
// when something first asks for the end, which short handlers never do.
type life struct {
	parent context.Context
	bound  atomic.Pointer[end]
	closed atomic.Bool
}

// end is a life that somebody waits for the end of.
type end struct {
	context.Context
	cancel  context.CancelCauseFunc
	release func() // what else ends with it; may be nil
}

// end is what the life's end can be waited for with.
func (l *life) end() *end {
	if e := l.bound.Load(); e != nil {
		return e
	}
	ctx, cancel := context.WithCancelCause(l.parent)
	e := &end{Context: ctx, cancel: cancel}
	if !l.bound.CompareAndSwap(nil, e) {
		cancel(nil)
		return l.bound.Load()
	}
	if l.closed.Load() { // perhaps before this could be seen there
		cancel(nil)
	}
	return e
}

// limit bounds the life by a task's timeout, and by who waits for it.
func (l *life) limit(t *task) {
	ctx, cancel := context.WithCancelCause(l.parent)
	e := &end{Context: ctx, cancel: cancel, release: func() {}}
	if t.guest != nil {
		forget := context.AfterFunc(t.guest.caller, func() {
			cancel(fmt.Errorf("%w: the caller gave up: %w", stint.ErrStopping, context.Cause(t.guest.caller)))
		})
		e.release = func() { forget() }
	}
	if t.entry.Timeout > 0 {
		forget, stop := e.release, context.CancelFunc(nil)
		e.Context, stop = context.WithTimeoutCause(ctx, t.entry.Timeout, stint.ErrTimeout)
		e.release = func() { stop(); forget() }
	}
	l.bound.Store(e)
}

// close ends the life.
func (l *life) close() {
	l.closed.Store(true)
	if e := l.bound.Load(); e != nil {
		if e.release != nil {
			e.release()
		}
		e.cancel(nil)
	}
}

// now is who knows how things stand: nobody was made to wait for the end yet of a
// life that goes on with its parent.
func (l *life) now() context.Context {
	if l.bound.Load() != nil || l.closed.Load() {
		return l.end()
	}
	return l.parent
}

// Deadline implements [context.Context].
func (l *life) Deadline() (time.Time, bool) { return l.now().Deadline() }

// Done implements [context.Context].
func (l *life) Done() <-chan struct{} { return l.end().Done() }

// Err implements [context.Context].
func (l *life) Err() error { return l.now().Err() }

// Value implements [context.Context]. Causes are found by it too.
func (l *life) Value(key any) any { return l.now().Value(key) }

// beside is a context with the values of another one as well.
type beside struct {
	context.Context
	values context.Context
}

// Value asks both, its own first: cancellation is found by values.
func (b beside) Value(key any) any {
	if v := b.Context.Value(key); v != nil {
		return v
	}
	return b.values.Value(key)
}
