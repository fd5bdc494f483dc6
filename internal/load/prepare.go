package load

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// History fills a store with n jobs that were worked off: what a [Burn] is to
// meet that comes into a store which is in use.
func History(ctx context.Context, store stint.Store, n int, meter *Meter) error {
	if _, err := Burn(ctx, store, BurnOptions{N: n, Meter: meter}); err != nil {
		return fmt.Errorf("work %d jobs off beforehand: %w", n, err)
	}
	return nil
}

// Waiting fills a store with n jobs that wait for next year, each for an instant
// of its own.
func Waiting(ctx context.Context, store stint.Enqueuer, n int, meter *Meter) error {
	year := time.Now().AddDate(1, 0, 0)
	due := func(from, to int) []stint.NewJob {
		jobs := slices.Repeat([]stint.NewJob{noop.Job(nil)}, to-from)
		for i := range jobs {
			jobs[i].RunAt = year.Add(time.Duration(from+i) * time.Millisecond)
		}
		return jobs
	}
	if err := enqueueAll(ctx, store, n, BurnOptions{}.withDefaults(), due, meter.or()); err != nil {
		return fmt.Errorf("enqueue %d jobs that wait: %w", n, err)
	}
	return nil
}
