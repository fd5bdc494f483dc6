// Package view is what people see of a store that no single role of it tells: a job
// with who runs it, an engine with what it holds, a schedule with what comes next.
// The command line, the pages and the API show these same structs.
package view

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// Store is what is looked at.
type Store interface {
	stint.Inspector
	stint.Pauser
	stint.Roster
	stint.ScheduleKeeper
	Fetch(ctx context.Context, at []stint.Position) ([]stint.Entry, error) // see [stint.Claimer]
}

// Now is the time by the clock that decides: the store's, where it has one.
func Now(ctx context.Context, store any) (time.Time, error) {
	if c, ok := store.(stint.Clock); ok {
		return c.Now(ctx)
	}
	return time.Now(), nil
}
