package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Leaser = (*Store)(nil)

// leaseColumns are a lease as it stands now. A holder whose time is over, or that is
// in no roster, is none.
const leaseColumns = `
select l.name, e.token, coalesce(e.instance, ''), coalesce(e.host, ''),
       case when e.token is not null then l.acquired end, case when e.token is not null then l.renewed end, case when e.token is not null then l.expires end,
       l.deposed, coalesce(h.instance, ''), coalesce(h.host, ''), l.deposed_at, l.deposed_until, coalesce(l.deposed_by, ''), coalesce(l.deposed_why, '')
from stint.leases l
left join stint.engines e on e.token = l.engine and l.expires > clock_timestamp()
left join stint.engine_history h on h.token = l.deposed`

func scanLease(row pgx.Row) (l store.Lease, err error) {
	var (
		engine, deposed            *store.EngineID
		acquired, renewed, expires *time.Time
		deposedAt, deposedUntil    *time.Time
	)
	err = row.Scan(&l.Name, &engine, &l.Instance, &l.Host, &acquired, &renewed, &expires,
		&deposed, &l.Deposed.Instance, &l.Deposed.Host, &deposedAt, &deposedUntil, &l.Deposed.By, &l.Deposed.Why)
	l.Engine, l.Acquired, l.Renewed, l.Expires = deref(engine), deref(acquired), deref(renewed), deref(expires)
	l.Deposed.Engine, l.Deposed.At, l.Deposed.Until = deref(deposed), deref(deposedAt), deref(deposedUntil)
	return l, err
}

// Acquire implements [store.Leaser]. What the lease looks like is read after
// the call, and may by then be another's; then the engine has lost it.
func (s *Store) Acquire(ctx context.Context, name string, engine store.EngineID, term time.Duration) (_ store.Lease, err error) {
	if err := store.CheckTerm(name, term); err != nil {
		return store.Lease{}, err
	}
	defer wrap(&err, "acquire the lease %q", name)
	if err := s.leaseCall(ctx, nil, `select stint.acquire($1, $2, $3)`, name, engine, term.Microseconds()); err != nil {
		return store.Lease{}, err
	}
	return s.lease(ctx, name)
}

// lease reads one.
func (s *Store) lease(ctx context.Context, name string) (store.Lease, error) {
	l, err := scanLease(s.work().QueryRow(ctx, s.sql.in(leaseColumns+` where l.name = $1`), name))
	return l, translate(err)
}

// leaseCall calls a function that changes a lease, on the connections of
// engines: a program that has none to spare must not cost an engine its lease.
func (s *Store) leaseCall(ctx context.Context, scan func(pgx.Row) error, text string, args ...any) error {
	_, err := retryExplicit(s, func() (struct{}, error) { return struct{}{}, s.once(ctx, scan, s.sql.in(text), args...) })
	return err
}

// ReleaseLease implements [store.Leaser].
func (s *Store) ReleaseLease(ctx context.Context, name string, engine store.EngineID) (had bool, err error) {
	defer wrap(&err, "release the lease %q", name)
	err = s.leaseCall(ctx, func(row pgx.Row) error { return row.Scan(&had) }, `select stint.resign($1, $2)`, name, engine)
	return had, err
}

// Revoke implements [store.Leaser].
func (s *Store) Revoke(ctx context.Context, name, by, why string) (store.Revocation, bool, error) {
	if err := valid.Name("lease", name); err != nil {
		return store.Revocation{}, false, err
	}
	var had *store.EngineID
	err := s.leaseCall(ctx, func(row pgx.Row) error { return row.Scan(&had) },
		`select stint.depose($1, $2, $3)`, name, valid.CleanText(by, 255), valid.CleanText(why, 1<<10))
	var l store.Lease
	if err == nil && had != nil {
		l, err = s.lease(ctx, name)
	}
	if err != nil {
		return store.Revocation{}, false, fmt.Errorf("free the lease %q: %w", name, err)
	}
	return l.Deposed, had != nil, nil
}

// Leases implements [store.Leaser].
func (s *Store) Leases(ctx context.Context) ([]store.Lease, error) {
	return collect(ctx, s.work(), "list leases", s.sql.in(leaseColumns+` order by l.name collate "C"`), nil, func(row pgx.CollectableRow) (store.Lease, error) { return scanLease(row) })
}
