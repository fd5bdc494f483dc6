package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stint-go/stint"
)

const (
	// hookTime is how long one hook may take before its context ends.
	hookTime = time.Minute

	// hookRoom is how many attempts may wait for their hooks, beside those
	// that run, before the engine begins no more of kinds that have hooks.
	hookRoom = 1000

	// hookWait is how long an entry waits for room before it goes back to its
	// lane: an engine whose hooks hang should not keep it from the others.
	hookWait = 10 * time.Second

	// lastHooks is how long hooks may go on behind the grace: those of the
	// attempts that it ended have only just begun.
	lastHooks = 2 * time.Second
)

var (
	errHooksHang = errors.New("hooks of earlier jobs have not ended")
	errHookExit  = errors.New("the hook ended its goroutine (runtime.Goexit)")
)

// hooks is a stage beside the others: what was recorded comes in, and up to as
// many goroutines as there are slots call its hooks. Nobody who comes by waits
// for it. What bounds it are places: an attempt takes one before it begins,
// and gives it back when its hooks have been called, so that slow hooks slow
// down the beginning of such jobs and nothing else.
type hooks struct {
	kinds  map[string][]stint.Hooks // only kinds that have some; nil when none has
	places chan struct{}
	most   int // goroutines at once
	all    sync.WaitGroup

	// work is the context of hooks. It outlives the handlers'.
	work   context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex // guards the rest
	queue   []*ended
	working int
}

func newHooks(ctx context.Context, mux *stint.Mux, slots int) *hooks {
	h := &hooks{most: slots}
	h.work, h.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	for _, d := range mux.Declarations() {
		if all := mux.Hooks(d.Name); len(all) > 0 {
			if h.kinds == nil {
				h.kinds, h.places = map[string][]stint.Hooks{}, make(chan struct{}, slots+hookRoom)
			}
			h.kinds[d.Name] = all
		}
	}
	return h
}

// reserveHooks takes a place for the hooks of an attempt that is about to
// begin. False says that there is none: the engine stops, or its hooks hang.
func (s *session) reserveHooks(e *stint.Entry) bool {
	if s.hooks.kinds[e.Kind] == nil {
		return true
	}
	select {
	case s.hooks.places <- struct{}{}:
		return true
	default:
	}
	late := time.NewTimer(hookWait)
	defer late.Stop()
	select {
	case s.hooks.places <- struct{}{}:
		return true
	case <-s.stopping:
	case <-late.C:
		s.emit(stint.Event{
			Type: stint.EventTrouble, Engine: s.token, Job: &e.Job,
			Doing: "begin a job of the kind " + e.Kind, About: e.Kind, Err: errHooksHang,
		})
	}
	return false
}

// awaitHookRoom waits until there is a place again.
func (s *session) awaitHookRoom() {
	select {
	case s.hooks.places <- struct{}{}:
		<-s.hooks.places
	case <-s.stopping:
	}
}

// release gives a place back.
func (h *hooks) release(kind string) {
	if h.kinds[kind] != nil {
		<-h.places
	}
}

// awaitHooks waits for the last hooks. Soon after the grace their contexts end,
// and those that ignore it are left behind: everything is recorded, and they
// must not keep the engine from stopping.
func (s *session) awaitHooks() {
	defer s.hooks.cancel(nil)
	all := make(chan struct{})
	go func() { s.hooks.all.Wait(); close(all) }()
	select {
	case <-all:
		return
	case <-s.kept.Done():
	}
	end := time.AfterFunc(lastHooks, func() { s.hooks.cancel(stint.ErrStopping) })
	defer end.Stop()
	late := time.NewTimer(cancelGrace)
	defer late.Stop()
	select {
	case <-all:
	case <-late.C:
		s.emit(stint.Event{Type: stint.EventTrouble, Engine: s.token, Doing: "end the hooks", Err: errHooksHang})
	}
}
