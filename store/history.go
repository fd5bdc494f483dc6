package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// History is a store whose ended jobs can be read by when they ended, for those who keep them for longer than
// the store does.
type History interface {
	// Oldest is when the oldest job that there is was enqueued: no job that there is ended before. It is the zero
	// time when there is none.
	Oldest(ctx context.Context) (time.Time, error)

	// EndedIn finds the jobs that ended within a time whose both ends are given, by rising ID. What ended is recorded
	// a moment later, so a time that is not over for as long as an outage may last can still gain some. Each
	// job ends in one of several times that adjoin. It holds eight bytes for each in memory.
	EndedIn(ctx context.Context, in TimeRange) ([]stint.ID, error)

	// Ended shows those of the jobs that have ended, with their attempts, as [Reader.Job] does; nil for one that does
	// not exist.
	Ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error)
}
