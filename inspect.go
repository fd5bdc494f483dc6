package stint

import (
	"context"
	"encoding/json"
	"time"
)

// Inspector shows people what is in a store.
type Inspector interface {
	// Job shows one job with all of its executions, oldest first, or
	// [ErrNotFound].
	Job(ctx context.Context, id ID) (*JobInfo, error)

	// Jobs lists jobs by falling ID, without their executions.
	Jobs(ctx context.Context, f Filter) ([]JobInfo, error)

	// Counts tells how many jobs are in each state, at one moment.
	Counts(ctx context.Context) (map[State]int64, error)

	// Kinds lists the kinds that engines declared, by name.
	Kinds(ctx context.Context) ([]Declaration, error)
}

// JobInfo is a job as people see it.
type JobInfo struct {
	ID       ID              `json:"id"`
	Kind     string          `json:"kind"`
	State    State           `json:"state"`
	Begun    bool            `json:"begun,omitempty"` // running, and its engine announced it
	Queue    string          `json:"queue"`
	Priority int             `json:"priority"`
	Args     json.RawMessage `json:"args"`
	Attempt  int             `json:"attempt"` // the current or last one; the first while none began
	Losses   int             `json:"losses,omitempty"`
	Reason   string          `json:"reason,omitempty"` // of a final state: never empty

	// Faulty says of a job that has not ended that it failed as often as its
	// policy bears before somebody should look: see [retry.Policy.Faulty].
	Faulty bool `json:"faulty,omitempty"`

	// Undecided names the retry function that is to say when the job runs
	// again, and whether at all. It waits, without a date, for an engine that
	// has this function.
	Undecided string `json:"undecided,omitempty"`

	Tags     []string        `json:"tags,omitempty"`
	URN      string          `json:"urn,omitempty"`
	Source   string          `json:"source,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`

	// Correlation is the same of all jobs that come from each other: what
	// their producer said, or else the first one's ID. It is never empty.
	Correlation string `json:"correlation"`

	Retry     string        `json:"retry"` // in the text form of package retry
	Timeout   time.Duration `json:"timeout,omitempty"`
	StartBy   time.Time     `json:"start_by,omitzero"` // the instant after which no attempt begins
	MaxLosses int           `json:"max_losses"`
	Created   time.Time     `json:"created"`
	Due       time.Time     `json:"due"`

	// Started and Finished are of the last execution. Of a job that is
	// cancelled, and that no engine came to end yet, both say when that was.
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`

	Provenance Provenance `json:"provenance,omitzero"`

	Executions []ExecutionInfo `json:"executions,omitempty"`
}

// ExecutionInfo is one attempt as people see it. Stores make it of what they
// keep, and then call its method Derive.
type ExecutionInfo struct {
	Attempt  int             `json:"attempt"`
	Outcome  Outcome         `json:"outcome"`
	Final    bool            `json:"final"`
	Reason   string          `json:"reason,omitempty"`
	Started  time.Time       `json:"started"`
	Finished time.Time       `json:"finished"`
	Engine   Token           `json:"engine,string"`
	Instance string          `json:"instance"`
	Host     string          `json:"host"`
	PID      int             `json:"pid"`
	Slot     int             `json:"slot"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Failure        `json:"error,omitempty"`

	// Recoverable is what [Failure] says; of a cancelled attempt it is false.
	// Nil when nothing failed.
	Recoverable *bool `json:"recoverable,omitempty"`
}

// Derive fills in what is not stored because the outcome says it all.
func (x *ExecutionInfo) Derive() {
	if x.Final {
		x.Reason = FinalReason(x.Outcome, x.Reason)
	}
	switch {
	case x.Outcome == OutcomeCancelled:
		x.Recoverable = new(false)
	case x.Error != nil:
		x.Recoverable = &x.Error.Recoverable
	}
}

// FinalReason is why a job ended, for people: what was stored with its last
// execution, or else what its outcome means.
func FinalReason(outcome Outcome, stored string) string {
	switch {
	case stored != "":
		return stored
	case outcome == OutcomeCompleted:
		return ReasonDone
	default:
		return outcome.String()
	}
}
