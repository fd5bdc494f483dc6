package store

import (
	"context"

	"github.com/stint-go/stint"
)

// LogReader is a store that keeps what runs say (see [stint.SetProgress] and [stint.Logger]) with their
// attempts, until their jobs are deleted. It gets that with [Heartbeat] and [Completion], and stores it in the
// same transaction as these.
//
// It takes what an attempt says as long as the engine has the job: not once the claim is gone or the attempt has an
// outcome, of which nothing is said to the engine. A line that is there stays as it is, and so does a progress
// with the same number or a higher one: so it is safe to repeat, in any order.
type LogReader interface {
	// Log reads lines of a job, in the order of runs and of their numbers.
	Log(ctx context.Context, job stint.ID, f LogFilter) ([]stint.LogLine, error)

	// Progress reads how far the runs of a job said they were, in the order of runs: of those that
	// said so the last [MostProgress].
	Progress(ctx context.Context, job stint.ID) ([]stint.Progress, error)
}

// MostProgress is of how many runs a [LogReader] shows the progress.
const MostProgress = 20

// LogFilter chooses lines of a job.
type LogFilter struct {
	Run   int64 // only lines that follow line N of this run; 0 for all
	N     int
	Limit int  // how many at most; 0 for no bound
	Last  bool // of more than Limit the last ones, not the first
}

// LogRecord is what an attempt said and the store does not have yet. The times are this process's instants,
// as in a [Completion].
type LogRecord struct {
	Claim ClaimRef // that the attempt comes from
	Pos   Position // of the attempt
	Job   stint.ID

	// RunLog has neither runs nor attempts. Lines that it leaves out are deleted.
	stint.RunLog
}
