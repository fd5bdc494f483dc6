package view

import (
	"context"
	"slices"
	"strconv"
	"strings"
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
	Started time.Time `json:"started,omitzero" doc:"Since when it runs; absent until its engine says so, a few seconds after the start"`
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

// FormerOf finds an engine that is gone, or [store.ErrBuried].
func FormerOf(ctx context.Context, st store.EngineHistory, token store.EngineID) (store.FormerEngine, error) {
	all, err := st.FormerEngines(ctx, store.FormerFilter{Engines: []store.EngineID{token}, Limit: 1})
	if err == nil && len(all) == 0 {
		err = store.ErrBuried
	}
	if err != nil {
		return store.FormerEngine{}, err
	}
	return all[0], nil
}

// Names finds names of engines.
type Names interface {
	Engines(ctx context.Context) ([]store.EngineInfo, error) // see [store.Roster]
	FormerEngines(ctx context.Context, f store.FormerFilter) ([]store.FormerEngine, error)
}

// EnginesOf finds the names of the engines that changes are about, by their subjects: these are tokens,
// which say nothing to people. One that is not known any more has none.
func EnginesOf(ctx context.Context, st Names, changes []store.Change) (map[string]string, error) {
	names := map[string]string{}
	var tokens []store.EngineID
	for _, c := range changes {
		token, err := strconv.ParseInt(c.Subject, 10, 64)
		if err == nil && strings.HasPrefix(c.Operation, "engines ") && !slices.Contains(tokens, store.EngineID(token)) {
			tokens = append(tokens, store.EngineID(token))
		}
	}
	if len(tokens) == 0 {
		return names, nil
	}
	roster, err := st.Engines(ctx)
	for _, e := range roster {
		if i := slices.Index(tokens, e.Token); i >= 0 {
			names[tokenText(e.Token)] = e.Instance
			tokens = slices.Delete(tokens, i, i+1)
		}
	}
	if err != nil || len(tokens) == 0 {
		return names, err
	}
	former, err := st.FormerEngines(ctx, store.FormerFilter{Engines: tokens, Limit: len(tokens)})
	for _, e := range former {
		names[tokenText(e.Token)] = e.Instance
	}
	return names, err
}

func tokenText(e store.EngineID) string { return strconv.FormatInt(int64(e), 10) }

// EndInWords says why an engine is gone.
func EndInWords(e store.EngineEnd) string {
	switch e.Why {
	case store.WhyLeft:
		return "stopped"
	case store.WhySilent:
		return "buried: it sent no heartbeat within its time to live"
	case store.WhyProcessGone:
		return "buried: its process was gone"
	case store.WhyUnreachable:
		return "could not reach the database, and joined again"
	case "":
		return "buried"
	}
	return e.Why
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
			ID: entry.ID, Kind: entry.Kind, Queue: entry.Queue, Attempt: entry.Attempt, Begun: slices.Contains(e.Running, entry.Pos), Started: e.Started[entry.Pos], Ready: entry.Ready,
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
	Left     Condition = "left"     // it stopped, and is in the roster no more
	Buried   Condition = "buried"   // it was taken out of the roster
)

// ConditionOfFormer says how an engine is that is in the roster no more.
func ConditionOfFormer(e store.EngineEnd) Condition {
	if e.Why == store.WhyLeft {
		return Left
	}
	return Buried
}

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
