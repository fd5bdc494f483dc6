package engine

import (
	"context"
	"runtime/debug"

	"github.com/stint-go/stint"
)

// ended is a recorded attempt with the hooks that were not called yet.
type ended struct {
	job   stint.Job
	done  stint.Execution
	calls []hookCall
	place bool // it holds one
}

type hookCall struct {
	name string
	hook stint.Hook
}

// moment is one of those that hooks are for.
type moment struct {
	name string
	of   func(stint.Hooks) stint.Hook
}

var (
	afterSuccess     = moment{"after-success", func(h stint.Hooks) stint.Hook { return h.AfterSuccess }}
	afterFailure     = moment{"after-failure", func(h stint.Hooks) stint.Hook { return h.AfterFailure }}
	afterLastFailure = moment{"after-last-failure", func(h stint.Hooks) stint.Hook { return h.AfterLastFailure }}
	finally          = moment{"finally", func(h stint.Hooks) stint.Hook { return h.Finally }}
)

// momentsOf lists what an execution is, in the order of its hooks.
func momentsOf(x *stint.Execution) (all []moment) {
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

// callHooks has the hooks of a recorded attempt called, and returns at once.
func (s *session) callHooks(job *stint.Job, x *stint.Execution, place bool) {
	if s.hooks.kinds[job.Kind] != nil {
		s.callHooksOf(momentsOf(x), job, x, place)
	}
}

// callHooksOf does it for some of the moments.
func (s *session) callHooksOf(moments []moment, job *stint.Job, x *stint.Execution, place bool) {
	h := s.hooks
	var calls []hookCall
	for _, m := range moments {
		for _, one := range h.kinds[job.Kind] {
			if hook := m.of(one); hook != nil {
				calls = append(calls, hookCall{m.name, hook})
			}
		}
	}
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
			s.hookTrouble(t, errHookExit)
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
	ctx, cancel := context.WithTimeout(stint.WithAttempt(s.hooks.work, a), hookTime)
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
		Doing: "call the " + t.calls[0].name + " hook of " + t.job.Kind, About: t.job.Kind, Err: err,
	})
}
