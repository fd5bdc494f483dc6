package engine

import (
	"context"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/store"
)

// hookRun is a recorded attempt whose hooks were not called yet.
type hookRun struct {
	job    stint.Job
	done   store.Completion
	calls  []hookCall
	permit bool // it holds one
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

// callHooks starts the hooks of a recorded attempt, and returns at once.
func (s *session) callHooks(job *stint.Job, x *store.Completion, place bool) {
	if s.hooks.kinds[job.Kind] != nil {
		s.callHooksOf(hookPointsOf(x), job, x, place)
	}
}

func (s *session) callHooksOf(moments []hookPoint, job *stint.Job, x *store.Completion, place bool) {
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
	h.queue = append(h.queue, &hookRun{job: *job, done: *x, calls: calls, permit: place})
	if h.working < h.limit {
		h.working++
		h.all.Go(func() { s.runHooks(nil) })
	}
}

// next returns the next attempt in the queue; nil ends the goroutine that asks.
func (h *hooks) next() *hookRun {
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

// runHooks calls hooks until the queue is empty, first those of t. If a hook ends its goroutine,
// that is reported like an error, and a new goroutine goes on with the next hook.
func (s *session) runHooks(t *hookRun) {
	defer func() {
		if t != nil {
			s.hookTrouble(t, errHookExit)
			t.calls = t.calls[1:]
			s.hooks.all.Go(func() { s.runHooks(t) })
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
		if t.permit {
			s.hooks.release(t.job.Kind)
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
