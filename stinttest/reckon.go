package stinttest

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// reckoned is a time that nobody waits for: it is ahead of the store's clock by
// as much as was skipped. A job is due when its date says, plus what was ahead
// when that date was set.
type reckoned struct {
	store Store
	ahead time.Duration
	dates map[stint.ID]date // of the jobs that wait
}

// date is when a job is due: as the store has it, and as reckoned.
type date struct{ stored, due time.Time }

func newReckoned(store Store) *reckoned { return &reckoned{store: store, dates: map[stint.ID]date{}} }

func (r *reckoned) now(ctx context.Context) (time.Time, error) {
	now := time.Now()
	if clock, ok := r.store.(store.Clock); ok {
		var err error
		if now, err = clock.Now(ctx); err != nil {
			return now, fmt.Errorf("ask for the time: %w", err)
		}
	}
	return now.Add(r.ahead), nil
}

func (r *reckoned) next(ctx context.Context, by time.Time) (bool, error) {
	if err := r.look(ctx); err != nil {
		return false, err
	}
	now, err := r.now(ctx)
	if err != nil {
		return false, err
	}
	for len(r.dates) > 0 {
		first := stint.ID(0)
		for id, d := range r.dates {
			if first == 0 || d.due.Before(r.dates[first].due) || d.due.Equal(r.dates[first].due) && id < first {
				first = id
			}
		}
		due := r.dates[first].due
		if !by.IsZero() && due.After(by) {
			break
		}
		delete(r.dates, first)
		done, err := r.store.Retry(ctx, []stint.ID{first}, stint.RerunOptions{})
		if err != nil {
			return false, fmt.Errorf("make job %d ready: %w", first, err)
		}
		r.ahead += max(0, due.Sub(now))
		if a := done[first].Answer; a == stint.RerunReady || a == stint.RerunAvailable {
			return true, nil
		}
	}
	if !by.IsZero() {
		r.ahead += max(0, by.Sub(now))
	}
	return false, nil
}

// look finds the jobs that wait for a date, and dates those that it sees for the
// first time. One that waits for a retry function has none.
func (r *reckoned) look(ctx context.Context) error {
	seen := make(map[stint.ID]date, len(r.dates))
	filter := store.Filter{States: []stint.State{stint.Scheduled, stint.Retrying}, Limit: 1000}
	for {
		page, err := r.store.Jobs(ctx, filter)
		if err != nil {
			return fmt.Errorf("look for jobs that wait: %w", err)
		}
		for i := range page {
			job := &page[i]
			if job.PendingRetry != "" {
				continue
			}
			d, known := r.dates[job.ID]
			if !known || !d.stored.Equal(job.Due) {
				d = date{job.Due, job.Due.Add(r.ahead)}
			}
			seen[job.ID] = d
		}
		if len(page) < filter.Limit {
			r.dates = seen
			return nil
		}
		filter.Before = page[len(page)-1].ID
	}
}
