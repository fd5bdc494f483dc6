package stint

import (
	"context"
	"time"
)

// Operator changes what becomes of jobs, for people and for programs that act
// in their place. What it is told it does for all of the jobs or for none: one
// call is one transaction, so those who mean many jobs call it for a few
// hundred at a time.
//
// Operators take turns, so two of them who mean the same job at once see what
// the other one did.
type Operator interface {
	// Retry has jobs run again, and says of each what came of it. A job that
	// waits is ready when it returns, or becomes due at the time that again
	// names instead of its own; nothing is charged. A job that ended is
	// recovered: a new job with everything that was said of the old one, its
	// first attempt ahead of it, its correlation id, and the old one as its
	// [Provenance]. The old one stays what it was, and keeps its idempotency
	// key. A job that is ready or runs is left alone.
	//
	// A job that waits keeps its StartBy, also when it is put off behind it. One
	// that is recovered has none: the old one's is over, or will soon be, and
	// whoever asks for the job again wants it done.
	//
	// After an error that leaves a commit unknown (a connection that broke
	// meanwhile) the jobs may have been recovered; to ask again with Once
	// recovers none of them twice.
	Retry(ctx context.Context, ids []ID, again Again) (map[ID]Retried, error)

	// Delete removes jobs that have ended, with all that is known of them but
	// their idempotency keys, which are remembered for as long as they would
	// have been. A job that has not ended is left alone. An engine that repeats what it recorded
	// of a deleted job, because the answer was lost, does not bring it back.
	Delete(ctx context.Context, ids []ID) (map[ID]Deletion, error)

	// Find lists the IDs of jobs as [Inspector.Jobs] does the jobs. Those who
	// mean all that a filter chooses go through it with [Selected].
	Find(ctx context.Context, f Filter) ([]ID, error)
}

// Again says when jobs run again, and which; the zero value is now, and all.
type Again struct {
	// At is the instant before which they are not started, by the store's
	// clock. The zero time and one in the past mean now.
	At time.Time

	// In is the same counted from the store's clock. At most one of At and In
	// may be set.
	In time.Duration

	// Once leaves alone the jobs that were recovered before, if what they
	// were recovered as is still there.
	Once bool
}

// Check reports what is wrong with the times, or nil.
func (a Again) Check() error {
	return NewJob{RunAt: a.At, Delay: a.In}.checkTimes()
}

// Retried is what came of running a job again.
type Retried struct {
	Answer Retrial `json:"answer"`

	// ID is the job that runs: the job itself, or what it was recovered as.
	// Zero when there is none.
	ID ID `json:"id,omitempty"`
}

// Retrial is what can come of running a job again.
type Retrial string

// The answers.
const (
	RetryReady           Retrial = "ready"            // it waited, and is ready now
	RetryScheduled       Retrial = "scheduled"        // it waits, until the time that was named
	RetryRecovered       Retrial = "recovered"        // it had ended, and a new job does it again
	RetryRecoveredBefore Retrial = "recovered before" // the same, but somebody had seen to that already
	RetryAvailable       Retrial = "available"        // it was ready already
	RetryRunning         Retrial = "running"          // it runs
	RetryOfNothing       Retrial = "not found"        // there is no such job
)

// Done reports whether the job runs again because of the call.
func (r Retrial) Done() bool { return r == RetryReady || r == RetryScheduled || r == RetryRecovered }

// Deletion is what came of deleting a job.
type Deletion string

// What can come of it.
const (
	DeletedNow      Deletion = "deleted"   // it is gone
	DeleteTooEarly  Deletion = "too early" // it has not ended
	DeleteOfNothing Deletion = "not found" // there is no such job
)

// Provenance says what made a job that no producer enqueued. The zero value is
// a job of a producer's.
type Provenance struct {
	Recovered ID `json:"recovered,omitempty"` // the job that had ended and that this one does again

	Schedule   string    `json:"schedule,omitempty"`  // the schedule that made it
	Nth        int64     `json:"nth,omitempty"`       // its number among the jobs of that, from 1
	Occurrence time.Time `json:"occurrence,omitzero"` // what it was made of; zero for one that was run out of turn
}
