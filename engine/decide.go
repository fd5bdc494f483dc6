package engine

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

const (
	// decideEvery is how often an engine looks for failures that others left
	// for its retry functions; a ring comes earlier.
	decideEvery = time.Second

	// decideBatch bounds what is decided in one transaction.
	decideBatch = 200
)

// decide judges failures of engines that did not have the retry function. Only
// an engine that has some looks.
func (s *session) decide(ctx context.Context) {
	funcs := s.mux.RetryFuncs()
	names := funcs.Names()
	if len(names) == 0 {
		return
	}
	wait := newBackoff()
	for after := stint.ID(0); ctx.Err() == nil; {
		last, more, err := s.decidePage(ctx, funcs, names, after)
		if err != nil {
			s.trouble(ctx, "decide about failures", err)
			wait.sleep(ctx)
			continue
		}
		wait.reset()
		if after = last; more {
			continue
		}
		after = 0
		if s.decidebell.wait(ctx, decideEvery) {
			pause(ctx, promotePause)
		}
	}
}

// decidePage judges the failures of one page behind a job, and returns the
// last of them, and whether there may be more.
func (s *session) decidePage(ctx context.Context, funcs *retry.Registry, names []string, after stint.ID) (last stint.ID, more bool, err error) {
	ctx, cancel := s.limit(ctx)
	defer cancel()
	page, err := s.store.Undecided(ctx, names, after, decideBatch)
	if err != nil || len(page) == 0 {
		return after, false, err
	}
	done := make([]stint.Execution, 0, len(page))
	for i := range page {
		x, err := page[i].Conclude(funcs, s.clock.at(time.Now()), random01())
		if err != nil {
			// Judged by what was kept of it, it is for another function: a
			// newer program's policy, perhaps. It is left to that.
			continue
		}
		storable(&x)
		done = append(done, x)
	}
	last, more = page[len(page)-1].ID, len(page) == decideBatch
	if len(done) == 0 {
		return last, more, nil
	}
	decided, err := s.store.Decide(ctx, s.token, done)
	for i := range done {
		if x := &done[i]; x.Final && slices.Contains(decided, x.Job) {
			at := slices.IndexFunc(page, func(u stint.Undecided) bool { return u.ID == x.Job })
			s.emit(stint.Event{Type: stint.EventEnded, Engine: s.token, Job: &page[at].Job, Execution: x})
			s.emitFailed(&page[at].Job, x)
			// The others were called when the failure was recorded.
			s.callHooksOf([]moment{afterLastFailure}, &page[at].Job, x, false)
		}
	}
	return last, more, err
}
