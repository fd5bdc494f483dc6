package stint

import "time"

// RerunOptions says when jobs run again, and which. The zero value means all of them,
// now.
type RerunOptions struct {
	// RunAt is the earliest time at which they may start, by the store's clock. The
	// zero time and one in the past mean now.
	RunAt time.Time

	// Delay is the same counted from the store's clock. At most one of RunAt and Delay
	// may be set.
	Delay time.Duration

	// Once skips jobs that were recovered before, if the new job still exists.
	Once bool

	// Whole has all jobs of a flow that ended done again, and not only those that did not complete.
	Whole bool
}

// Check reports what is wrong with the times, or nil.
func (a RerunOptions) Check() error {
	return NewJob{RunAt: a.RunAt, Delay: a.Delay}.checkTimes()
}

// RerunResult is the result of running a job again.
type RerunResult struct {
	Answer RerunStatus `json:"answer"`

	// ID is the job that runs: the job itself, or the new one that repeats it. Zero if
	// there is none. Of [RerunNotUnique] it is the job that holds the unique key.
	ID ID `json:"id,omitempty"`
}

// RerunStatus says what happened to a job that was to run again.
type RerunStatus string

// The answers.
const (
	RerunReady           RerunStatus = "ready"            // it waited, and is ready now
	RerunScheduled       RerunStatus = "scheduled"        // it waits, until the time that was named
	RerunRecovered       RerunStatus = "recovered"        // it had ended, and a new job does it again
	RerunRecoveredBefore RerunStatus = "recovered before" // a new job did it again before this call, or took its place in its flow
	RerunAvailable       RerunStatus = "available"        // it was ready already
	RerunBlocked         RerunStatus = "blocked"          // it waits for other jobs, and stays so
	RerunRunning         RerunStatus = "running"          // it runs
	RerunNotUnique       RerunStatus = "not unique"       // it had ended, and another job, which the ID names, holds its unique key
	RerunNotFound        RerunStatus = "not found"        // there is no such job
)

// Done reports whether the job runs again because of the call.
func (r RerunStatus) Done() bool {
	return r == RerunReady || r == RerunScheduled || r == RerunRecovered
}

// Origin says what made a job, if not a producer. The zero value means a producer.
type Origin struct {
	Recovered ID `json:"retry_of,omitempty"` // the job that had ended and that this one repeats

	Schedule   string    `json:"schedule,omitempty"`  // the schedule that made it
	Nth        int64     `json:"nth,omitempty"`       // its number among the jobs of that, from 1
	Occurrence time.Time `json:"occurrence,omitzero"` // the occurrence; zero for a job that a person ran out of turn
}

// CancelStatus says what happened to a job that was to be cancelled.
type CancelStatus string

// The results of a cancellation.
const (
	CancelledNow    CancelStatus = "cancelled" // it will not run (again)
	CancelRequested CancelStatus = "asked"     // it is running, and its engine will cancel it
	CancelTooLate   CancelStatus = "too late"  // it had ended otherwise
	CancelNotFound  CancelStatus = "not found" // there is no such job
)
