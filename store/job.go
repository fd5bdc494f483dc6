package store

import (
	"time"

	"github.com/stint-go/stint"
)

// Position is a place in the log of ready work. A job has one for each time
// that it became ready; the first of a job that was ready at once is its ID.
type Position int64

// Entry is one appearance of a job in the log of ready work: what an engine
// gets when it claims.
type Entry struct {
	stint.Job
	Pos     Position
	Ready   time.Time // when this entry became ready, by the store's clock
	Suspect int       // how closely to watch it, since engines died with it in hand

	// Cancelled says that somebody cancelled the job: it is not to be begun.
	Cancelled bool
}
