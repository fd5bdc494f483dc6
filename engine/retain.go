package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

const (
	// retainBatch bounds what one step of retention looks at, so that its transaction stays short.
	retainBatch = 500

	// retainEvery is how often jobs are deleted that have grown old since the last pass.
	retainEvery = time.Minute

	// retainWhole is how often a pass goes through everything, for jobs that ended late, and for
	// all that jobs leave behind; less often if it takes long.
	retainWhole = time.Hour

	// retainShare is how many times longer than a whole pass the pause between two of them is at
	// least.
	retainShare = 20

	// retainInVain is how many pages after a job that is too young a pass for one age reads without
	// deleting anything. Where jobs ended long after they were appended, it would read a whole
	// backlog again every minute; that is left to whole passes.
	retainInVain = 20

	// retainPatience bounds one step: far longer than it takes.
	retainPatience = time.Minute
)

// retains reports whether an engine deletes anything.
func retains(c *Config) bool { return c.Retention.Shortest() != store.Forever }

// retain deletes old jobs for all engines, while this one has the lease.
func (s *session) retain(ctx context.Context) {
	st, ok := s.store.(store.Retainer)
	if !ok {
		return
	}
	r := &retention{session: s, store: st, from: map[time.Duration]store.RetainMark{}}
	// What is kept for seconds is not to stay for minutes.
	every := min(retainEvery, max(s.config.Retention.Shortest()/2, store.MinRetention))
	for whole := time.Now(); ctx.Err() == nil; sleep(ctx, every) {
		var err error
		if began := time.Now(); !began.Before(whole) {
			if err = r.passAll(ctx); err == nil {
				whole = time.Now().Add(max(retainWhole, retainShare*time.Since(began)))
			}
		} else {
			err = r.deleteOld(ctx)
		}
		r.report()
		if errors.Is(err, store.ErrNotHeld) {
			return // the lease loop finds out by itself
		} else if err != nil {
			s.trouble(ctx, "delete old jobs", err)
		}
	}
}

// retention goes through the store again and again.
type retention struct {
	*session
	store   store.Retainer
	from    map[time.Duration]store.RetainMark // for each age, where the jobs begin that were too young
	deleted int                                // how many jobs since the last event
}

// deleteOld deletes the jobs that have grown old since the last pass.
func (r *retention) deleteOld(ctx context.Context) error {
	for _, age := range r.config.Retention.Ages() {
		young, err := r.pass(ctx, store.RetainStep{Part: store.RetainJobs, Age: age, From: r.from[age]})
		if err != nil {
			return err
		}
		r.from[age] = young
	}
	return nil
}

func (r *retention) passAll(ctx context.Context) error {
	for _, part := range store.RetainParts {
		if _, err := r.pass(ctx, store.RetainStep{Part: part}); err != nil {
			return err
		}
	}
	return nil
}

// pass does one step after the other, with pauses as long as the steps, so that other work gets its
// turn. It returns where the next pass for the age is to begin: at the first job that is too young,
// or after those of them that are left to whole passes.
func (r *retention) pass(ctx context.Context, step store.RetainStep) (young store.RetainMark, err error) {
	step.Limit, step.Keep = retainBatch, r.config.Retention
	step.Under = store.LeaseGuard{Lease: store.LeaseRetention, Engine: r.token}
	for inVain := 0; ; {
		began := time.Now()
		limit, cancel := context.WithTimeout(ctx, retainPatience)
		done, err := r.store.Retain(limit, step)
		cancel()
		if err != nil {
			return young, err
		}
		if step.Part == store.RetainJobs {
			r.deleted += done.Deleted
		}
		young = cmp.Or(young, done.Young)
		if step.From = done.Next; !done.More {
			return cmp.Or(young, done.Next), nil
		}
		if inVain++; done.Deleted > 0 || young == (store.RetainMark{}) {
			inVain = 0
		}
		if step.Age != 0 && inVain == retainInVain {
			return done.Next, nil
		}
		if sleep(ctx, time.Since(began)); ctx.Err() != nil {
			return young, ctx.Err()
		}
	}
}

// report emits how many jobs were deleted.
func (r *retention) report() {
	if r.deleted > 0 {
		r.emit(event.Event{Type: event.EventRetained, Engine: r.token, Count: r.deleted})
		r.deleted = 0
	}
}

// rollUpEvery is how often each engine rolls up the statistics, unless another one did.
const rollUpEvery = time.Minute

// longestRollUp bounds one step, which may have much to read.
const longestRollUp = 5 * time.Minute

// rollUpStats keeps what has to be read for statistics small.
func (s *session) rollUpStats(ctx context.Context) {
	store, ok := s.store.(report.StatsStore)
	if !ok {
		return
	}
	every(ctx, spread(rollUpEvery), func() {
		for more := true; more && ctx.Err() == nil; {
			limit, cancel := context.WithTimeout(ctx, longestRollUp)
			var err error
			if more, err = store.SumUp(limit); err != nil {
				s.trouble(ctx, "sum up statistics", err)
			}
			cancel()
		}
	})
}
