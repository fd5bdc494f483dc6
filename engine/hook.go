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

// hooks calls the hooks of recorded attempts, in up to as many goroutines as there are slots. No
// stage waits for it. An attempt takes a permit before it starts, and gives it back when its hooks
// have been called, so that slow hooks delay the start of such jobs and nothing else.
type hooks struct {
	kinds   map[string][]stint.Hooks // only kinds that have hooks; nil when none has
	permits chan struct{}
	limit   int // goroutines at once
	all     sync.WaitGroup

	// work is the context of hooks. It outlives the handlers' context.
	work   context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards the rest
	queue   []*hookRun
	working int
}

func newHooks(ctx context.Context, mux *stint.Mux, slots int) *hooks {
	h := &hooks{limit: slots}
	h.work, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, d := range mux.Declarations() {
		if all := mux.Hooks(d.Name); len(all) > 0 {
			if h.kinds == nil {
				h.kinds, h.permits = map[string][]stint.Hooks{}, make(chan struct{}, slots+hookRoom)
			}
			h.kinds[d.Name] = all
		}
	}
	return h
}

// reserveHooks takes a permit for the hooks of an attempt that is about to start. False means that
// there is none: the engine stops, or its hooks hang.
func (s *session) reserveHooks(e *store.Entry) bool {
	if s.hooks.kinds[e.Kind] == nil {
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
	if h.kinds[kind] != nil {
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
