package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/await"
)

// Waits are the calls of [stint.Awaiter] that wait in this process, for stores.
// Make them with [NewWaits].
type Waits struct {
	*await.Hub[stint.ID, *stint.JobInfo]
}

// NewWaits returns waits that ask ended which of some jobs have ended: it
// returns nil for those that do not exist.
func NewWaits(ended func(context.Context, []stint.ID) (map[stint.ID]*stint.JobInfo, error)) Waits {
	return Waits{await.New(ended)}
}

// Await implements [stint.Awaiter].
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
