package engine

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

const (
	// promoteBatch bounds one promotion, so that its transaction stays short.
	promoteBatch = 1000

	// promoteFull is how often the scan starts at the beginning. Within this time it finds a due
	// job that was committed late, below where the scan had come.
	promoteFull = time.Second

	// promotePause is the longest time from one promotion to the next that a notification asks for: a
	// change of what waits sends one. Where promotions are fast it is as long as one takes, so that the jobs
	// of a chain follow each other soon, and half of the time is left to others.
	promotePause = 5 * time.Millisecond
)

// promote moves jobs to the log when they are due. It sleeps until the next one is due; an enqueue
// that is due earlier notifies.
func (s *session) promote(ctx context.Context) {
	var (
		from time.Time // where the next scan starts
		full time.Time // when the last one started at the beginning
	)
	s.repeat(ctx, dueTimes, "promote due jobs", func(ctx context.Context) (pause, error) {
		all := s.shared(promoteFull)
		began := time.Now()
		if began.Sub(full) >= all {
			from, full = time.Time{}, began
		}
		p, err := s.store.Promote(ctx, from, promoteBatch)
		if err != nil {
			return pause{}, err
		}
		if p.Moved > 0 {
			if !p.Until.IsZero() {
				from = p.Until
			}
			s.wakeups[work].notify()
		}
		next := all
		switch {
		case p.More:
			next = 0
		case p.Next > 0:
			next = min(next, p.Next)
		case p.Next == 0:
			next = promotePause // other engines move what is due
		}
		return pause{next, min(promotePause, time.Since(began))}, nil
	})
}

const (
	// decideEvery is how often an engine looks for failures that need its retry functions, unless
	// it is notified earlier.
	decideEvery = time.Second

	// decidePolicies is the same for an engine without such functions: failures that only need a policy
	// are rare, and who records one notifies.
	decidePolicies = 30 * time.Second

	decideBatch = 200
)

// decide applies policies to failures that were recorded by workers without any, and this program's
// retry functions to those that were recorded by engines without them.
func (s *session) decide(ctx context.Context) {
	funcs := s.mux.RetryFuncs()
	names := append(funcs.Names(), store.AnyEngine)
	again := pause{decideEvery, promotePause}
	if len(names) == 1 {
		again = pause{decidePolicies, decideEvery}
	}
	after := stint.ID(0)
	s.repeat(ctx, failures, "decide about failures", func(ctx context.Context) (pause, error) {
		last, more, err := s.decidePage(ctx, funcs, names, after)
		if err != nil {
			return pause{}, err
		}
		if after = last; more {
			return pause{}, nil
		}
		after = 0
		return again, nil
	})
}

// decidePage decides one page of failures after a job, and returns the last job of the page, and
// whether there may be more.
func (s *session) decidePage(ctx context.Context, funcs *retry.Registry, names []string, after stint.ID) (last stint.ID, more bool, err error) {
	page, err := s.store.Undecided(ctx, names, after, decideBatch)
	if err != nil || len(page) == 0 {
		return after, false, err
	}
	done := make([]store.Completion, 0, len(page))
	for i := range page {
		x, err := page[i].Conclude(funcs, s.clock.at(time.Now()), random01())
		if err != nil {
			// What is stored of it names another function, perhaps of a newer
			// program: leave it to that.
			continue
		}
		cleanTexts(&x)
		done = append(done, x)
	}
	last, more = page[len(page)-1].ID, len(page) == decideBatch
	if len(done) == 0 {
		return last, more, nil
	}
	decided, err := s.store.Decide(ctx, s.token, done)
	for i := range done {
		if x := &done[i]; x.Final && slices.Contains(decided, x.Job) {
			at := slices.IndexFunc(page, func(u store.PendingRetry) bool { return u.ID == x.Job })
			s.emit(event.Event{Type: event.EventEnded, Engine: s.token, Job: &page[at].Job, Attempt: x})
			s.emitFailed(&page[at].Job, x)
			// The other hooks were called when the failure was recorded.
			s.callHooksOf([]hookPoint{afterLastFailure}, &page[at].Job, x, false)
		}
	}
	return last, more, err
}
