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

// Filter chooses jobs; a zero field does not restrict.
type Filter struct {
	State  State
	Kind   string
	Queue  string
	Tag    string
	URN    string
	Source string

	// Correlation shows the jobs that come from each other: those that were
	// given this one, and the job of this ID when it was given none.
	Correlation string

	Before ID  // only jobs with a lower ID: the way to the next page
	Limit  int // how many at most; 0 means 100
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
	Reason   string          `json:"reason,omitempty"`
	Tags     []string        `json:"tags,omitempty"`
	URN      string          `json:"urn,omitempty"`
	Source   string          `json:"source,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`

	// Correlation is the same of all jobs that come from each other: what
	// their producer said, or else the first one's ID. It is never empty.
	Correlation string `json:"correlation"`

	Retry     string        `json:"retry"` // in the text form of package retry
	Timeout   time.Duration `json:"timeout,omitempty"`
	MaxLosses int           `json:"max_losses"`
	Created   time.Time     `json:"created"`
	Due       time.Time     `json:"due"`
	Started   time.Time     `json:"started,omitzero"`  // of the last execution
	Finished  time.Time     `json:"finished,omitzero"` // of the last execution

	Executions []ExecutionInfo `json:"executions,omitempty"`
}

// ExecutionInfo is one attempt as people see it.
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
}
