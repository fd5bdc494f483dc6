package remote

import (
	"context"
	"errors"
	"strconv"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/admin/api"
	"github.com/stint-go/stint/admin/view"
)

// Engines lists the roster as [stint.Roster] does.
func (s *Store) Engines(ctx context.Context) ([]stint.EngineInfo, error) {
	return ask[[]stint.EngineInfo](ctx, s, request{method: "GET", path: path("engines")})
}

// ShowEngine finds an engine with what it holds, or [stint.ErrBuried].
func (s *Store) ShowEngine(ctx context.Context, token stint.Token) (view.Engine, error) {
	e, err := ask[api.ShownEngine](ctx, s, request{method: "GET", path: engine(token)})
	return view.Engine{EngineInfo: e.EngineInfo, Holds: e.Holds}, err
}

// Drain asks an engine to leave, as [stint.Roster] does.
func (s *Store) Drain(ctx context.Context, token stint.Token) error {
	return do(ctx, s, request{method: "POST", path: engine(token, "drain")})
}

// Bury frees what an engine holds, whether it lives or not, and returns how many
// entries that were. Why is kept, beside who asks. [stint.ErrBuried] when it is not in
// the roster; with [stint.ErrBurialBlocked] a later call may do it.
func (s *Store) Bury(ctx context.Context, token stint.Token, why string) (int, error) {
	b, err := ask[api.Buried](ctx, s, request{method: "POST", path: engine(token, "bury"), body: api.Why{Why: why}})
	return b.Freed, err
}

func engine(token stint.Token, then ...string) string {
	return path(append([]string{"engines", strconv.FormatInt(int64(token), 10)}, then...)...)
}

// EngineMetrics lists what engines counted, as [stint.MetricsKeeper] does.
func (s *Store) EngineMetrics(ctx context.Context) ([]stint.Metrics, error) {
	return ask[[]stint.Metrics](ctx, s, request{method: "GET", path: path("engine-metrics")})
}

// Leases lists the leases, as [stint.Leaser] does.
func (s *Store) Leases(ctx context.Context) ([]stint.Lease, error) {
	return ask[[]stint.Lease](ctx, s, request{method: "GET", path: path("leases")})
}

// Depose frees a lease, as [stint.Leaser] does, but that the server keeps who asks by
// the token.
func (s *Store) Depose(ctx context.Context, name, _, why string) (stint.Deposition, bool, error) {
	if err := stint.CheckName("lease", name); err != nil {
		return stint.Deposition{}, false, err
	}
	d, err := ask[stint.Deposition](ctx, s, request{method: "POST", path: path("leases", name, "release"), body: api.Why{Why: why}})
	if e, ok := errors.AsType[*Error](err); ok && e.problem != nil && e.problem.FreeLease() {
		return d, false, nil
	}
	return d, err == nil, err
}
