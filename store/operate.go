package store

import (
	"context"

	"github.com/stint-go/stint"
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
	// [stint.Origin]. The old one stays what it was, and keeps its idempotency
	// key. A job that is ready or runs is left alone.
	//
	// A job that waits keeps its StartBy, also when it is put off until after it. One
	// that is recovered has none: the old one's is over, or will soon be, and
	// whoever asks for the job again wants it done.
	//
	// After an error that leaves a commit unknown (a connection that broke
	// meanwhile) the jobs may have been recovered; to ask again with Once
	// recovers none of them twice.
	Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error)

	// Delete removes jobs that have ended, with all that is known of them but
	// their idempotency keys, which are remembered for as long as they would
	// have been. A job that has not ended is left alone. An engine that repeats what it recorded
	// of a deleted job, because the answer was lost, does not bring it back.
	Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]DeleteStatus, error)

	// Find lists the IDs of jobs as [Inspector.Jobs] does the jobs. Those who
	// mean all that a filter chooses go through it with [FindEach].
	Find(ctx context.Context, f Filter) ([]stint.ID, error)
}

// DeleteStatus is what came of deleting a job.
type DeleteStatus string

// What can come of it.
const (
	DeletedNow     DeleteStatus = "deleted"   // it is gone
	DeleteNotFinal DeleteStatus = "too early" // it has not ended
	DeleteNotFound DeleteStatus = "not found" // there is no such job
)
