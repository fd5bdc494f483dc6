// Package event is what engines and stores report to listeners: events of jobs and engines
// ([Event]), statements ([Query]), and why an engine is not ready ([UnreadyError]).
//
// Package observe turns them into lines of a log, metrics and traces.
package event

import (
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// EventType says what happened.
type EventType string

// The events of an engine.
const (
	EventJoined        EventType = "joined"         // the engine entered the roster
	EventDraining      EventType = "draining"       // it takes no more jobs, and leaves when running jobs have ended
	EventLeft          EventType = "left"           // it left cleanly
	EventBuried        EventType = "buried"         // it found that it was buried, or may be soon: it ends its handlers' contexts and joins again
	EventStarted       EventType = "started"        // an attempt began
	EventEnded         EventType = "ended"          // an attempt ended and is recorded, or a retry function ended a job that waited for its decision
	EventFailed        EventType = "failed"         // and the job failed with it
	EventReturned      EventType = "returned"       // entries were returned unstarted
	EventBurial        EventType = "burial"         // it buried another engine and took over its jobs
	EventSettled       EventType = "settled"        // it joined again after it had lost its place, and recorded what became of the jobs that it held
	EventLeaseAcquired EventType = "lease acquired" // it does the task of the lease from now on
	EventLeaseLost     EventType = "lease lost"     // it does not any more: it gave the lease back, could not renew it in time, or the lease was revoked
	EventRetained      EventType = "retained"       // it deleted jobs that ended long ago
	EventSlots         EventType = "slots"          // it changed how many slots it has (engine.Config.MaxSlots)
	EventPaused        EventType = "paused"         // it paused a limit, since a handler asked for it (stint.Defer) or too many attempts failed
	EventTrouble       EventType = "trouble"        // something failed, and will be tried again unless it is about a job
)

// Event is one thing that happened in an engine. Engines do not log; listeners make logs and
// metrics of events.
//
// The events of one attempt come in the order started, ended, failed, and those of a job attempt by
// attempt, as far as one engine emits them. If a job failed because its engine was lost, the engine
// that buried the other emits failed without ended; the attempt has no times. A job that expired did
// not start: its only event is failed.
type Event struct {
	Type     EventType
	Time     time.Time
	Engine   store.EngineID
	Instance string

	Job     *stint.Job        // of started, ended and failed, and of trouble with a job; not to be written to
	Slot    int               // of started: which of the engine's slots, from 1
	Ready   time.Time         // of started: when the job became ready for this attempt, by the store's clock
	Attempt *store.Completion // of ended and failed, and of trouble with a hook; not to be written to
	Count   int               // of returned, burial and settled: how many entries; of retained: how many jobs; of slots: how many there are now
	Begun   int               // of burial and settled: how many of these had begun
	Other   *store.EngineInfo // of burial: the engine that was buried
	Doing   string            // of trouble: what was tried
	About   string            // of trouble: the name that Doing ends with, if it does; the words before it are always the same
	Err     error             // of trouble; of draining: the reason that the program gave; of buried: the same, if the program let go of it; of lease lost: ErrStopping, ErrFenced, ErrNotHeld, or why it was not renewed
	Lease   string            // of lease acquired and lost: its name
	Limit   string            // of paused: which limit, or key of one
	Wait    time.Duration     // of paused: for how long
	Why     string            // of paused, and of slots
}

// Conditions of an engine that works, in the order in which they are checked.
const (
	ConditionRunning  = "running"  // the engine was started, has not returned, and its loops go on
	ConditionRoster   = "roster"   // it stands in the roster
	ConditionTaking   = "taking"   // it takes jobs: it was not told to stop or to leave
	ConditionBeat     = "beat"     // its last beat arrived within the time to live
	ConditionDatabase = "database" // the database answers, and has it in the roster
)

// UnreadyError says which condition of an engine that works does not hold.
type UnreadyError struct {
	Condition string
	Problem   string // in a few words, without names of servers or users
	Err       error  // the error behind it, if there is one; it may contain such names
}

// Error begins with the condition.
func (e *UnreadyError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("%s: %s: %v", e.Condition, e.Problem, e.Err)
	}
	return e.Condition + ": " + e.Problem
}

// Unwrap returns Err.
func (e *UnreadyError) Unwrap() error { return e.Err }

// Query is one statement that a store ran: a store's configuration has the hook OnQuery, which gets
// each of them. Arguments are not in it, because they may be secrets.
type Query struct {
	Text string        // as it was sent, with placeholders
	Took time.Duration // until its last row was read, or until it failed
	Rows int64         // that it returned or changed, if the database says so
	Err  error         // why it failed; databases may quote values in it
}

// TellTo calls a function with the query, and ignores its panic.
func (q Query) TellTo(listen func(Query)) {
	defer func() { _ = recover() }()
	listen(q)
}
