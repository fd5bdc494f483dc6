package check

import "time"

// Facts are the rows of a store that decide the fate of jobs, as of one
// moment. The comparison sorts the slices in place.
type Facts struct {
	Jobs       []Job
	Entries    []Entry
	Executions []Execution
	Claims     []Claim
	Waiting    []Waiting
	Needs      []Need              // of the jobs of flows
	Steps      []Step              // what steps came to, of all jobs; nil when nobody read that
	Kept       []int64             // the jobs of which steps are kept, lines or a progress
	Roster     []int64             // tokens of the engines that stand
	Buried     map[int64]time.Time // and of those that do not, with the moment, by the store's clock

	// Occurrences are those of schedules that must each have its job. Others
	// may have one.
	Occurrences map[string][]time.Time
}

// Job is one job as people see it, with what its producer asked for.
type Job struct {
	ID    int64
	State string // a name of a state
	Final bool   // whether that state is final

	// Key is the workload's own name of the job, read from its arguments.
	// Empty when nobody read it: then only the id connects it to the
	// history.
	Key string

	// ChargedMax is how many attempts may be charged: one more than the
	// policy's retries. 0 when not known.
	ChargedMax int

	// LossesMax is how many executions may be lost, the last of them for good. 0
	// when not known.
	LossesMax int

	// Once says that it must not run again because of anything that happened to
	// its engine: only when its handler failed, snoozed, or heeded a stop.
	Once bool

	// CompletesItself says that its handler may record its success in a
	// transaction of its own, so that it counts whatever happens to the handler
	// afterwards.
	CompletesItself bool

	// Lingers says that its handler may go on for as long as the bound when it was
	// cancelled.
	Lingers bool

	// Recovers is the job that had ended and that this one does again: no
	// producer enqueued it. 0 when it does none.
	Recovers int64

	// Flow is the flow that it belongs to, or the job that called it; 0 for none. No producer need
	// have enqueued what IsFlow.
	Flow   int64
	IsFlow bool

	// Schedule made it, of Occurrence: no producer enqueued it. Empty when a
	// producer did; the zero time when it was run out of turn.
	Schedule   string
	Occurrence time.Time

	// Kept says that its handler may go on, for as long as it likes, when its
	// engine was buried.
	Kept bool

	// AtOnce is how many jobs may run at once, by each limit that it waits for and its key.
	AtOnce map[string]int

	// Unique is a key of which no other job may begin before this one has ended; empty for none. Keyless
	// says that it is unique until it has ended, and has no key.
	Unique  string
	Keyless bool
}

// The states of a job, named as everywhere.
const (
	StateScheduled = "scheduled"
	StateRetrying  = "retrying"
	StateBlocked   = "blocked"
	StateAvailable = "available"
	StateRunning   = "running"
	StateCompleted = "completed"
	StateFailed    = "failed"
	StateCancelled = "cancelled"
)

// Entry is one appearance of a job in the log. Behind says that it is behind
// the frontier of its lane and not pending there.
type Entry struct {
	Pos     int64
	Job     int64
	Lane    int64
	Attempt int
	Behind  bool
}

// Execution is one recorded attempt.
type Execution struct {
	Pos      int64
	Job      int64
	Attempt  int
	Outcome  string // a name of an outcome
	Final    bool
	Charged  bool  // against the retry policy
	Decided  bool  // nobody ran it: it ended a job that waited, undecided, to be tried again
	Engine   int64 // who ran it, or had it in hand
	Nonce    int64 // of the claim; 0 when none took the entry
	Started  time.Time
	Finished time.Time // by the store's clock
	Unbegun  bool      // it is recorded that it did not begin
	Reason   string    // that is recorded with the outcome
}

// The outcomes of an attempt, named as everywhere.
const (
	OutcomeCompleted = "completed"
	OutcomeFailed    = "failed"
	OutcomeSnoozed   = "snoozed"
	OutcomeReturned  = "returned"
	OutcomeLost      = "lost"
	OutcomeCancelled = "cancelled"
	OutcomeExpired   = "expired"
	OutcomeSkipped   = "skipped"
)

// byEngine reports whether an outcome is recorded by the engine that ran the
// handler to its end, and by nobody else.
func byEngine(outcome string) bool {
	return outcome == OutcomeCompleted || outcome == OutcomeFailed || outcome == OutcomeSnoozed
}

// Claim is a batch of entries that an engine took.
type Claim struct {
	Lane, N   int64
	Nonce     int64
	Engine    int64
	Positions []int64
}

// Step is what a step of a job came to, as the workload writes it down.
type Step struct {
	Job         int64
	Name, Value string
}

// Waiting is a job that waits for its time. Attempt is that of its next
// entry; 0 when not known.
type Waiting struct {
	Job     int64
	Attempt int
}
