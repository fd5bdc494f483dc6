package ops

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/stint-go/stint/dashboard/guard"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/internal/words"
	"github.com/stint-go/stint/store"
)

// ListLeases lists the leases and who holds them.
var ListLeases = lists(Decl{Name: "leases list", Path: "/leases", Summary: "List the leases and who holds them"}, Store.Leases)

// LeaseWhy is a lease, and why something is done to it.
type LeaseWhy struct {
	Lease string `path:"lease" maxLength:"255"`
	Body  Why
}

func (l LeaseWhy) check() error { return inError("path", valid.Name("lease", l.Lease)) }

// ErrFreeLease says that nobody holds a lease.
var ErrFreeLease = errors.New("nobody holds the lease")

// ReleaseLease takes a lease from the engine that holds it, or is [ErrFreeLease].
var ReleaseLease = declare(&Op[LeaseWhy, store.Revocation]{
	Decl: Decl{
		Name: "leases release", Method: http.MethodPost, Path: "/leases/{lease}/release", Needs: guard.Admin, Summary: "Take a lease from the engine that holds it",
		Doc: "Another engine takes over what it is for. For as long as its lease was for, the former holder does not get it again.",
	},
	do: func(ctx context.Context, l *Local, in *LeaseWhy) (store.Revocation, error) {
		d, had, err := l.Store.Revoke(ctx, in.Lease, l.who(ctx).Name, in.Body.Why)
		if err == nil && !had {
			err = fmt.Errorf("%w %q", ErrFreeLease, in.Lease)
		}
		return d, err
	},
	said: func(in *LeaseWhy, d store.Revocation) string {
		return fmt.Sprintf("lease %s was taken from engine %s (%d); it may have it again %s", words.Visible(in.Lease), words.Visible(d.Instance), d.Engine, words.Ago(d.Until, d.At))
	},
})
