package engine

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime/debug"
	"slices"
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
)

var errHooksHang = errors.New("hooks of earlier jobs have not ended")

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

	mu      sync.Mutex // guards the rest
	queue   []*ended
	working int
}

// ended is a recorded attempt with the hooks that were not called yet.
type ended struct {
	job   stint.Job
	done  stint.Execution
	calls []hookCall
	place bool // it holds one
}

type hookCall struct {
	sort string
	hook stint.Hook
}

func newHooks(mux *stint.Mux, slots int) *hooks {
	h := &hooks{most: slots}
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

// callsAfter lists the hooks to call after an execution, in their order.
func callsAfter(all []stint.Hooks, x *stint.Execution) (calls []hookCall) {
	add := func(sort string, which func(stint.Hooks) stint.Hook) {
		for _, h := range all {
			if hook := which(h); hook != nil {
				calls = append(calls, hookCall{sort, hook})
			}
		}
	}
	switch x.Outcome {
	case stint.OutcomeCompleted:
		add("after-success", func(h stint.Hooks) stint.Hook { return h.AfterSuccess })
	case stint.OutcomeFailed, stint.OutcomeLost, stint.OutcomeExpired:
		add("after-failure", func(h stint.Hooks) stint.Hook { return h.AfterFailure })
		if x.Final {
			add("after-last-failure", func(h stint.Hooks) stint.Hook { return h.AfterLastFailure })
		}
	}
	add("finally", func(h stint.Hooks) stint.Hook { return h.Finally })
	return calls
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
		s.emit(stint.Event{Type: stint.EventTrouble, Engine: s.token, Job: &e.Job, Doing: "begin a job of the kind " + e.Kind, Err: errHooksHang})
	}
	return false
}

// awaitHookRoom keeps a slot, and the room of the entry that it handed back,
// until there is a place again. Otherwise the engine would claim that entry
// anew, and perhaps always before the others.
func (s *session) awaitHookRoom() {
	select {
	case s.hooks.places <- struct{}{}:
		<-s.hooks.places
	case <-s.stopping:
	}
	s.held.ended(1)
	s.capacity.ring()
}

// release gives a place back.
func (h *hooks) release(kind string) {
	if h.kinds[kind] != nil {
		<-h.places
	}
}

// callHooks has the hooks of a recorded attempt called, and returns at once.
func (s *session) callHooks(job *stint.Job, x *stint.Execution, place bool) {
	h := s.hooks
	calls := callsAfter(h.kinds[job.Kind], x)
	if len(calls) == 0 {
		if place {
			h.release(job.Kind)
		}
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.queue = append(h.queue, &ended{job: *job, done: *x, calls: calls, place: place})
	if h.working < h.most {
		h.working++
		h.all.Go(func() { s.hooker(nil) })
	}
}

// next is the next attempt in the queue; nil ends the goroutine that asks.
func (h *hooks) next() *ended {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) == 0 {
		h.working--
		h.queue = nil
		return nil
	}
	t := h.queue[0]
	h.queue[0] = nil
	h.queue = h.queue[1:]
	return t
}

// hooker calls hooks until the queue is empty, beginning with those of t. A
// hook that ends its goroutine is in trouble like any other, and the next
// goroutine goes on behind it.
func (s *session) hooker(t *ended) {
	defer func() {
		if t != nil {
			s.hookTrouble(t, errGoexit)
			t.calls = t.calls[1:]
			s.hooks.all.Go(func() { s.hooker(t) })
		}
	}()
	if t == nil {
		t = s.hooks.next()
	}
	for ; t != nil; t = s.hooks.next() {
		for ; len(t.calls) > 0; t.calls = t.calls[1:] {
			if err := s.callHook(t); err != nil {
				s.hookTrouble(t, err)
			}
		}
		if t.place {
			s.hooks.release(t.job.Kind)
		}
	}
}

// callHook calls the first hook that is left, and turns a panic into an error.
func (s *session) callHook(t *ended) (err error) {
	a := &stint.Attempt{Job: &t.job, Client: s.client, Inspector: s.inspector}
	_, _ = a.Settle(nil, nil) // the attempt is over: nothing can be set
	ctx, cancel := context.WithTimeout(stint.WithAttempt(s.kept, a), hookTime)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = &stint.PanicError{Value: v, Stack: string(debug.Stack())}
		}
	}()
	return t.calls[0].hook(ctx, &t.job, &t.done)
}

func (s *session) hookTrouble(t *ended, err error) {
	s.emit(stint.Event{
		Type: stint.EventTrouble, Engine: s.token, Job: &t.job, Execution: &t.done,
		Doing: "call the " + t.calls[0].sort + " hook of " + t.job.Kind, Err: err,
	})
}

// awaitHooks waits for the last hooks. The end of the grace ends their
// contexts, and those that ignore it are left behind: everything is recorded,
// and they must not keep the engine from stopping.
func (s *session) awaitHooks() {
	all := make(chan struct{})
	go func() { s.hooks.all.Wait(); close(all) }()
	select {
	case <-all:
		return
	case <-s.kept.Done():
	}
	late := time.NewTimer(cancelGrace)
	defer late.Stop()
	select {
	case <-all:
	case <-late.C:
		s.emit(stint.Event{Type: stint.EventTrouble, Engine: s.token, Doing: "end the hooks", Err: errHooksHang})
	}
}

// casualties are attempts that were lost with their engine. A burial that has
// to be tried again judges twice.
type casualties map[stint.Position]*ended

func (c casualties) note(e *stint.Entry, x stint.Execution) {
	delete(c, e.Pos)
	if x.Outcome == stint.OutcomeLost {
		c[e.Pos] = &ended{job: e.Job, done: x}
	}
}

// mourn tells of what was lost, once the burial is recorded.
func (s *session) mourn(lost casualties) {
	for _, t := range slices.SortedFunc(maps.Values(lost), func(a, b *ended) int { return cmp.Compare(a.done.Pos, b.done.Pos) }) {
		s.emitFailed(&t.job, &t.done)
		s.callHooks(&t.job, &t.done, false)
	}
}
