package check

import "time"

// History is what the processes of a test wrote down.
type History struct {
	Processes []Process
	Enqueues  []Enqueue
	Runs      []Run

	// Torn counts the processes whose last record was cut off, as a kill in
	// the middle of a write does. What it would have said had not happened:
	// records are written before the act, or when it is over.
	Torn int
}

// Process is one process, by the name that it gave itself: a new one for
// each life, so that "worker-3" killed and started again is two.
type Process struct {
	Name    string
	PID     int
	Started Instant
	Wall    time.Time // what the wall clock said at Started
	Stopped Instant   // when it closed its log; 0 when it never did
}

// instant is the moment at which this process's wall clock would show t.
func (p *Process) instant(t time.Time) Instant { return p.Started.Add(t.Sub(p.Wall)) }

// Fate is what became of the commit of an enqueue.
type Fate int8

// The fates of an enqueue.
const (
	Unknown    Fate = iota // the answer was lost, or its process died before it wrote it down
	Committed              // the database said so
	RolledBack             // nothing was ever committed
)

// String is the fate in words.
func (f Fate) String() string { return [...]string{"unknown", "committed", "rolled back"}[f] }

// Enqueue is one job that a producer meant to enqueue.
type Enqueue struct {
	Key     string // the workload's own name of the job
	Job     int64  // its id; 0 unless committed
	At      Instant
	Process int32 // index in History.Processes
	Batch   int32 // of the process: those with the same number are one transaction
	Fate    Fate
}

// How says how a handler ended.
type How string

// The ways in which a handler ends.
const (
	Open      How = ""          // it did not, as far as the log knows
	OK        How = "ok"        // it did its work
	Error     How = "error"     // it returned an error
	Panic     How = "panic"     // it panicked
	Snooze    How = "snooze"    // it asked to be run later
	Cancelled How = "cancelled" // it gave up because its context was cancelled
	Recorded  How = "recorded"  // it recorded its success itself, and was told that this was done
)

// Run is one run of a handler.
type Run struct {
	Job     int64
	Pos     int64 // the entry; 0 when the handler cannot know, then it is found by the attempt
	Engine  int64 // the engine's token; 0 when the handler cannot know
	Attempt int
	Slot    int

	Process int32 // index in History.Processes; set by the log
	Start   Instant
	End     Instant // 0 when it did not end
	How     How
	Cause   string // of the cancellation, or whatever the handler had to say
}
