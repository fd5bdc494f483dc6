package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint"
)

// vitals are the signs of life that an engine gives to whoever asks. Loops that
// go round leave a mark each time, whatever came of it: while the database is
// away an engine is alive, but not ready.
type vitals struct {
	beats, claims pulse

	mu      sync.Mutex // guards the rest
	state   lifeState
	asked   context.Context // of the run: ends when it is to stop, or to leave
	leave   func(error)     // ends it
	session *session        // while it stands in the roster
}

// lifeState says how far an engine is.
type lifeState int

const (
	unstarted lifeState = iota
	started
	returned
)

// pulse is when a loop last went round; nil while there is none.
type pulse struct{ at atomic.Pointer[time.Time] }

func (p *pulse) mark() { p.at.Store(new(time.Now())) }
func (p *pulse) stop() { p.at.Store(nil) }

// silent is how long ago it went round; 0 while there is none.
func (p *pulse) silent() time.Duration {
	at := p.at.Load()
	if at == nil {
		return 0
	}
	return time.Since(*at)
}

// begin is called when the engine starts to run. The context that it returns
// ends when ctx does, and when the engine is told to leave.
func (v *vitals) begin(ctx context.Context) (asked context.Context, over func()) {
	asked, leave := context.WithCancelCause(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.state, v.asked, v.leave = started, asked, leave
	return asked, func() {
		v.beats.stop()
		leave(nil)
		v.mu.Lock()
		defer v.mu.Unlock()
		v.state, v.leave = returned, nil
	}
}

func (v *vitals) joined(s *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.session = s
}

func (v *vitals) left() { v.joined(nil) }

func (v *vitals) look() (lifeState, context.Context, *session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.state, v.asked, v.session
}

// drained is the cause of a context that ended because the engine was told to
// leave.
type drained struct{ why error }

func (d *drained) Error() string {
	if d.why == nil {
		return "the engine was told to leave"
	}
	return d.why.Error()
}

// drainedBy is what the engine was told to return; nil where it was stopped.
func drainedBy(asked context.Context) error {
	if d, ok := errors.AsType[*drained](context.Cause(asked)); ok {
		return d.why
	}
	return nil
}

// Drain tells the engine to leave: it takes no more jobs, lets those that run
// end, however long they take, hands back what had not begun, and leaves the
// roster. Then [Engine.Run] returns why, which may be nil. The end of Run's
// context still gives what runs the grace, and no more.
//
// Of several calls the first counts. An engine that does not run takes no
// notice.
func (e *Engine) Drain(why error) {
	e.vitals.mu.Lock()
	leave := e.vitals.leave
	e.vitals.mu.Unlock()
	if leave != nil {
		leave(&drained{why})
	}
}

// Status is how an engine stands at one moment.
type Status struct {
	Running bool        // Run was called and has not returned
	Engine  stint.Token // in the roster; 0 while it does not stand there
	Joined  time.Time   // when it entered the roster, by this machine's clock
	Beat    time.Time   // when the last beat that arrived was sent; joining counts as one
	Leaving bool        // it takes no more jobs: it was told to stop, or to leave
	Jobs    int         // attempts that go on now
}

// Status tells how the engine stands. It asks nobody, and is cheap.
func (e *Engine) Status() Status {
	state, asked, s := e.vitals.look()
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

// lastBeat is when the last beat that arrived was sent.
func (s *session) lastBeat() time.Time {
	return s.beat.Add(time.Duration(s.believed.Load()) - s.config.TimeToLive*3/4)
}
