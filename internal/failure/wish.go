package failure

import "time"

// NoRetry is an error after which the job is not tried again.
type NoRetry struct{ Err error }

func (e *NoRetry) Error() string { return e.Err.Error() }

// Unwrap is the error itself.
func (e *NoRetry) Unwrap() error { return e.Err }

// Snooze asks for the job to be run again later.
type Snooze struct{ Wait time.Duration }

func (e *Snooze) Error() string { return "stint: run again in " + e.Wait.String() }

// Cancel asks for the job to be cancelled.
type Cancel struct{ Why string }

func (e *Cancel) Error() string { return "stint: cancelled: " + e.Why }
