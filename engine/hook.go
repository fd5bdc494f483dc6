package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

const (
	// hookTime is how long one hook may take before its context ends.
	hookTime = time.Minute

	// hookRoom is how many attempts may wait for their hooks, in addition to those that run, before
	// the engine starts no more jobs of kinds with hooks.
	hookRoom = 1000

	// hookWait is how long an entry waits for a permit before it goes back to its lane: other
	// engines may have hooks that work.
	hookWait = 10 * time.Second

	// lastHooks is how long hooks may go on after the grace: those of the attempts that it ended
	// have only just begun.
	lastHooks = 2 * time.Second
)

var (
	errHooksHang = errors.New("hooks of earlier jobs have not ended")
	errHookExit  = errors.New("the hook ended its goroutine (runtime.Goexit)")
)

// hooks calls the hooks of recorded attempts, of as many attempts at once as there are slots. No
// stage waits for it. An attempt takes a permit before it starts, and gives it back when its hooks
// have been called, so that slow hooks delay the start of such jobs and nothing else.
type hooks struct {
	kinds   map[string][]stint.Hooks // only kinds that have hooks
	permits chan struct{}
	turns   chan struct{} // holds a value for each attempt whose hooks run
	all     sync.WaitGroup

	// work is the context of hooks. It outlives the handlers' context.
	work   context.Context
	cancel context.CancelCauseFunc
}

func newHooks(ctx context.Context, mux *stint.Mux, slots int) *hooks {
	h := &hooks{kinds: map[string][]stint.Hooks{}, turns: make(chan struct{}, slots)}
	h.work, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	running := 1 // attempts in a slot
	for _, d := range mux.Declarations() {
		if all := mux.Hooks(d.Name); len(all) > 0 {
			h.kinds[d.Name] = all
			running = max(running, mux.Gathering(d.Name).Jobs)
		}
	}
	h.permits = make(chan struct{}, slots*running+hookRoom)
	return h
}

// of returns the hooks of a kind.
func (h *hooks) of(kind string) []stint.Hooks {
	if all := h.kinds[kind]; all != nil {
		return all
	}
	return h.kinds[stint.AnyKind]
}

// reserveHooks takes a permit for the hooks of an attempt that is about to start. False means that
// there is none: the engine stops, or its hooks hang.
func (s *session) reserveHooks(e *store.Entry) bool {
	if s.hooks.of(e.Kind) == nil {
		return true
	}
	select {
	case s.hooks.permits <- struct{}{}:
		return true
	default:
	}
	late := time.NewTimer(hookWait)
	defer late.Stop()
	select {
	case s.hooks.permits <- struct{}{}:
		return true
	case <-s.stopping:
	case <-late.C:
		s.emit(event.Event{
			Type: event.EventTrouble, Engine: s.token, Job: &e.Job,
			Doing: "begin a job of the kind " + e.Kind, About: e.Kind, Err: errHooksHang,
		})
	}
	return false
}

func (s *session) awaitHookRoom() {
	select {
	case s.hooks.permits <- struct{}{}:
		<-s.hooks.permits
	case <-s.stopping:
	}
}

func (h *hooks) release(kind string) {
	if h.of(kind) != nil {
		<-h.permits
	}
}

// awaitHooks waits for the last hooks. Soon after the grace their contexts end, and it does not
// wait for those that ignore this: everything is recorded, and they must not keep the engine from
// stopping.
func (s *session) awaitHooks() {
	defer s.hooks.cancel(nil)
	all := ended(&s.hooks.all)
	select {
	case <-all:
		return
	case <-s.kept.Done():
	}
	end := time.AfterFunc(lastHooks, func() { s.hooks.cancel(stint.ErrStopping) })
	defer end.Stop()
	if !within(all, cancelGrace) {
		s.emit(event.Event{Type: event.EventTrouble, Engine: s.token, Doing: "end the hooks", Err: errHooksHang})
	}
}

// hookRun is a recorded attempt whose hooks were not called yet.
type hookRun struct {
	job   stint.Job
	done  store.Completion
	calls []hookCall
}

type hookCall struct {
	name string
	hook stint.Hook
}

// hookPoint is one of the points at which hooks are called.
type hookPoint struct {
	name string
	of   func(stint.Hooks) stint.Hook
}

