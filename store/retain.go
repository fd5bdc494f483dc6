package store

import (
	"context"
	"time"
)

// Retainer deletes jobs that ended long ago.
type Retainer interface {
	// Retain does one step of what keeps a store from growing for ever, in a
	// transaction of its own, and says where the next step begins. It reads
	// and deletes about as much as the request's limit says, however much there
	// is.
	//
	// The age of a job counts from its final outcome, by the store's clock,
	// whichever outcome that was. It goes with all that is known of it, as when
	// a person deletes it ([Operator.Delete]): a job that has not ended is not
	// touched, and what an engine repeats does not bring it back. Its
	// idempotency key is forgotten when its age has passed too, and at least
	// 24 hours after the enqueue.
	//
	// Of what engines did those claims go of whose entries none is left; not a
	// lane's newest, from which it goes on, nor one that others point to or
	// that an engine may still name. So do the histories of engines which
	// ended before any job that is left. What people changed ([ChangeKeeper]) goes
	// after [ChangesKept], however long jobs are kept.
	//
	// [ErrNotHeld] when the request is under a lease that its engine does not
	// hold; then nothing was done. No other engine gets the lease before the
	// step has ended.
	Retain(ctx context.Context, r RetainStep) (Retained, error)
}

// RetainPart is one of the things to go through. The order matters: what jobs
// left behind is found when they are gone.
type RetainPart string

// The parts.
const (
	RetainJobs    RetainPart = "jobs"
	RetainClaims  RetainPart = "claims"
	RetainKeys    RetainPart = "keys"
	RetainEngines RetainPart = "engines"
	RetainChanges RetainPart = "changes"
)

// RetainParts are all of them, in their order.
var RetainParts = []RetainPart{RetainJobs, RetainClaims, RetainKeys, RetainEngines, RetainChanges}

// RetainStep says what one step is to do.
type RetainStep struct {
	Part  RetainPart
	From  RetainMark // where it begins; the zero value is the beginning
	Limit int        // how many rows to look at, at most
	Keep  Retention
	Under LeaseGuard // the lease under which that is done, if it is

	// Age confines the part of jobs to those that are kept for exactly so long;
	// zero means all. Whoever remembers where the last pass for each age came to
	// need not look at the same jobs again and again.
	Age time.Duration
}

// RetainMark is how far one part has come. What it holds is the store's
// business.
type RetainMark struct {
	Pos  Position
	Lane LaneID
	N    int64
}

// Retained is what one step did.
type Retained struct {
	Deleted int        // how many jobs, claims, keys, engines or changes
	Next    RetainMark // where the next step begins
	More    bool       // whether there is more to look at now; if not, what is behind Next is too young
	Young   RetainMark // where the first job is that is yet too young, if one was met; a later pass begins there
}
