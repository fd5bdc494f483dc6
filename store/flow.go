package store

import (
	"context"

	"github.com/stint-go/stint"
)

// FlowReader shows what jobs of flows need. A store that has it also stores flows: the jobs that
// [stint.Enqueuer] gets have a Member then. All jobs of a batch have one, or none has. The first is a new flow, or all are
// added to one. The receipt of a flow whose key is held is that of the holder, and those of its jobs are empty. Of a job that is added
// under a name that the flow has, the receipt is that of the job of that name.
//
// Each job that is added to a flow, or blocked, is looked at by [Promoter] when its transaction
// has committed; so is each end of one that [Completion.Flow] is set of.
type FlowReader interface {
	// Node returns the job that has a name in a flow, or [stint.ErrNotFound].
	Node(ctx context.Context, flow stint.ID, name string) (stint.ID, error)

	// Needed lists what a job needs, by id, after one.
	Needed(ctx context.Context, job, after stint.ID, limit int) ([]stint.NeededJob, error)
}
