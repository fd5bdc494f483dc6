package engine

import (
	"context"
	"fmt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// RunReady performs what is ready for the engine's kinds and queues, in this process, one job after
// the other, until nothing is left. It is for tests, and for programs that are started when there
// may be work. It returns how many jobs it performed.
//
// The order is an engine's: by priority, and within a lane as the jobs became ready. Jobs that
// handlers and hooks enqueue meanwhile are performed too, and hooks have ended before the next job
// begins. A job that is not due waits, even one that is to be retried at once: the caller moves due
// jobs to the log ([store.Promoter]). Paused queues are skipped. Jobs of kinds without a handler
// here are left to other engines and not counted.
//
// Unless told is nil, it is called for each entry after its outcome is recorded; if it returns
// false, RunReady ends. It is also called for jobs that were cancelled or have expired, with an
// outcome that has no start. All else is as in [Engine.RunNow]: a handler is announced before it
// begins, and the call joins the roster for its own duration, beside the engine's Run if that
// works, so other engines take over if the process dies.
//
// When ctx ends, the context of the running handler is cancelled, its job goes back uncharged, and
// the error is the cause. Other errors say that a job was not run, or not recorded.
func (e *Engine) RunReady(ctx context.Context, told func(*stint.Job, store.Completion) bool) (int, error) {
	n, err := e.runReady(ctx, told)
	if err != nil {
		return n, fmt.Errorf("run what is ready: %w", err)
	}
	return n, nil
}

func (e *Engine) runReady(ctx context.Context, told func(*stint.Job, store.Completion) bool) (n int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	s, err := e.joinTemporary(ctx)
	if err != nil {
		return 0, err
	}
	leave := s.serveTemporary()
	defer func() {
		s.inlineRuns.leave()
		if left := leave(); err == nil {
			err = left
		}
	}()
	for known := newLanes(e.mux, e.config.Queues); ctx.Err() == nil; {
		t, err := s.takeReady(ctx, known)
		if err != nil || t == nil {
			return n, err
		}
		x, err := s.submit(s.performReady(t))()
		if err != nil {
			return n, err
		}
		s.hooks.all.Wait()
		if t.entry.Started.IsZero() && x.Outcome == stint.OutcomeReturned {
			continue // on its way to an engine that knows its kind
		}
		if n++; told != nil && !told(&t.entry.Job, x) {
			return n, nil
		}
	}
	return n, context.Cause(ctx)
}

// takeReady claims the next entry; nil means that nothing is ready.
func (s *session) takeReady(ctx context.Context, known *lanes) (*task, error) {
	limit, cancel := s.limit(ctx)
	defer cancel()
	heads, err := s.store.Look(limit, known.hints())
	if err != nil {
		return nil, err
	}
	for _, lane := range known.targets(s.claimable(heads), 0) {
		c, claim, err := s.claimUpTo(lane, 1, true)
		if err != nil {
			return nil, err
		}
		if len(c.Entries) > 0 {
			return s.newInlineTask(ctx, &c.Entries[0], claim), nil
		}
	}
	return nil, nil
}

// performReady runs an entry, or concludes it unstarted.
func (s *session) performReady(t *task) *task {
	switch {
	case t.entry.Cancelled:
		return s.conclude(t, store.Result{Outcome: stint.OutcomeCancelled})
	case t.runner == nil:
		return s.conclude(t, store.Result{Outcome: stint.OutcomeReturned, Part: store.PartKind})
	}
	return s.performInline(t)
}
