package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stint-go/stint/event"
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
	status.Engine, status.Joined, status.Beat = s.token, s.beat, s.lastBeat()
	for range s.attempts {
		status.Jobs++
	}
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

// longestAnswer bounds the query whether the database answers.
const longestAnswer = 2 * time.Second

// Alive returns nil unless the process should be restarted: Run has returned, or one of the loops
// that claim and beat has been stuck for far longer than any call to the store may take. An engine
// that was not started yet is alive, and so is one whose database is away. The call is cheap and
// does not touch the store. The error is an [event.UnreadyError].
func (e *Engine) Alive() error {
	stuck := func(p *lastRound, most time.Duration, what string) error {
		if silent := p.silent(); silent > most {
			return &event.UnreadyError{Condition: event.ConditionRunning, Problem: fmt.Sprintf("its %s has been stuck for %v", what, silent.Round(time.Second))}
		}
		return nil
	}
	state, _, _ := e.liveness.read()
	if state == returned {
		return &event.UnreadyError{Condition: event.ConditionRunning, Problem: "the engine has returned"}
	}
	most := longestJoin + 4*e.config.TimeToLive
	if err := stuck(&e.liveness.beats, most, "beat"); err != nil {
		return err
	}
	return stuck(&e.liveness.claims, most+max(e.config.Poll, e.config.PollTo), "claim stage")
}

// Ready returns nil while the engine works: it is alive, stands in the roster, takes jobs, its last
// beat arrived within the time to live, and the database answers now, within two seconds or until
// ctx ends, and has the engine in its roster. The error is an [event.UnreadyError] and names the
// first of these that does not hold.
func (e *Engine) Ready(ctx context.Context) error {
	not := func(condition, problem string, err error) error {
		return &event.UnreadyError{Condition: condition, Problem: problem, Err: err}
	}
	if err := e.Alive(); err != nil {
		return err
	}
	now := e.Status()
	switch age := time.Since(now.Beat); {
	case !now.Running:
		return not(event.ConditionRunning, "the engine was not started yet", nil)
	case now.Leaving:
		return not(event.ConditionTaking, "it takes no more jobs", nil)
	case now.Engine == 0:
		return not(event.ConditionRoster, "it does not stand in the roster", nil)
	case age > e.config.TimeToLive:
		return not(event.ConditionBeat, fmt.Sprintf("the last one arrived %v ago", age.Round(time.Second)), nil)
	}
	ctx, cancel := context.WithTimeout(ctx, longestAnswer)
	defer cancel()
	roster, err := e.store.Engines(ctx)
	switch {
	case errors.Is(err, store.ErrLogin):
		return not(event.ConditionDatabase, "it refuses the login", err)
	case err != nil:
		return not(event.ConditionDatabase, "it does not answer", err)
	case !slices.ContainsFunc(roster, func(i store.EngineInfo) bool { return i.Token == now.Engine }):
		return not(event.ConditionRoster, "the database does not have it there", nil)
	}
	return nil
}

const memoryEvery = time.Second

// MemoryError says that an engine left because its process had grown beyond Config.MemoryLimit.
type MemoryError struct {
	Limit, Used int64 // bytes
}

// Error names both in MiB.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("engine: the process uses %s of memory, and its limit is %s", mebibytes(e.Used), mebibytes(e.Limit))
}

func mebibytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// watchMemory measures the process until ctx ends, and drains the engine above the limit. Memory
// that only the garbage collector keeps does not count: it is released first.
func (e *Engine) watchMemory(ctx context.Context) {
	every(ctx, memoryEvery, func() {
		if residentMemory() <= e.config.MemoryLimit {
			return
		}
		debug.FreeOSMemory()
		if used := residentMemory(); used > e.config.MemoryLimit {
			e.Drain(&MemoryError{Limit: e.config.MemoryLimit, Used: used}) // which ends ctx
		}
	})
}

// residentMemory returns the bytes of the machine's memory that the process uses. On systems other
// than Linux it counts what Go has taken from the system and not given back.
func residentMemory() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
		if pages, err := strconv.ParseInt(string(fields[1]), 10, 64); err == nil {
			return pages * int64(os.Getpagesize())
		}
	}
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
