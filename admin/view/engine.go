package view

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
)

// Engine is an engine with what it holds.
type Engine struct {
	stint.EngineInfo
	Holds []HeldJob `json:"holds"`
}

// HeldJob is a job in an engine's hand.
type HeldJob struct {
	ID      stint.ID  `json:"id"`
	Kind    string    `json:"kind"`
	Queue   string    `json:"queue"`
	Attempt int       `json:"attempt"`
	Begun   bool      `json:"begun" doc:"Its engine announced it"`
	Ready   time.Time `json:"ready"`
}

// EngineOf finds an engine of the roster, or [stint.ErrBuried].
func EngineOf(ctx context.Context, store Store, token stint.Token) (Engine, error) {
	roster, err := store.Engines(ctx)
	if err != nil {
		return Engine{}, err
	}
	i := slices.IndexFunc(roster, func(e stint.EngineInfo) bool { return e.Token == token })
	if i < 0 {
		return Engine{}, stint.ErrBuried
	}
	return HeldBy(ctx, store, roster[i])
}

// HeldBy finds what an engine claimed and has not ended.
func HeldBy(ctx context.Context, store Store, e stint.EngineInfo) (Engine, error) {
	shown := Engine{EngineInfo: e, Holds: []HeldJob{}}
	claims, err := store.Held(ctx, e.Token, e.Low)
	if err != nil {
		return shown, err
	}
	var at []stint.Position
	for _, c := range claims {
		at = append(at, c.Positions...)
	}
	entries, err := store.Fetch(ctx, at)
	if err != nil {
		return shown, err
	}
	for _, entry := range entries {
		shown.Holds = append(shown.Holds, HeldJob{
			ID: entry.ID, Kind: entry.Kind, Queue: entry.Queue, Attempt: entry.Attempt, Begun: slices.Contains(e.Running, entry.Pos), Ready: entry.Ready,
		})
	}
	return shown, nil
}

// Condition is how an engine of the roster is.
type Condition string

// The conditions.
const (
	Working  Condition = "working"
	Draining Condition = "draining" // it takes no more jobs
	Gone     Condition = "gone"     // dead: its process is not there any more
	Stuck    Condition = "stuck"    // its process lives and does not beat
	Silent   Condition = "silent"   // dead: it does not beat
)

// ConditionOf says how an engine is at a time of the store's clock.
func ConditionOf(e stint.EngineInfo, now time.Time) Condition {
	switch {
	case e.Gone:
		return Gone
	case e.Silent(now) && e.Held:
		return Stuck
	case e.Silent(now):
		return Silent
	case e.Draining:
		return Draining
	}
	return Working
}
