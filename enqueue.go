package stint

import "context"

// Enqueuer stores new jobs.
type Enqueuer interface {
	// Enqueue stores all of the jobs or none and returns their receipts in
	// the same order. With the zero Tx the jobs are durable when it returns and
	// engines are woken; otherwise both happen when the caller's transaction
	// commits, and neither when it rolls back. The jobs were filled with
	// defaults and have passed [NewJob.Check]; [Client] does both.
	//
	// A job with an idempotency key is stored only if no job was stored under
	// that key before, in this batch or at any time that the store remembers:
	// at least a day from the enqueue, and for as long as that job is kept
	// after it ended. Otherwise its receipt names that job and says that this
	// one is a duplicate. When the [NewJob.Fingerprint] is another than the
	// first one's, nothing of the batch is stored and the error is a
	// [KeyConflictError]; a caller's transaction is as it was, and goes on.
	//
	// It waits for another producer only when that one's open transaction has
	// taken one of the keys, and then until it ends: whether the job exists
	// is not known before.
	//
	// A job that is due only after the instant by which it is to begin is refused
	// as [ErrInvalid], with the batch. In a caller's transaction that may be the
	// end of it, as any error of a statement is in PostgreSQL.
	//
	// After an error that leaves a commit unknown (a connection that broke
	// meanwhile) the jobs may have been stored.
	Enqueue(ctx context.Context, tx Tx, jobs []NewJob) ([]Receipt, error)
}

// Receipt says what came of one job that was to be enqueued.
type Receipt struct {
	ID ID `json:"id"`

	// Duplicate says that a job had been enqueued under this job's
	// idempotency key before: ID is that one's, and nothing was stored.
	Duplicate bool `json:"duplicate,omitempty"`
}

// Tx is a caller's transaction, as a store's package wraps it: postgres.Tx,
// postgres.SQLTx, sqlite.Tx. The zero value is none.
type Tx struct {
	// Handle is the driver's own transaction. A store refuses one that it
	// does not know.
	Handle any

	// Quiet leaves engines unwoken: they find the jobs at their next poll.
	// For transactions that cannot notify (PostgreSQL's PREPARE TRANSACTION
	// refuses it).
	Quiet bool
}
