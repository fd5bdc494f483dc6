package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/killpoint"
)

// attempt is one run of a handler while it goes on, and the handler's context.
type attempt struct {
	context.Context // leads to the job and its engine; ends with runContext
	stint.Run       // what the context leads to
	runContext      runContext

	s     *session
	task  *task
	job   stint.Job // the handler's copy: changing it has no effect
	began time.Time

	// For the goroutine that watches handlers which ignore the end of their context.
	ignoredSince time.Time // when the context was first seen to have ended
	reported     bool

	// mu guards what the handler's own completion changes in the task until runContext is closed. A
	// goroutine that the handler left running can change nothing after that.
	mu sync.Mutex

	recording sync.WaitGroup // calls of its steps, of which none begins after runContext is closed
}

type attemptKey struct{}

// passes tells a test that the run has come to a point where the process could die.
func (a *attempt) passes(step string, done, inTx bool) {
	if a.task.inline == nil {
		return
	}
	if f := killpoint.From(a.task.inline.caller); f != nil {
		f(killpoint.Point{Engine: int64(a.s.token), Job: int64(a.task.entry.ID), Step: step, Done: done, InTx: inTx})
	}
}

// open makes the handler's context, which lasts until close.
func (a *attempt) open() {
	parent, t := a.s.work, a.task
	if t.runner.keep {
		parent = a.s.kept
	}
	if t.inline != nil {
		parent = withValues{parent, t.inline.caller}
	}
	a.runContext.parent = parent
	if t.inline != nil || t.entry.Timeout > 0 {
		a.runContext.limit(t)
	}
	a.Context = a.Run.Context(&a.runContext)
}

// Value lets [CompleteTx] find the attempt.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	return a.Context.Value(key)
}

// runContext is the context of a run without its values. It ends with the work, after the timeout,
// or when the job is cancelled. To wait for that, a context registers with its parent under a lock
// that all slots share. So the cancellable context is made only when it is first asked for; short
// handlers never ask.
type runContext struct {
	parent context.Context
	made   atomic.Pointer[cancelContext]
	closed atomic.Bool
}

// cancelContext is the part of a runContext that can be waited for.
type cancelContext struct {
	context.Context
	cancel  context.CancelCauseFunc
	release func() // frees what is bound to it; may be nil
}

// cancellable returns the context to wait for, and makes it if necessary.
func (l *runContext) cancellable() *cancelContext {
	if e := l.made.Load(); e != nil {
		return e
	}
	ctx, cancel := context.WithCancelCause(l.parent)
	e := &cancelContext{Context: ctx, cancel: cancel}
	if !l.made.CompareAndSwap(nil, e) {
		cancel(nil)
		return l.made.Load()
	}
	if l.closed.Load() { // perhaps before this could be seen there
		cancel(nil)
	}
	return e
}

// limit bounds the context by the task's timeout, and for an inline run by its caller's context.
func (l *runContext) limit(t *task) {
	ctx, cancel := context.WithCancelCause(l.parent)
	e := &cancelContext{Context: ctx, cancel: cancel, release: func() {}}
	if t.inline != nil {
		forget := context.AfterFunc(t.inline.caller, func() {
			cancel(fmt.Errorf("%w: the caller gave up: %w", stint.ErrStopping, context.Cause(t.inline.caller)))
		})
		e.release = func() { forget() }
	}
	if t.entry.Timeout > 0 {
		forget, stop := e.release, context.CancelFunc(nil)
		e.Context, stop = context.WithTimeoutCause(ctx, t.entry.Timeout, stint.ErrTimeout)
		e.release = func() { stop(); forget() }
	}
	l.made.Store(e)
}

func (l *runContext) close() {
	l.closed.Store(true)
	if e := l.made.Load(); e != nil {
		if e.release != nil {
			e.release()
		}
		e.cancel(nil)
	}
}

// current returns the context that knows the present state: the parent's, until a cancellable one
// was made.
func (l *runContext) current() context.Context {
	if l.made.Load() != nil || l.closed.Load() {
		return l.cancellable()
	}
	return l.parent
}

// Deadline implements [context.Context].
func (l *runContext) Deadline() (time.Time, bool) { return l.current().Deadline() }

// Done implements [context.Context].
func (l *runContext) Done() <-chan struct{} { return l.cancellable().Done() }

// Err implements [context.Context].
func (l *runContext) Err() error { return l.current().Err() }

// Value implements [context.Context]. The context package finds causes by it, too.
func (l *runContext) Value(key any) any { return l.current().Value(key) }

// withValues is a context that also has the values of another one.
type withValues struct {
	context.Context
	values context.Context
}

// Value asks its own context first: the context package finds cancellation by values.
func (b withValues) Value(key any) any {
	if v := b.Context.Value(key); v != nil {
		return v
	}
	return b.values.Value(key)
}
