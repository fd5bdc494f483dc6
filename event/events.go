package event

import (
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// EventType says what happened.
type EventType string

// The events of an engine.
const (
	EventJoined        EventType = "joined"         // the engine entered the roster
	EventDraining      EventType = "draining"       // it takes no more jobs, and leaves when those that run have ended
	EventLeft          EventType = "left"           // it left cleanly
	EventBuried        EventType = "buried"         // it found that it was buried, or may be soon: it ends its handlers' contexts and joins again
	EventStarted       EventType = "started"        // an attempt began
	EventEnded         EventType = "ended"          // an attempt ended and is recorded, or a retry function ended a job that waited for it
	EventFailed        EventType = "failed"         // and with it the job failed for good
	EventReturned      EventType = "returned"       // entries were handed back unstarted
	EventBurial        EventType = "burial"         // it buried another engine and took over what that held
	EventLeaseAcquired EventType = "lease acquired" // it is the one that does what the lease is for
	EventLeaseLost     EventType = "lease lost"     // it is not any more: it gave the lease back, could not renew it in time, or was deposed
	EventRetained      EventType = "retained"       // it deleted jobs that ended long ago
	EventTrouble       EventType = "trouble"        // something failed, and will be tried again unless it is about a job
)

// Event is one thing that an engine did or met. Engines neither log nor
// count; whoever wants either makes it of these.
//
// The events of one attempt come in the order started, ended, failed, and those
// of a job attempt by attempt, as far as one engine makes them. A job
// that failed because its engine was lost is told as failed by the engine that
// buried the other, without ended; its execution has no times. One that expired
// did not begin, and is told as failed only.
type Event struct {
	Type     EventType
	Time     time.Time
	Engine   store.EngineID
	Instance string

	Job     *stint.Job        // of started, ended and failed, and of trouble with a job; not to be written to
	Slot    int               // of started: which of the engine's slots, from 1
	Ready   time.Time         // of started: when the job became ready for this attempt, by the store's clock
	Attempt *store.Completion // of ended and failed, and of trouble with a hook; not to be written to
	Count   int               // of returned and burial: how many entries; of retained: how many jobs
	Begun   int               // of burial: how many of these had begun
	Other   *store.EngineInfo // of burial: the engine that was buried
	Doing   string            // of trouble: what was tried
	About   string            // of trouble: the name that Doing ends with, where it ends with one; the words before it are always the same ones
	Err     error             // of trouble; of draining, why, where the program said so; of lease lost, why: ErrStopping, ErrFenced, ErrNotHeld, or what kept it from being renewed
	Lease   string            // of lease acquired and lost: its name
}
