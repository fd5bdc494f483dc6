package stint

import (
	"time"
)

// RerunOptions says when jobs run again, and which; the zero value is now, and all.
type RerunOptions struct {
	// RunAt is the instant before which they are not started, by the store's
	// clock. The zero time and one in the past mean now.
	RunAt time.Time

	// Delay is the same counted from the store's clock. At most one of RunAt and Delay
	// may be set.
	Delay time.Duration

	// Once leaves alone the jobs that were recovered before, if what they
	// were recovered as is still there.
	Once bool
}

// Check reports what is wrong with the times, or nil.
func (a RerunOptions) Check() error {
	return NewJob{RunAt: a.RunAt, Delay: a.Delay}.checkTimes()
}

// RerunResult is what came of running a job again.
type RerunResult struct {
	Answer RerunStatus `json:"answer"`

	// ID is the job that runs: the job itself, or what it was recovered as.
	// Zero when there is none.
	ID ID `json:"id,omitempty"`
}

// RerunStatus is what can come of running a job again.
type RerunStatus string

// The answers.
const (
	RerunReady           RerunStatus = "ready"            // it waited, and is ready now
	RerunScheduled       RerunStatus = "scheduled"        // it waits, until the time that was named
	RerunRecovered       RerunStatus = "recovered"        // it had ended, and a new job does it again
	RerunRecoveredBefore RerunStatus = "recovered before" // the same, but somebody had seen to that already
	RerunAvailable       RerunStatus = "available"        // it was ready already
	RerunRunning         RerunStatus = "running"          // it runs
	RerunNotFound        RerunStatus = "not found"        // there is no such job
)

// Done reports whether the job runs again because of the call.
func (r RerunStatus) Done() bool {
	return r == RerunReady || r == RerunScheduled || r == RerunRecovered
}

// Origin says what made a job that no producer enqueued. The zero value is
// a job of a producer's.
type Origin struct {
	Recovered ID `json:"recovered,omitempty"` // the job that had ended and that this one does again

	Schedule   string    `json:"schedule,omitempty"`  // the schedule that made it
	Nth        int64     `json:"nth,omitempty"`       // its number among the jobs of that, from 1
	Occurrence time.Time `json:"occurrence,omitzero"` // what it was made of; zero for one that was run out of turn
}
