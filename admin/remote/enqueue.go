package remote

import (
	"context"
	"fmt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
)

// maxJobs is how many jobs the API takes at once.
const maxJobs = 10_000

// Enqueue implements [stint.Enqueuer]: of up to 10,000 jobs at once, and in no
// transaction of the caller's. A client's own checks are repeated by the server,
// whose limits may be others.
func (s *Store) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	switch {
	case tx.Handle != nil:
		return nil, stint.Invalid("transaction", "a server takes part in none, and this is a %T", tx.Handle)
	case len(jobs) > maxJobs:
		return nil, stint.Invalid("jobs", "%d are more than the %d that a server takes at once", len(jobs), maxJobs)
	case len(jobs) == 0:
		return nil, nil
	}
	all := api.NewJobs{Jobs: make([]api.NewJob, len(jobs)), Force: true, Exact: true}
	for i, j := range jobs {
		all.Jobs[i] = newJob(j)
	}
	receipts, err := ask[[]stint.Receipt](ctx, s, request{method: "POST", path: path("jobs"), body: all})
	if err == nil && len(receipts) != len(jobs) {
		err = fmt.Errorf("the server answers with %d receipts for %d jobs", len(receipts), len(jobs))
	}
	return receipts, err
}

// newJob is a job as the API has it, to be stored exactly so.
func newJob(j stint.NewJob) api.NewJob {
	n := api.NewJob{
		Kind: j.Kind, Args: j.Args, Queue: j.Queue, At: j.RunAt, In: text(j.Delay), Timeout: text(j.Timeout),
		StartBy: j.StartBy, StartWithin: text(j.StartWithin), MaxLosses: j.MaxLosses, Tags: j.Tags, URN: j.URN, Source: j.Source,
		Metadata: j.Metadata, Correlation: j.Correlation, IdempotencyKey: j.IdempotencyKey,
		Retry: j.Retry.String(),
	}
	if j.Priority != 0 {
		n.Priority = &j.Priority
	}
	return n
}
