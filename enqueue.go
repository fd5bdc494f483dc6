package stint

import "context"

// Enqueuer stores new jobs.
type Enqueuer interface {
	// Enqueue stores all of the jobs or none and returns their IDs in the
	// same order. With the zero Tx the jobs are durable when it returns and
	// engines are woken; otherwise both happen when the caller's transaction
	// commits, and neither when it rolls back. It does not wait for other
	// producers. The jobs were filled with defaults and have passed
	// [NewJob.Check]; [Client] does both.
	//
	// After an error that leaves a commit unknown (a connection that broke
	// meanwhile) the jobs may have been stored.
	Enqueue(ctx context.Context, tx Tx, jobs []NewJob) ([]ID, error)
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
