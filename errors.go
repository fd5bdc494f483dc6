package stint

import (
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// Errors that calls return and contexts end with. Test for them with [errors.Is].
var (
	// ErrUnstorable says that the database cannot store a value.
	ErrUnstorable = errors.New("stint: the database refuses the value")

	// ErrCommitUnknown says that the connection broke while a transaction was
	// being committed, so it may have been or not.
	ErrCommitUnknown = errors.New("stint: it is unknown whether the transaction was committed")

	// ErrNotFound says that there is no such job.
	ErrNotFound = errors.New("stint: no such job")

	// ErrKeyConflict matches every [KeyConflictError].
	ErrKeyConflict = errors.New("stint: the idempotency key stands for another job")

	// ErrInvalid matches every error about an invalid input.
	ErrInvalid = valid.ErrInvalid

	// ErrNoSchedule says that there is no schedule of a name.
	ErrNoSchedule = errors.New("stint: there is no such schedule")

	// ErrNoAttempt says that a context is not that of a running handler.
	ErrNoAttempt = errors.New("stint: the context is not a running handler's")

	// ErrNoResult says that a job has completed without a result, or not at all.
	ErrNoResult = errors.New("stint: the job has no result")

	// ErrStopping says that the engine stops and its grace is over: a cause that a
	// handler's context is cancelled with, as are the next three; [context.Cause]
	// returns them.
	ErrStopping = errors.New("stint: the engine is stopping")

	// ErrTimeout says that the attempt took longer than its timeout.
	ErrTimeout = errors.New("stint: the attempt timed out")

	// ErrCancelled says that the job was cancelled.
	ErrCancelled = errors.New("stint: the job was cancelled")

	// ErrFenced says that the engine was buried, so the outcome of the attempt will not
	// be recorded.
	ErrFenced = errors.New("stint: the engine was fenced off")
)

// InvalidError says what is wrong with an input (Problem), and with which part of it
// (Field: "queue", "args"). It matches [ErrInvalid].
type InvalidError = valid.Error

// NoRetry marks an error as final: the job is not retried, whatever its policy.
// NoRetry(nil) is nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &failure.NoRetry{Err: err}
}

// Snooze returns an error with which a handler asks to run again after wait. The
// attempt is not charged. Zero or less means at once; the longest wait is
// [retry.MaxWait], a hundred years, and a longer one is cut to that.
func Snooze(wait time.Duration) error { return &failure.Snooze{Wait: max(0, wait)} }

// Defer returns an error with which a handler asks to run again after wait, as with [Snooze], and
// that no job of a limit starts until then, on any engine:
//
//	if resp.StatusCode == http.StatusTooManyRequests {
//		return stint.Defer("smtp", 30*time.Second)
//	}
//
// If the job waits for a key of the limit ("tenant=acme"), the pause is of that key; "tenant=other"
// names another one. Jobs that run go on. A pause that lasts longer already stays; people see it, with
// the job that asked for it, and can end it ("stint limits resume smtp"). The longest is [MaxPause],
// and a longer one is cut to that. If the engine dies before it has written it, there is no pause.
func Defer(limit string, wait time.Duration) error {
	return &failure.Snooze{Wait: min(max(0, wait), MaxPause), Limit: limit}
}

// Cancel returns an error with which a handler cancels its own job, for the reason
// given.
func Cancel(why string) error { return &failure.Cancel{Why: why} }

// PanicError is the error of an attempt whose handler panicked.
type PanicError struct {
	Value any
	Stack string
}

// Error shows the value that the handler panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value if it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// The classes that every program has, before its own.
var (
	_ = retry.ErrorClassOf[*PanicError]("panic")
	_ = retry.ErrorClass("timeout", ErrTimeout)
	_ = retry.ErrorClass("cancelled", ErrCancelled)
	_ = retry.ErrorClass("lost", retry.ErrLost)
	_ = retry.ErrorClass("unstorable", ErrUnstorable)
)
