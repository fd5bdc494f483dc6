package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// EngineHistory is a store that keeps what is known of an engine after its burial: for as long as
// jobs are kept that it ran.
type EngineHistory interface {
	// FormerEngines lists engines that left the roster, or were buried, the last end first. An
	// EngineInfo is as the engine joined, with its last beat and with nothing that runs.
	FormerEngines(ctx context.Context, f FormerFilter) ([]FormerEngine, error)

	// LostAttempts lists the attempts that were lost with an engine, in the order in which they were
	// concluded, up to [LostKept]. Those of jobs that were deleted since are left out. An engine that
	// is not known, or stands, has lost none.
	LostAttempts(ctx context.Context, engine EngineID) ([]LostAttempt, error)
}

// FormerFilter chooses engines that are gone: those that fit all of its fields. A zero field does not
// restrict.
type FormerFilter struct {
	Engines  []EngineID // any of these
	Instance string
	Since    time.Time // whose end was at this instant or later
	Limit    int       // how many at most; 0 means 100
}

// FormerEngine is an engine that is gone.
type FormerEngine struct {
	EngineInfo
	EngineEnd
}

// EngineEnd says how an engine left the roster.
type EngineEnd struct {
	At         time.Time `json:"at"`
	Why        string    `json:"why"`                 // [WhyLeft] and the others, or what a person said
	By         EngineID  `json:"by,string,omitempty"` // the engine that buried it; 0 for itself, and for a person
	ByInstance string    `json:"by_instance,omitempty"`
	Freed      int       `json:"freed" doc:"Entries that it held, and that were concluded for it: they run again elsewhere, or have ended"`
	Lost       int       `json:"lost" doc:"How many of these were lost with it, since they had begun"`

	LostAt []Position `json:"-"` // the first of these, up to [LostKept]; for stores
}

// LostKept is of how many attempts that were lost with an engine it is kept which those were.
const LostKept = 200

// Conclude counts an entry that is concluded for the engine.
func (e *EngineEnd) Conclude(c *Completion) {
	e.Freed++
	if c.Outcome != stint.OutcomeLost {
		return
	}
	if e.Lost++; len(e.LostAt) < LostKept {
		e.LostAt = append(e.LostAt, c.Pos)
	}
}

// LostAttempt is an attempt that was lost with its engine, and what became of its job.
type LostAttempt struct {
	Job     stint.ID    `json:"job"`
	Attempt int         `json:"attempt"`
	Kind    string      `json:"kind"`
	Queue   string      `json:"queue"` // where the job is, or was last
	State   stint.State `json:"state"` // in which the job is now
}

// Why engines are buried.
const (
	WhyLeft        = "left"                         // it stopped, and took itself out
	WhySilent      = "stopped beating"              // no beat arrived within its time to live
	WhyProcessGone = "its process was gone"         // which its burier saw
	WhyUnreachable = "could not reach the database" // for its time to live; it joined again under another token, and buried the old one
)
