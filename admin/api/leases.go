package api

import (
	"context"
	"net/http"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/guard"
)

func (a *api) leases() {
	register(a, operation{
		method: http.MethodGet, path: "/leases", id: "list-leases", tag: "leases", summary: "List the leases and who holds them",
	}, a.listLeases)
	register(a, operation{
		method: http.MethodPost, path: "/leases/{lease}/release", id: "release-lease", needs: guard.Admin, tag: "leases", summary: "Take a lease from the engine that holds it",
		description: "Another engine takes over what it is for. For as long as its lease was for, the former holder does not get it again.",
	}, a.releaseLease)
}

func (a *api) listLeases(ctx context.Context, _ *struct{}) (*answer[[]stint.Lease], error) {
	return list(a.store.Leases(ctx))
}

func (a *api) releaseLease(ctx context.Context, in *struct {
	Lease string `path:"lease" maxLength:"255"`
	Body  Why
}) (*answer[stint.Deposition], error) {
	if err := stint.CheckName("lease", in.Lease); err != nil {
		return nil, &at{"path", err}
	}
	d, had, err := a.store.Depose(ctx, in.Lease, by(ctx), in.Body.Why)
	switch {
	case err != nil:
		return nil, err
	case !had:
		return nil, errNobodyHolds
	}
	return &answer[stint.Deposition]{d}, nil
}
