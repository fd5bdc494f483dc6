package stint

import (
	"slices"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/retry"
)

// Outcome says how an attempt ended. The numbers are stored and never change their
// meaning.
type Outcome int8

// The outcomes of an attempt.
const (
	OutcomeCompleted Outcome = 1 // the handler returned without error
	OutcomeFailed    Outcome = 2 // it returned an error or panicked; charged
	OutcomeSnoozed   Outcome = 3 // it asked to be run later; not charged
	OutcomeReturned  Outcome = 4 // handed back unstarted, or ended by a stop; not charged
	OutcomeLost      Outcome = 5 // its engine died while it ran; charged
	OutcomeCancelled Outcome = 6 // the job was cancelled
	OutcomeExpired   Outcome = 7 // it did not begin in time: see [NewJob.StartBy]
	OutcomeSkipped   Outcome = 8 // it was not to run: see [Flow]
)

var outcomeNames = [...]string{"", "completed", "failed", "snoozed", "returned", "lost", "cancelled", "expired", "skipped"}

// String returns the outcome's name.
func (o Outcome) String() string {
	if o < 1 || int(o) >= len(outcomeNames) {
		return "unknown"
	}
	return outcomeNames[o]
}

// MarshalText returns the name.
func (o Outcome) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText reads the name.
func (o *Outcome) UnmarshalText(text []byte) error {
	i := slices.Index(outcomeNames[:], string(text))
	if i < 1 {
		return valid.Invalid("outcome", "%q is none", text)
	}
	*o = Outcome(i)
	return nil
}

// State returns the state of a job after a final attempt with this outcome.
func (o Outcome) State() State {
	switch o {
	case OutcomeCompleted:
		return Completed
	case OutcomeCancelled, OutcomeSkipped:
		return Cancelled
	default:
		return Failed
	}
}

// FinalReason is why a job ended, for people: what was stored with its last attempt, or
// else what the outcome means.
func (o Outcome) FinalReason(stored string) string {
	switch {
	case stored != "":
		return stored
	case o == OutcomeCompleted:
		return retry.ReasonDone
	default:
		return o.String()
	}
}
