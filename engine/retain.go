package engine

import (
	"cmp"
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
	// what ended late, and for all that jobs leave behind; less often where that
	// takes long.
	retainWhole = time.Hour

	// retainShare is the least number of times that the pauses between whole
	// passes are longer than they are.
	retainShare = 20

	// retainInVain is how many pages behind a job that is too young a pass for one age
	// reads without deleting anything. Where jobs ended long after they were appended,
	// all of a backlog would be read again every minute; it is left to whole passes.
	retainInVain = 20

	// retainPatience bounds one step: far longer than it takes.
	retainPatience = time.Minute
)

// retains says whether an engine deletes anything.
func retains(c *Config) bool { return c.Retention.Shortest() != stint.Forever }

// retain deletes what ended long ago, for all engines, while this one has the
// lease.
func (s *session) retain(ctx context.Context) {
	store, ok := s.store.(stint.Retainer)
	if !ok {
		return
	}
	r := &retaining{session: s, store: store, from: map[time.Duration]stint.RetainMark{}}
	// What is kept for seconds is not to stay for minutes.
	every := min(retainEvery, max(s.config.Retention.Shortest()/2, stint.MinRetention))
	for whole := time.Now(); ctx.Err() == nil; pause(ctx, every) {
		var err error
		if began := time.Now(); !began.Before(whole) {
			if err = r.whole(ctx); err == nil {
				whole = time.Now().Add(max(retainWhole, retainShare*time.Since(began)))
			}
		} else {
			err = r.fresh(ctx)
		}
		r.tell()
		if errors.Is(err, stint.ErrNotHeld) {
			return // the campaign finds out by itself
		} else if err != nil {
			s.trouble(ctx, "delete old jobs", err)
		}
	}
}

// retaining goes through the store again and again.
type retaining struct {
	*session
	store   stint.Retainer
	from    map[time.Duration]stint.RetainMark // for each age, where the jobs begin that were too young
	deleted int                                // how many jobs, since that was told
}

// fresh deletes the jobs that have grown old since the last pass.
func (r *retaining) fresh(ctx context.Context) error {
	for _, age := range r.config.Retention.Ages() {
		young, err := r.pass(ctx, stint.RetainStep{Part: stint.RetainJobs, Age: age, From: r.from[age]})
		if err != nil {
			return err
		}
		r.from[age] = young
	}
	return nil
}

// whole goes through everything.
func (r *retaining) whole(ctx context.Context) error {
	for _, part := range stint.RetainParts {
		if _, err := r.pass(ctx, stint.RetainStep{Part: part}); err != nil {
			return err
		}
	}
	return nil
}

// pass does one step after the other, with pauses as long as the steps before
// them, so that others get their turn. It returns where the next pass for the age
// is to begin: where the first job is that is yet too young, or behind those of them
// that are left to whole passes.
func (r *retaining) pass(ctx context.Context, step stint.RetainStep) (young stint.RetainMark, err error) {
	step.Limit, step.Keep = retainBatch, r.config.Retention
	step.Under = stint.Tenure{Lease: stint.LeaseRetention, Engine: r.token}
	for inVain := 0; ; {
		began := time.Now()
		limit, cancel := context.WithTimeout(ctx, retainPatience)
		done, err := r.store.Retain(limit, step)
		cancel()
		if err != nil {
			return young, err
		}
		if step.Part == stint.RetainJobs {
			r.deleted += done.Deleted
		}
		young = cmp.Or(young, done.Young)
		if step.From = done.Next; !done.More {
			return cmp.Or(young, done.Next), nil
		}
		if inVain++; done.Deleted > 0 || young == (stint.RetainMark{}) {
			inVain = 0
		}
		if step.Age != 0 && inVain == retainInVain {
			return done.Next, nil
		}
		if pause(ctx, time.Since(began)); ctx.Err() != nil {
			return young, ctx.Err()
		}
	}
}

// tell tells how much was deleted.
func (r *retaining) tell() {
	if r.deleted > 0 {
		r.emit(stint.Event{Type: stint.EventRetained, Engine: r.token, Count: r.deleted})
		r.deleted = 0
	}
}
