package stint

import (
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint/internal/failure"
	"github.com/stint-go/stint/internal/valid"
)

// Conditions that stores report. Test for them with [errors.Is].
var (
	// ErrBuried says that an engine does not stand in the roster (any more).
	ErrBuried = errors.New("stint: the engine was buried")

	// ErrBurialBlocked says that something of an engine's is under way, so
	// that it cannot be buried now.
	ErrBurialBlocked = errors.New("stint: the burial is blocked by a write of the engine")

	// ErrAlive says that an engine was not buried because it beat lately.
	ErrAlive = errors.New("stint: the engine is alive")

	// ErrClaimGone says that a claim that an outcome refers to does not
	// exist: the database lost it, as a failover to a standby can.
	ErrClaimGone = errors.New("stint: the claim does not exist any more")

	// ErrLaneBusy says that another claim of the lane is under way.
	ErrLaneBusy = errors.New("stint: another claim of the lane is under way")

	// ErrNotHeld says that an engine does not hold the lease (any more) that it
	// acts under.
	ErrNotHeld = errors.New("stint: the engine does not hold the lease")

	// ErrUnstorable says that the database refuses a value for what it is.
	ErrUnstorable = errors.New("stint: the database refuses the value")

	// ErrCommitUnknown says that the connection broke while a transaction was
	// being committed: nobody knows whether it was.
	ErrCommitUnknown = errors.New("stint: the fate of the commit is unknown")

	// ErrNotFound says that there is no such job.
	ErrNotFound = errors.New("stint: no such job")

	// ErrSchema says that the installed schema is missing, too old or too new.
	ErrSchema = errors.New("stint: the schema does not fit")

	// ErrKeyConflict matches every [KeyConflictError].
	ErrKeyConflict = errors.New("stint: the idempotency key stands for another job")

	// ErrDuplicate matches every [DuplicateError].
	ErrDuplicate = errors.New("stint: a job was enqueued under the idempotency key before")

	// ErrInvalid matches every error about an input that can never be right.
	ErrInvalid = valid.ErrInvalid
)

// InvalidError says what is wrong with an input (Problem), and with which part of it
// (Field: "queue", "args"). It matches [ErrInvalid].
type InvalidError = valid.Error

// Invalid makes an [InvalidError].
func Invalid(field, format string, args ...any) error { return valid.Invalid(field, format, args...) }

// Causes that a handler's context is cancelled with. [context.Cause] tells.
var (
	// ErrStopping: the engine stops and its grace is over.
	ErrStopping = errors.New("stint: the engine is stopping")

	// ErrTimeout: the attempt took longer than its timeout.
	ErrTimeout = errors.New("stint: the attempt timed out")

	// ErrCancelled: somebody cancelled the job.
	ErrCancelled = errors.New("stint: the job was cancelled")

	// ErrFenced: the engine lost its place in the roster, so whatever the
	// handler still does will not be recorded.
	ErrFenced = errors.New("stint: the engine was fenced off")
)

// NoRetry marks an error as final: whatever the policy says, the job is not
// tried again. NoRetry(nil) is nil.
func NoRetry(err error) error {
	if err == nil {
		return nil
	}
	return &failure.NoRetry{Err: err}
}

// Snooze is returned by a handler that wants to be run again later. The
// attempt is not charged. A wait of zero or less means at once; the longest is
// [retry.MaxWait], a hundred years, and one that is longer is cut to that.
func Snooze(wait time.Duration) error { return &failure.Snooze{Wait: max(0, wait)} }

// Cancel is returned by a handler that finds that its job must not be done:
// the job ends as cancelled, for the reason given.
func Cancel(why string) error { return &failure.Cancel{Why: why} }

// PanicError is what a handler's panic becomes.
type PanicError struct {
	Value any
	Stack string
}

// Error shows the value that the handler panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the value itself when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
