package engine

import (
	"context"
	"errors"
	"time"

	"github.com/stint-go/stint"
)

const (
	// retainBatch bounds what one step of retention looks at, so that its
	// transaction stays short.
	retainBatch = 500

	// retainEvery is how often what has grown old since is looked for.
	retainEvery = time.Minute

	// retainWhole is how often everything is gone through from the beginning, for
	// what ended late, and for all that jobs leave behind.
	retainWhole = time.Hour

	// retainPatience bounds one step: far longer than it takes.
	retainPatience = time.Minute
)

// retain deletes what ended long ago, for all engines, while this one has the
// lease.
func (s *session) retain(ctx context.Context) {
	store, ok := s.store.(stint.Retainer)
	if !ok {
		return
	}
	if s.config.Retention.Shortest() == stint.Forever {
		return
	}
	r := &retaining{session: s, store: store}
	// The shortest of all times is waited for: what is kept for seconds is not
	// to stay for minutes.
	every := min(retainEvery, max(s.config.Retention.Shortest()/2, stint.MinRetention))
	var whole time.Time // when everything was gone through last
	for ctx.Err() == nil {
		parts := stint.RetainParts[:1]
		if began := time.Now(); began.Sub(whole) >= retainWhole {
			parts, whole, r.from = stint.RetainParts, began, stint.RetainMark{}
		}
		if err := r.pass(ctx, parts); errors.Is(err, stint.ErrNotHeld) {
			return // the campaign finds out by itself
		} else if err != nil {
			s.trouble(ctx, "delete old jobs", err)
		}
		pause(ctx, every)
	}
}

// retaining goes through the store again and again.
type retaining struct {
	*session
	store stint.Retainer
	from  stint.RetainMark // where the jobs begin that were too young
}

// pass goes through some parts, with pauses as long as the steps before them, so
// that others get their turn. It tells how much was deleted.
func (r *retaining) pass(ctx context.Context, parts []stint.RetainPart) error {
	deleted := map[stint.RetainPart]int{}
	defer func() {
		if jobs := deleted[stint.RetainJobs]; jobs > 0 {
			r.emit(stint.Event{Type: stint.EventRetained, Engine: r.token, Count: jobs})
		}
	}()
	for _, part := range parts {
		step := stint.RetainStep{
			Part: part, Limit: retainBatch, Keep: r.config.Retention,
			Under: stint.Tenure{Lease: stint.LeaseRetention, Engine: r.token},
		}
		if part == stint.RetainJobs {
			step.From = r.from
		}
		for more := true; more; {
			began := time.Now()
			limit, cancel := context.WithTimeout(ctx, retainPatience)
			done, err := r.store.Retain(limit, step)
			cancel()
			if err != nil {
				return err
			}
			deleted[part] += done.Deleted
			step.From, more = done.Next, done.More
			if part == stint.RetainJobs {
				r.from = done.Next
			}
			if more {
				pause(ctx, time.Since(began))
			}
			if ctx.Err() != nil {
				return nil
			}
		}
	}
	return nil
}
