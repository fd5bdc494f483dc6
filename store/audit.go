package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// Auditor copies the whole ledger out of a store at one moment, for those who
// check it: tests, and people who doubt.
type Auditor interface {
	Audit(ctx context.Context) (*Ledger, error)
}

// Ledger is everything that decides the fate of jobs, in plain rows.
type Ledger struct {
	Entries    []LedgerEntry
	Claims     []LedgerClaim // by lane and number
	Executions []LedgerExecution
	Waiting    []LedgerWait
	Jobs       []LedgerJob // what the people's view says
	Needs      []FlowNeed  // what jobs of flows need
	Kept       []stint.ID  // the jobs of which steps are kept, lines or a progress
	Holders    []stint.ID  // the jobs that took a unique key last
	Engines    []EngineID  // the roster
	Buried     map[EngineID]time.Time
}

// LedgerEntry is one row of the log. Behind says that it is behind its
// lane's frontier and not pending: some claim must have taken it.
type LedgerEntry struct {
	Pos     Position
	Job     stint.ID
	Lane    LaneID
	Attempt int
	Losses  int
	Behind  bool
}

// LedgerClaim is one claim.
type LedgerClaim struct {
	ClaimRef
	Engine    EngineID
	Serial    int64
	Positions []Position
}

// LedgerExecution is one recorded attempt.
type LedgerExecution struct {
	Pos      Position
	Job      stint.ID
	Attempt  int
	Nonce    Nonce
	Engine   EngineID
	Outcome  stint.Outcome
	Final    bool
	Started  time.Time
	Finished time.Time
	Slot     int // 0 when it did not run, or not as far as is known
	Reason   string
}

// LedgerWait is one waiting job.
type LedgerWait struct {
	Job     stint.ID
	Attempt int
	Due     time.Time // zero while a retry function is to decide it
	Why     stint.State
}

// LedgerJob is one job of the people's view.
type LedgerJob struct {
	ID    stint.ID
	State stint.State

	Schedule   string // that made it; empty for none
	Occurrence time.Time

	Flow      stint.ID // that it belongs to, or the job that called it; 0 for none
	IsFlow    bool
	Recovered stint.ID // the job that it does again; 0 for none

	Unique bool // until it has ended; false when it is asked to stop
}
