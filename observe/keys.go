package observe

// Keys of the attributes of log lines. Searches and alerts are built on them,
// so they stay what they are.
const (
	KeyInstance  = "instance"    // the engine's name
	KeyJob       = "job"         // the job's id
	KeyKind      = "kind"        // the job's kind
	KeyQueue     = "queue"       // the job's queue
	KeyAttempt   = "attempt"     // which attempt, from 1
	KeySlot      = "slot"        // which of the engine's slots worked on it, from 1
	KeyOutcome   = "outcome"     // how the attempt ended
	KeyTook      = "took"        // how long an attempt or a statement took
	KeyReason    = "reason"      // why the job ended
	KeyClass     = "error_class" // the class of the error
	KeyError     = "error"       // its message
	KeyNext      = "next"        // how long until the next attempt
	KeyUndecided = "undecided"   // the retry function that is to decide about it
	KeyCount     = "count"       // how many jobs
	KeyBegun     = "begun"       // how many of these had begun
	KeyBuried    = "buried"      // the name of the engine that died
	KeyLease     = "lease"       // the name of a lease
	KeyMissing   = "suppressed"  // how many lines about trouble were left out before it: of its kind, and of others for which there was no room
	KeySQL       = "sql"         // the text of a statement
	KeyRows      = "rows"        // how many rows it returned or changed
)
