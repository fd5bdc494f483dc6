package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/await"
)

// Awaiter is a store that lets programs wait for jobs to end. It is optional. The
// stores of this module are, and so is a server's (package remote), over HTTP.
type Awaiter interface {
	// Await returns the job, with all of its attempts, once its state is final:
	// at once if it is already. A job that is retried goes on, and so does the
	// wait. The error is [stint.ErrNotFound] when there is no such job, or it was
	// deleted meanwhile, and the cause of ctx when that ends first. A database
	// that is away for a while does not end a wait that had begun.
	//
	// All waiters of one process share one query, and may share the answer's
	// attempts, which must not be changed. What this process records is known at
	// once; what others record, after at most an eighth of the time waited, and
	// about a second at most. Over HTTP the server's process is the one that counts.
	Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error)
}

// Waits are the calls of [Awaiter] that wait in this process, for stores.
// Make them with [NewWaits].
type Waits struct {
	*await.Hub[stint.ID, *stint.JobInfo]
}

// NewWaits returns waits that ask ended which of some jobs have ended: it
// returns nil for those that do not exist.
func NewWaits(ended func(context.Context, []stint.ID) (map[stint.ID]*stint.JobInfo, error)) Waits {
	return Waits{await.New(ended)}
}

// Await implements [Awaiter].
func (w Waits) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	job, err := w.Wait(ctx, id)
	switch {
	case errors.Is(err, await.ErrClosed):
		return nil, fmt.Errorf("await job %d: the store is closed: %w", id, fs.ErrClosed)
	case err != nil:
		return nil, fmt.Errorf("await job %d: %w", id, err)
	case job == nil:
		return nil, fmt.Errorf("%w with id %d", stint.ErrNotFound, id)
	}
	return new(*job), nil // others may wait for the same one
}

// Finished has those jobs looked at that ended by what was just recorded.
func (w Waits) Finished(done []Completion) {
	if !w.Any() {
		return
	}
	for i := range done {
		if done[i].Final {
			w.Nudge(done[i].Job)
		}
	}
}
