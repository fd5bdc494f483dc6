package stint

import (
	"encoding/json"
	"time"

	"github.com/stint-go/stint/retry"
)

// JobInfo is a job as people see it.
type JobInfo struct {
	ID       ID              `json:"id"`
	Kind     string          `json:"kind"`
	State    State           `json:"state"`
	Begun    bool            `json:"begun,omitempty"` // running, and its engine recorded the start
	Queue    string          `json:"queue"`
	Priority int             `json:"priority"`
	Args     json.RawMessage `json:"args"`
	Attempt  int             `json:"attempt" doc:"The number of the attempt that runs or comes next, from 1; of a job that has ended, that of the last"`
	Losses   int             `json:"losses,omitempty"`
	Reason   string          `json:"reason,omitempty"` // of a final state: never empty

	// Faulty is set on a job that has not ended once it failed so often that a person
	// should look at it: see [retry.Policy.Faulty].
	Faulty bool `json:"faulty,omitempty"`

	// PendingRetry names the retry function that decides whether and when the job runs
	// again. The job waits, without a date, for an engine that has this function.
	PendingRetry string `json:"pending_retry,omitempty"`

	// Awaits are the names of the signals that the job waits for while it is [Blocked]: one of them
	// has it run before it is due.
	Awaits []string `json:"awaits,omitempty" doc:"The signals that it waits for while it is blocked: one of them has it run before it is due"`

	// Asks are the names of the questions whose answers the job waits for while it is [Blocked].
	Asks []string `json:"asks,omitempty" doc:"The questions whose answers it waits for while it is blocked: the first answer has it run before it is due"`

	// Flow is the flow that the job belongs to, and Node its name there; 0 and empty for none.
	Flow ID     `json:"flow,omitempty" doc:"The flow that it belongs to"`
	Node string `json:"node,omitempty" doc:"Its name there"`

	// IsFlow is set on a flow: no engine runs it, it ends when its jobs have.
	IsFlow bool `json:"is_flow,omitempty" doc:"It is a flow: no engine runs it, it ends when its jobs have"`

	// NeedsFirst is, while the job is [Blocked] and needs other jobs, one that has perhaps not ended.
	NeedsFirst ID `json:"needs_first,omitempty" doc:"Of a blocked job, one that must end first"`

	Tags     []string        `json:"tags,omitempty"`
	URN      string          `json:"urn,omitempty"`
	Source   string          `json:"source,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`

	// Correlation is the same for all jobs that come from each other: what
	// their producer set, or else the first job's ID. It is never empty.
	Correlation string `json:"correlation"`

	Retry     string         `json:"retry"` // in the text form of package retry
	Timeout   retry.Duration `json:"timeout,omitempty"`
	StartBy   time.Time      `json:"start_by,omitzero"` // the instant after which no attempt begins
	MaxLosses int            `json:"max_losses"`
	Unique    string         `json:"unique,omitempty"` // as in [NewJob]
	Limits    []string       `json:"limits,omitempty"` // the limits that it waits for, with their keys
	Created   time.Time      `json:"created"`
	Due       time.Time      `json:"due"`

	// Started and Finished are those of the last attempt. For a cancelled job whose
	// end no engine has recorded yet, both are the time of the cancellation.
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`

	Origin Origin `json:"origin,omitzero"`

	// RetriedAs is the newest job that repeats this one, which has ended; 0 for none,
	// and if it was deleted. Lists of jobs leave it out. The other direction is
	// Origin.Recovered.
	RetriedAs ID `json:"retried_as,omitempty"`

	Attempts []Attempt `json:"attempts,omitempty"`
}

// Attempt is the record of one attempt, as people see it. Where Slot is 0 it did not begin, or died
// with its engine, so that nobody knows when it began; Started is then as Finished. Stores fill in what
// they keep, and then call Derive.
type Attempt struct {
	Attempt  int             `json:"attempt"`
	Outcome  Outcome         `json:"outcome"`
	Final    bool            `json:"final"`
	Reason   string          `json:"reason,omitempty"`
	Started  time.Time       `json:"started" doc:"When it began. Where slot is 0 it did not, or nobody knows when: then this is when it ended"`
	Finished time.Time       `json:"finished"`
	Engine   int64           `json:"engine,string"` // the engine's ID
	Instance string          `json:"instance"`
	Host     string          `json:"host"`
	PID      int             `json:"pid"`
	Slot     int             `json:"slot"`
	Result   json.RawMessage `json:"result,omitempty"`
	Error    *Failure        `json:"error,omitempty"`

	// RetryIn is how long the job waits after an attempt that was not the last. It is
	// set for hooks only.
	RetryIn time.Duration `json:"-"`

	// Recoverable is what [Failure] says; of a cancelled attempt it is false.
	// Nil when nothing failed.
	Recoverable *bool `json:"recoverable,omitempty"`
}

// Derive fills in what follows from the outcome and is not stored.
func (x *Attempt) Derive() {
	if x.Final {
		x.Reason = x.Outcome.FinalReason(x.Reason)
	}
	switch {
	case x.Outcome == OutcomeCancelled:
		x.Recoverable = new(false)
	case x.Error != nil:
		x.Recoverable = &x.Error.Recoverable
	}
}

// Failure is an error as it is stored and shown.
type Failure struct {
	Class   string   `json:"class"`             // see [retry.ErrorClass]
	Classes []string `json:"classes,omitempty"` // all of them, where there are several
	Message string   `json:"message"`
	Stack   string   `json:"stack,omitempty"`

	// Recoverable reports whether a job can be retried after this error: not if the
	// error or a filter of the policy forbids it. It may be set when no retry is left.
	Recoverable bool `json:"recoverable"`

	// Note says what went wrong afterwards, such as a panic in the retry function.
	Note string `json:"note,omitempty"`
}

// AllClasses returns all classes of the error.
func (f *Failure) AllClasses() []string {
	if f.Classes != nil {
		return f.Classes
	}
	return []string{f.Class}
}
