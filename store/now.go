package store

import (
	"context"
	"fmt"

	"github.com/stint-go/stint"
)

// ClaimedEnqueuer is a store that can enqueue a job for an engine that begins it at
// once. It is optional.
type ClaimedEnqueuer interface {
	// EnqueueClaimed stores a job that is ready at once, and takes its entry
	// for an engine, in one transaction: there is no moment at which the job
	// exists and another claim could take it, and none at which it is
	// nobody's. It is durable when it returns. The request says who asks; its
	// Lane is [NowLane], whatever it says, and nobody is waited for longer
	// than another of these takes, but for who is taking the job's key. The claim holds the one entry, whose
	// position is the job's ID.
	//
	// The answer is [ErrBuried] when the engine is not in the roster: nothing
	// was stored. Nor was it when a job was enqueued under the idempotency key
	// before, which is a [DuplicateError], or a [stint.KeyConflictError]. Other errors are those of [Claimer.Claim]. What holds of
	// jobs in [stint.Enqueuer.Enqueue] holds here, but that a RunAt or Delay is not
	// looked at, and that nobody is woken.
	EnqueueClaimed(ctx context.Context, job stint.NewJob, req ClaimRequest) (Claim, error)
}

// NowLane is the lane of entries that are claimed as they are appended, by
// [ClaimedEnqueuer]. No look ever shows it, since nothing in it waits, and no queue
// has a lane like it. A claim that takes what its own transaction appended is
// wrong in any other lane: it would step over what others append meanwhile.
// Here everything brings its own claim along.
var NowLane = LaneOf("", 0, "now", "").ID

// DuplicateError says that a job which was to be run at once was not, and not
// stored either, since one was enqueued under its idempotency key before. What
// became of that one, its page tells. To enqueue a duplicate is no error: see
// [stint.Receipt].
type DuplicateError struct {
	Key string
	ID  stint.ID // of the job that has the key
}

// Error names the key and the job that has it.
func (e *DuplicateError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("job %d holds the unique key", e.ID)
	}
	return fmt.Sprintf("idempotency key %q: job %d was enqueued under it before", e.Key, e.ID)
}

// Is makes every DuplicateError match [store.ErrDuplicate].
func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }
