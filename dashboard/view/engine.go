package view

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Engine is an engine with what it holds.
type Engine struct {
	store.EngineInfo
	Holds []HeldJob `json:"holds"`
}

// HeldJob is a job that an engine holds.
type HeldJob struct {
	ID      stint.ID  `json:"id"`
	Kind    string    `json:"kind"`
	Queue   string    `json:"queue"`
	Attempt int       `json:"attempt"`
	Begun   bool      `json:"begun" doc:"Its engine announced it"`
	Ready   time.Time `json:"ready"`
}

// EngineOf finds an engine of the roster, or [store.ErrBuried].
func EngineOf(ctx context.Context, st Store, token store.EngineID) (Engine, error) {
	roster, err := st.Engines(ctx)
	if err != nil {
		return Engine{}, err
	}
	i := slices.IndexFunc(roster, func(e store.EngineInfo) bool { return e.Token == token })
	if i < 0 {
		return Engine{}, store.ErrBuried
	}
	return HeldBy(ctx, st, roster[i])
}

// HeldBy finds what an engine claimed and has not ended.
func HeldBy(ctx context.Context, st Store, e store.EngineInfo) (Engine, error) {
	shown := Engine{EngineInfo: e, Holds: []HeldJob{}}
	at, err := held(ctx, st, e)
	if err != nil {
		return shown, err
	}
	entries, err := st.Fetch(ctx, at)
	for _, entry := range entries {
		shown.Holds = append(shown.Holds, HeldJob{
			ID: entry.ID, Kind: entry.Kind, Queue: entry.Queue, Attempt: entry.Attempt, Begun: slices.Contains(e.Running, entry.Pos), Ready: entry.Ready,
		})
	}
	return shown, err
}

// CountHeld counts what an engine claimed and has not ended.
func CountHeld(ctx context.Context, st Store, e store.EngineInfo) (n int, err error) {
	at, err := held(ctx, st, e)
	return len(at), err
}

func held(ctx context.Context, st Store, e store.EngineInfo) (at []store.Position, err error) {
	claims, err := st.Held(ctx, e.Token, e.Low)
	for _, c := range claims {
		at = append(at, c.Positions...)
	}
	return at, err
}

// Condition is how an engine of the roster is.
type Condition string

// The conditions.
const (
	Working  Condition = "working"
	Draining Condition = "draining" // it takes no more jobs
	Gone     Condition = "gone"     // dead: its process is gone
	Stuck    Condition = "stuck"    // its process lives and sends no heartbeats
	Silent   Condition = "silent"   // dead: it sends no heartbeats
)

// ConditionOf says how an engine is at a time of the store's clock.
func ConditionOf(e store.EngineInfo, now time.Time) Condition {
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
