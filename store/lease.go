package store

import (
	"context"
	"time"

	"github.com/stint-go/stint/internal/valid"
)

// Leaser gives what one engine does for all of them to one engine at a time.
// A lease has a name, and a holder for as long as that renews it.
//
// At any moment by the store's clock at most one engine holds a lease. One that
// was buried, or that is in no roster, holds none. What an engine believes of
// a lease may be out of date, as when its process was frozen; so work that must
// not be done by two says under which lease it is done, and its own transaction
// looks whether that is held still ([LeaseGuard]).
type Leaser interface {
	// Acquire takes a lease for an engine of the roster, or renews it, and
	// returns it as it stands: the engine has it if it is the Engine of the
	// answer, from then on for the time given, by the store's clock. It is
	// free when nobody holds it, or when its holder's time is over or its
	// holder buried; but who was deposed waits as long as his lease was for.
	// [ErrBuried] when the engine is not in the roster.
	//
	// To ask for a lease that another one holds reads a row or two, and
	// writes nothing.
	Acquire(ctx context.Context, name string, engine EngineID, term time.Duration) (Lease, error)

	// ReleaseLease gives a lease back and wakes engines, so that another one takes
	// it at once. It reports false when the engine did not hold it.
	ReleaseLease(ctx context.Context, name string, engine EngineID) (bool, error)

	// Revoke frees a lease, whoever holds it, and wakes engines. It waits for
	// what is being done under the lease at the moment; from then on nothing is
	// done under it by who held it. By and why are kept with the lease, and
	// told to that engine. It reports false when nobody held it.
	Revoke(ctx context.Context, name, by, why string) (Revocation, bool, error)

	// Leases lists by name those that were ever held, also the free ones.
	Leases(ctx context.Context) ([]Lease, error)
}

// The leases of stint's own chores.
const (
	LeaseRetention = "retention" // who deletes what ended long ago
)

// Lease is one as the store shows it.
type Lease struct {
	Name     string    `json:"name"`
	Engine   EngineID  `json:"engine,string,omitempty"` // who holds it; 0 while it is free
	Instance string    `json:"instance,omitempty"`      // the holder's name
	Host     string    `json:"host,omitempty"`
	Acquired time.Time `json:"acquired,omitzero"` // since when it holds the lease without a gap
	Renewed  time.Time `json:"renewed,omitzero"`
	Expires  time.Time `json:"expires,omitzero"` // unless it is renewed before

	// Deposed says whom somebody took the lease from last, if that was ever
	// done.
	Deposed Revocation `json:"revoked,omitzero"`
}

// Revocation is what is kept of a lease that somebody freed.
type Revocation struct {
	Engine   EngineID  `json:"engine,string"`
	Instance string    `json:"instance"`
	Host     string    `json:"host"`
	At       time.Time `json:"at"`
	Until    time.Time `json:"until"` // before that the engine does not get it again
	By       string    `json:"by,omitempty"`
	Why      string    `json:"why,omitempty"`
}

// LeaseGuard is the claim that an engine holds a lease. What is done under it is
// done only if that is so, and nobody else takes the lease meanwhile. The zero
// value claims nothing, and is for people.
type LeaseGuard struct {
	Lease  string
	Engine EngineID
}

// CheckTerm reports what is wrong with a lease's name or time: it is between a
// millisecond and a day.
func CheckTerm(name string, term time.Duration) error {
	if err := valid.Name("lease", name); err != nil {
		return err
	}
	if term < time.Millisecond || term > 24*time.Hour {
		return valid.Invalid("lease", "%v is not between a millisecond and a day", term)
	}
	return nil
}
