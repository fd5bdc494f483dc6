package engine

import (
	"context"
	"fmt"

	"github.com/stint-go/stint"
)

// RunReady performs what is ready for the engine's kinds and queues, in this
// process, one job after the other, until nothing is left: for tests, and for
// programs that somebody else starts when there may be work. It returns how many
// it has seen to.
//
// The order is an engine's: by priority, and in a lane as the jobs became ready.
// What handlers and hooks enqueue meanwhile is performed too, and hooks have
// ended before the next job begins. A job whose time has not come waits, also one
// that is to be retried at once: moving what is due to the log is the caller's
// ([stint.Promoter]). Paused queues rest. Jobs of kinds that the engine has no
// handler for are left to those that do, and not counted.
//
// Each entry is told, unless told is nil, when its outcome is recorded; false
// ends the run behind it. Jobs that were cancelled or have expired are told too,
// with an execution that has no start. A handler is announced before it begins,
// and everything else is as in [Engine.RunNow]: the call joins the roster for its
// own duration, beside the engine's Run if that works, and others take over
// when the process dies in the middle.
//
// When ctx ends, the running handler's context is cancelled, its job goes back
// uncharged, and the error is the cause. Other errors say that a job was not
// run, or not recorded.
func (e *Engine) RunReady(ctx context.Context, told func(*stint.Job, stint.Execution) bool) (int, error) {
	n, err := e.runReady(ctx, told)
	if err != nil {
		return n, fmt.Errorf("run what is ready: %w", err)
	}
	return n, nil
}

func (e *Engine) runReady(ctx context.Context, told func(*stint.Job, stint.Execution) bool) (n int, err error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	s, err := e.joinAlone(ctx)
	if err != nil {
		return 0, err
	}
	leave := s.workAlone()
	defer func() {
		s.guests.leave()
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
	sights, err := s.store.Look(limit, known.forLook())
	if err != nil {
		return nil, err
	}
	for _, lane := range known.targets(s.unpaused(sights), 0) {
		c, claim, err := s.claimUpTo(lane, 1, true)
		if err != nil {
			return nil, err
		}
		if len(c.Entries) > 0 {
			return s.brought(ctx, &c.Entries[0], claim), nil
		}
	}
	return nil, nil
}

// performReady runs an entry, or says why not.
func (s *session) performReady(t *task) *task {
	switch {
	case t.entry.Cancelled:
		return s.conclude(t, stint.Ending{Outcome: stint.OutcomeCancelled})
	case t.trade == nil:
		return s.conclude(t, stint.Ending{Outcome: stint.OutcomeReturned, Part: stint.PartKind})
	}
	return s.performNow(t)
}
