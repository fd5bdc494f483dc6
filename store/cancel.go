package store

import (
	"context"

	"github.com/stint-go/stint"
)

// Canceller ends jobs that are not wanted any more.
//
// Cancelling begins with a marker that is committed before anything else
// happens, and everybody who moves a job looks at it: whoever promotes,
// claims, starts or records. So it does not matter where the job is at the
// moment, or between which places.
type Canceller interface {
	// Cancel cancels jobs and says of each what came of it. What waits or is
	// available has ended when it returns, for good: no engine gets it, whenever
	// one comes. A job that an engine has is asked to stop:
	// its handler's context is cancelled with [stint.ErrCancelled], and how the
	// handler ends decides: with an error it is cancelled, without one it was
	// completed after all. A running job is not retried after that.
	//
	// An outcome that is final by itself, such as an error that is not to be
	// retried, stands.
	//
	// Why is kept as the reason, the first one if a job is cancelled twice; a
	// running job shows it too.
	Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error)

	// Cancelling lists the jobs among these that somebody cancelled, themselves or with
	// their flow or with the job that called them, and that have no final outcome yet.
	Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error)
}
