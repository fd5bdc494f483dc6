package store

import (
	"errors"
	"fmt"
)

// Conditions that stores report to engines, beside those of package stint. Test for
// them with [errors.Is].
var (
	// ErrSchema says that the installed schema is missing, too old or too new.
	ErrSchema = errors.New("stint: the schema does not fit")

	// ErrAway says that the database cannot be reached, starts or stops, has no connection left, or that the
	// connection to it broke: all of that passes.
	ErrAway = errors.New("stint: the database does not answer")

	// ErrLogin says that the database refuses the login, mostly for its password: a person has to put that right.
	ErrLogin = errors.New("stint: the database refuses the login")

	// ErrDenied says that the login at the database lacks the right to do this. Nothing was done.
	ErrDenied = errors.New("stint: the login at the database lacks the right to do this")

	// ErrBuried says that an engine does not stand in the roster (any more).
	ErrBuried = errors.New("stint: the engine was buried")

	// ErrMoved says that another server has taken the place of the one that the engine worked at. It
	// matches ErrBuried.
	ErrMoved = fmt.Errorf("%w: another server took the place of the one that it joined at", ErrBuried)

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

	// ErrStepRefused says that a step was recorded before, or that its attempt cannot record it any more.
	ErrStepRefused = errors.New("stint: the step was recorded before, or its attempt has ended")

	// ErrNotHeld says that an engine does not hold the lease (any more) that it
	// acts under.
	ErrNotHeld = errors.New("stint: the engine does not hold the lease")

	// ErrDuplicate matches every [DuplicateError].
	ErrDuplicate = errors.New("stint: a job was enqueued under the idempotency key before")
)
