// Package view is what people see of a store that no single role of it tells: a job
// with who runs it, an engine with what it holds, a schedule with what comes next.
// The command line, the pages and the API show these same structs.
package view

import (
	"context"
	"time"

	"github.com/stint-go/stint/store"
)

// Store is what is looked at.
type Store interface {
	store.Inspector
	store.Pauser
	store.Roster
	store.EngineHistory
	store.ScheduleKeeper
	store.StepReader
	store.SignalReader
	store.LogReader
	Gates(ctx context.Context, limit string, most int) ([]store.GateInfo, error) // see [store.Limiter]
	Fetch(ctx context.Context, at []store.Position) ([]store.Entry, error)       // see [store.Claimer]
}

// Now is the time by the clock that decides: the store's, where it has one.
func Now(ctx context.Context, st any) (time.Time, error) {
	if c, ok := st.(store.Clock); ok {
		return c.Now(ctx)
	}
	return time.Now(), nil
}
