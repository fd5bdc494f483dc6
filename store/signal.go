package store

import (
	"context"

	"github.com/stint-go/stint"
)

// Signaler keeps the signals that are sent to jobs (see [stint.Await]), until their jobs are deleted. A step
// takes one by [StepKeeper.RecordSteps]. A job that waits for a signal ([Next].Awaits) becomes due at once
// when one is there that no step has taken, in whatever order the two commit; [Promoter.Promote] moves it.
// A job that is recovered takes along what no step of the one before it had taken.
type Signaler interface {
	// Signal stores a signal that has passed [stint.Signal.Check], and wakes engines; in a caller's
	// transaction both happen when that commits. It stores nothing, without an error, if the job has a
	// signal with that key already, also if it has ended since. The error is [stint.ErrNotFound] if there is no such job, and
	// [stint.ErrEnded] if that has ended or was cancelled while no engine had it, and matches
	// [stint.ErrInvalid] if it has so many signals, or so large ones, that it gets no more. On PostgreSQL an error
	// aborts a caller's transaction.
	Signal(ctx context.Context, tx stint.Tx, job stint.ID, s stint.Signal) error

	SignalReader
}

// SignalReader shows what a [Signaler] keeps.
type SignalReader interface {
	// Signals reads the signals of a job, by number.
	Signals(ctx context.Context, job stint.ID) ([]stint.SentSignal, error)
}
