package store

import (
	"context"
	"time"

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

	FlowGrapher
}

// FlowGrapher shows whole flows.
type FlowGrapher interface {
	// FlowGraph reads a flow with all that is in it and in the flows within it, as of one moment, or
	// [stint.ErrNotFound] if there is no such flow. It reads so many jobs and so many needs at most. An outer flow comes before
	// those within it, and of each the oldest jobs.
	FlowGraph(ctx context.Context, flow stint.ID, jobs, needs int) (FlowGraph, error)
}

// FlowGraph is a flow as [FlowGrapher] reads it.
type FlowGraph struct {
	// Jobs are the flow, the jobs in it and in the flows within it, those flows, and the jobs of other
	// flows that one of these needs, by id.
	Jobs []FlowJob

	// Needs are by child and parent. A parent that is not among the jobs was deleted, unless the graph is cut.
	Needs []FlowNeed

	Cut bool // there are more jobs or needs than were to be read
}

// FlowJob is a job of a flow, or a flow.
type FlowJob struct {
	ID        stint.ID
	Flow      stint.ID // that it belongs to; 0 for none
	Node      string   // its name there
	Kind      string
	IsFlow    bool
	State     stint.State
	Recovered stint.ID // the job that it does again; 0 for none
	Created   time.Time
	Due       time.Time // zero unless it was given a later time than that of its enqueue

	Runs []FlowRun // its attempts that ended, oldest first: the first, and the last [MostFlowRuns] of the others
}

// MostFlowRuns bounds the attempts of a [FlowJob].
const MostFlowRuns = 20

// FlowRun is an attempt that ended. Times are those of a [stint.Attempt].
type FlowRun struct {
	Outcome  stint.Outcome
	Final    bool
	Begun    bool // it ran; if not, Started says nothing
	Started  time.Time
	Finished time.Time
}

// FlowNeed says that a job needs another one.
type FlowNeed struct {
	Child, Parent stint.ID
	Wants         stint.Want
}
