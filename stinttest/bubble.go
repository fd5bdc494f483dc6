package stinttest

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// jumping is the time of a bubble: to sleep is to jump.
type jumping struct {
	store stint.Promoter
}

func (j *jumping) now(context.Context) (time.Time, error) { return time.Now(), nil }

// next promotes one job, since two that are due together would run in the order
// of their lanes instead of their times.
func (j *jumping) next(ctx context.Context, by time.Time) (bool, error) {
	for {
		p, err := j.store.Promote(ctx, time.Time{}, 1)
		switch {
		case err != nil || p.Moved > 0:
			return p.Moved > 0, err
		case p.Next < 0 || !by.IsZero() && time.Now().Add(p.Next).After(by):
			if !by.IsZero() {
				time.Sleep(time.Until(by))
			}
			return false, nil
		}
		time.Sleep(max(p.Next, time.Microsecond))
	}
}
