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
	// It waits for another producer only if that one's open transaction has
	// taken one of the keys, and then until the transaction ends, since only then is
	// it known whether the job exists.
	//
	// A job that is due only after its StartBy is refused as [ErrInvalid], with the
	// whole batch. In PostgreSQL that aborts a caller's transaction, as any error of a
	// statement does.
	//
	// After an error that leaves a commit unknown (a connection that broke
	// meanwhile) the jobs may have been stored.
	Enqueue(ctx context.Context, tx Tx, jobs []NewJob) ([]Receipt, error)
}

// Receipt is the result of enqueuing one job.
type Receipt struct {
	ID ID `json:"id"`

	// Duplicate reports that a job had been enqueued with the same idempotency key
	// before. ID is that job's, and nothing was stored.
	Duplicate bool `json:"duplicate,omitempty"`
}

// Tx is a caller's transaction, as a store's package wraps it: postgres.Tx,
// postgres.SQLTx, sqlite.Tx. The zero value is none.
type Tx struct {
	// Handle is the driver's own transaction. A store refuses one of a type that it
	// does not support.
	Handle any

	// Quiet does not notify engines: they find the jobs at their next poll. It is for
	// transactions that cannot notify (PostgreSQL's PREPARE TRANSACTION refuses it).
	Quiet bool
}
