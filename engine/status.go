package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/store"
)

// liveness is what an engine knows about itself for probes. Loops leave a mark each time that they
// go round, whether their work succeeded or not: while the database is away an engine is alive, but
// not ready.
type liveness struct {
	beats, claims lastRound

	mu      sync.Mutex // guards the rest
	state   lifeState
	runCtx  context.Context // of Run: ends when the engine is to stop or to leave
	leave   func(error)     // ends it
	session *session        // while it stands in the roster
}

// lifeState is whether Run was called, and has returned.
type lifeState int

const (
	unstarted lifeState = iota
	started
	returned
)

// lastRound is when a loop last went round; nil while it does not run.
type lastRound struct{ at atomic.Pointer[time.Time] }

func (p *lastRound) mark() { p.at.Store(new(time.Now())) }
func (p *lastRound) stop() { p.at.Store(nil) }

// silent returns how long ago that was; 0 while the loop does not run.
func (p *lastRound) silent() time.Duration {
	at := p.at.Load()
	if at == nil {
		return 0
	}
	return time.Since(*at)
}

// begin is called when Run starts. The context that it returns ends when ctx does, and when the
// engine is told to leave.
func (v *liveness) begin(ctx context.Context) (asked context.Context, over func()) {
	asked, leave := context.WithCancelCause(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state, v.runCtx, v.leave = started, asked, leave
	return asked, func() {
		v.beats.stop()
		leave(nil)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.state, v.leave = returned, nil
	}
}

func (v *liveness) joined(s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.session = s
}

func (v *liveness) left() { v.joined(nil) }

func (v *liveness) read() (lifeState, context.Context, *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.runCtx, v.session
}

// drainError is the cause of a context that ended because the engine was told to leave.
type drainError struct{ why error }

func (d *drainError) Error() string {
	if d.why == nil {
		return "the engine was told to leave"
	}
	return d.why.Error()
}

// drainReason returns the reason given to [Engine.Drain]; nil if the engine was stopped.
func drainReason(asked context.Context) error {
	if d, ok := errors.AsType[*drainError](context.Cause(asked)); ok {
		return d.why
	}
	return nil
}

// Drain tells the engine to leave: it takes no more jobs, lets running jobs end however long they
// take, returns what has not started, and leaves the roster. Then [Engine.Run] returns why, which
// may be nil. If Run's context ends meanwhile, running jobs get the grace and no more.
//
// The first call counts. It has no effect on an engine that does not run.
func (e *Engine) Drain(why error) {
	e.liveness.mu.Lock()
	leave := e.liveness.leave
	e.liveness.mu.Unlock()
	if leave != nil {
		leave(&drainError{why})
	}
}

// Status is the state of an engine at one moment.
type Status struct {
	Running bool           // Run was called and has not returned
	Engine  store.EngineID // in the roster; 0 while it is not there
	Joined  time.Time      // when it entered the roster, by this machine's clock
	Beat    time.Time      // when the last beat that arrived was sent; joining counts as one
	Leaving bool           // it takes no more jobs: it was told to stop or to leave
	Jobs    int            // attempts that run now
}

// Status returns the state of the engine. It is cheap and does not touch the store.
func (e *Engine) Status() Status {
	state, asked, s := e.liveness.read()
	status := Status{Running: state == started}
	status.Leaving = status.Running && asked.Err() != nil
	if s == nil {
		return status
	}
	status.Engine, status.Joined, status.Beat, status.Jobs = s.token, s.beat, s.lastBeat(), len(s.attempts.jobs())
	select {
	case <-s.draining:
		status.Leaving = true
	default:
	}
	return status
}

// lastBeat returns when the last beat that arrived was sent.
func (s *session) lastBeat() time.Time {
	return s.beat.Add(time.Duration(s.fenceAt.Load()) - s.config.TimeToLive*3/4)
}
