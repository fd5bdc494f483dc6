package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// remains are what a session that was fenced knows of the entries that it held, and nobody else
// does. While it stands in the roster nobody else got them. So the engine itself takes it out,
// when it has joined again: an outcome that could not be recorded in time is recorded, and nothing
// that ran is said not to have begun.
type remains struct {
	mu    sync.Mutex
	ended map[store.Position]*task // with an outcome from before the fence
	began map[store.Position]bool  // of those without one that came to a slot or were to, whether they began
}

func newRemains() *remains {
	return &remains{ended: map[store.Position]*task{}, began: map[store.Position]bool{}}
}

// note keeps what is known of a task whose outcome will not be recorded by the session. One that
// completed in its handler's own transaction has its outcome there, or not, and has no other. An
// inline run has been answered to the contrary.
func (r *remains) note(t *task) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case t.tx == txCompleted:
	case t.inline == nil && !t.drop:
		r.ended[t.entry.Pos] = t
	default:
		r.began[t.entry.Pos] = !t.done.Started.IsZero()
	}
}

// settlement is how the unfinished entries of a session ended, as it is recorded. A burial that is
// tried again judges twice.
type settlement struct {
	*remains
	ended map[store.Position]*task
	lost  lostAttempts
}

// judge says how an unfinished entry ended. What was cut short is lost, and charged: the job itself
// may be what keeps its engine from beating, each time. Of what the session does not know any more
// it may have recorded the outcome, and the server have lost it.
func (o *settlement) judge(e *store.Entry, begun bool, now time.Time) store.Completion {
	o.mu.Lock()
	defer o.mu.Unlock()
	if t := o.remains.ended[e.Pos]; t != nil {
		o.ended[e.Pos] = t
		return t.done
	}
	switch began, known := o.began[e.Pos]; {
	case begun || began:
	case known:
		return store.Conclude(e, returnedUnstarted, now, 0)
	default:
		return store.Conclude(e, crashScene{}.judge(e, false), now, 0)
	}
	x := store.Conclude(e, store.Result{Outcome: stint.OutcomeLost, Err: retry.ErrLost, Part: store.PartFront, Suspect: suspectAnnounced}, now, random01())
	o.lost[e.Pos] = &hookRun{job: e.Job, done: x}
	return x
}

// settleFormer takes the engine's earlier sessions, which were fenced, out of the roster, unless
// others do it before. What fails is tried again with the next look.
func (s *session) settleFormer(ctx context.Context) {
	s.former = slices.DeleteFunc(s.former, func(f *session) bool { return s.settle(ctx, f) })
}

func (s *session) settle(ctx context.Context, f *session) bool {
	select {
	case <-f.over:
	default:
		return false // a handler goes on, or what ended is not noted yet
	}
	ctx, cancel := context.WithTimeout(ctx, longestBurial)
	defer cancel()
	o := settlement{f.remains, map[store.Position]*task{}, lostAttempts{}}
	n, err := s.store.Bury(ctx, store.Burial{Engine: f.token, Why: store.WhyUnreachable, By: s.token}, func(e *store.Entry, begun bool) store.Completion {
		return o.judge(e, begun, s.clock.at(time.Now()))
	})
	switch {
	case errors.Is(err, store.ErrBuried):
		return true // somebody else was first
	case err != nil:
		s.troubleAbout(ctx, "bury", s.config.Instance, err)
		return false
	}
	s.emit(event.Event{Type: event.EventSettled, Engine: s.token, Count: n, Begun: len(o.ended) + len(o.lost)})
	s.wakeups[work].notify()
	s.wakeups.leasesFree()
	for _, t := range o.ended {
		f.notifyEnd(t)
	}
	s.reportLost(o.lost)
	return true
}