var (
	afterSuccess     = hookPoint{"after-success", func(h stint.Hooks) stint.Hook { return h.AfterSuccess }}
	afterFailure     = hookPoint{"after-failure", func(h stint.Hooks) stint.Hook { return h.AfterFailure }}
	afterLastFailure = hookPoint{"after-last-failure", func(h stint.Hooks) stint.Hook { return h.AfterLastFailure }}
	finally          = hookPoint{"finally", func(h stint.Hooks) stint.Hook { return h.Finally }}
)

// hookPointsOf lists the points that an outcome reaches, in the order of its hooks.
func hookPointsOf(x *store.Completion) (all []hookPoint) {
	switch x.Outcome {
	case stint.OutcomeCompleted:
		all = append(all, afterSuccess)
	case stint.OutcomeFailed, stint.OutcomeLost, stint.OutcomeExpired:
		all = append(all, afterFailure)
		if x.Final {
			all = append(all, afterLastFailure)
		}
	}
	return append(all, finally)
}

// callHooks starts the hooks of a recorded attempt, and returns at once. Then the permit is given
// back, if the attempt has one.
func (s *session) callHooks(job *stint.Job, x *store.Completion, permit bool) {
	if s.hooks.of(job.Kind) != nil {
		s.callHooksOf(hookPointsOf(x), job, x, permit)
	}
}

func (s *session) callHooksOf(points []hookPoint, job *stint.Job, x *store.Completion, permit bool) {
	h := s.hooks
	var calls []hookCall
	for _, p := range points {
		for _, one := range h.of(job.Kind) {
			if hook := p.of(one); hook != nil {
				calls = append(calls, hookCall{p.name, hook})
			}
		}
	}
	if len(calls) > 0 {
		t := &hookRun{job: *job, done: *x, calls: calls}
		h.all.Go(func() { s.runHooks(t, permit) })
	} else if permit {
		h.release(job.Kind)
	}
}

// runHooks calls the hooks of an attempt when it is its turn.
func (s *session) runHooks(t *hookRun, permit bool) {
	s.hooks.turns <- struct{}{}
	defer func() {
		<-s.hooks.turns
		if permit {
			s.hooks.release(t.job.Kind)
		}
	}()
	s.callAll(t)
}

// callAll calls the hooks that are left. If one ends its goroutine, that is reported like an error,
// and the next ones are called while the goroutine ends.
func (s *session) callAll(t *hookRun) {
	defer func() {
		if len(t.calls) > 0 {
			s.hookTrouble(t, errHookExit)
			t.calls = t.calls[1:]
			s.callAll(t)
		}
	}()
	for ; len(t.calls) > 0; t.calls = t.calls[1:] {
		if err := s.callHook(t); err != nil {
			s.hookTrouble(t, err)
		}
	}
}

// callHook calls the first hook that is left, and turns a panic into an error.
func (s *session) callHook(t *hookRun) (err error) {
	a := &stint.Run{Job: &t.job, Client: s.client, Reader: s.reader}
	_, _ = a.Settle(nil, nil) // after the attempt nothing can be set
	ctx, cancel := context.WithTimeout(a.Context(s.hooks.work), hookTime)
	defer cancel()
	defer recovered(&err)
	return t.calls[0].hook(ctx, &t.job, s.recordOf(t))
}

// recordOf returns what hooks get of an attempt. A lost one names no engine: another engine ran it.
func (s *session) recordOf(t *hookRun) *stint.Attempt {
	x := &t.done
	r := &stint.Attempt{
		Attempt: x.Attempt, Outcome: x.Outcome, Final: x.Final, Reason: x.Reason, Started: x.Started, Finished: x.Ended,
		Slot: x.Slot, Result: x.Result, Error: x.Error,
	}
	if x.Outcome != stint.OutcomeLost {
		r.Engine, r.Instance, r.Host, r.PID = int64(s.token), s.config.Instance, s.me.Host, s.me.PID
	}
	if x.Next != nil {
		r.RetryIn = x.Next.Delay
	}
	r.Derive()
	return r
}

func (s *session) hookTrouble(t *hookRun, err error) {
	s.emit(event.Event{
		Type: event.EventTrouble, Engine: s.token, Job: &t.job, Attempt: &t.done,
		Doing: "call the " + t.calls[0].name + " hook of " + t.job.Kind, About: t.job.Kind, Err: err,
	})
}
