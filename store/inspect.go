package store

import (
	"context"

	"github.com/stint-go/stint"
)

// Reader shows jobs. Stores that show what is in them are readers.
type Reader interface {
	// Job shows one job with all of its attempts, oldest first, or
	// [stint.ErrNotFound].
	Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error)
}

// Inspector shows people what is in a store.
type Inspector interface {
	Reader

	// Jobs lists jobs by falling ID, without their executions.
	Jobs(ctx context.Context, f Filter) ([]stint.JobInfo, error)

	// Counts tells how many jobs are in each state, at one moment.
	Counts(ctx context.Context) (map[stint.State]int64, error)

	// Ahead tells how many jobs with the same queue, priority and limits go before an available one, up
	// to a number. It is 0 for a job that is not available.
	Ahead(ctx context.Context, id stint.ID, most int) (int, error)

	// Kinds lists the kinds that engines declared, by name.
	Kinds(ctx context.Context) ([]stint.KindInfo, error)
}

// ShowCancelled makes the last attempt of a job that was cancelled before an
// engine ran it read the same before and after it is recorded, by an engine or not: without
// the engine, and at the time of the cancellation. Stores call it for each job
// that they show with its attempts.
func ShowCancelled(j *stint.JobInfo) {
	if j.State != stint.Cancelled {
		return
	}
	last := len(j.Attempts) - 1
	if last < 0 || !j.Attempts[last].Final {
		x := stint.Attempt{
			Attempt: j.Attempt, Outcome: stint.OutcomeCancelled, Final: true, Reason: j.Reason, Started: j.Started, Finished: j.Finished,
		}
		x.Derive()
		j.Attempts = append(j.Attempts, x)
	} else if x := &j.Attempts[last]; x.Outcome == stint.OutcomeCancelled && x.Slot == 0 {
		x.Engine, x.Instance, x.Host, x.PID = 0, "", "", 0
	}
}
