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

// HeldBy finds what an engine claimed and has not ended.
func HeldBy(ctx context.Context, store Store, e stint.EngineInfo) (Engine, error) {
	shown := Engine{EngineInfo: e, Holds: []HeldJob{}}
	claims, err := store.Held(ctx, e.Token, 0)
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

// EngineState says what is special about an engine; nothing is when it works.
func EngineState(e stint.EngineInfo, now time.Time) string {
	switch {
	case e.Gone:
		return "dead: its process is gone"
	case e.Silent(now) && e.Held:
		return "stuck: its process lives and does not beat"
	case e.Silent(now):
		return "dead: it does not beat"
	case e.Draining:
		return "draining"
	}
	return ""
}
