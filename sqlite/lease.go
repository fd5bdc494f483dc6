package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Leaser = (*Store)(nil)

const (
	// A holder whose time is over, or who is in no roster, is none.
	leaseColumns = `
	select l.name, e.token, h.instance, h.host, l.acquired, l.renewed, l.expires,
	       l.deposed, d.instance, d.host, l.deposed_at, l.deposed_until, l.deposed_by, l.deposed_why
	from stint_leases l
	left join stint_engines e on e.token = l.engine and l.expires > ?1
	left join stint_engine_history h on h.token = e.token
	left join stint_engine_history d on d.token = l.deposed`
	leasesSQL = leaseColumns + ` order by l.name`
	leaseSQL  = leaseColumns + ` where l.name = ?2`

	renewSQL = `update stint_leases set renewed = ?, expires = ? where name = ?`
	grantSQL = `
	insert into stint_leases (name, engine, acquired, renewed, expires) values (?1, ?2, ?3, ?3, ?4)
	on conflict (name) do update set engine = excluded.engine, acquired = excluded.acquired, renewed = excluded.renewed, expires = excluded.expires`

	setFree   = `update stint_leases set engine = null, acquired = null, renewed = null, expires = null`
	freeOfSQL = setFree + ` where engine = ?`
	resignSQL = setFree + ` where name = ? and engine = ?`
	deposeSQL = setFree + `,
	  deposed = engine, deposed_at = ?2, deposed_until = ?2 + (expires - renewed), deposed_by = ?3, deposed_why = ?4
	where name = ?1`
)

func scanLease(q *stmt) store.Lease {
	l := store.Lease{Name: q.ColumnText(0)}
	if !q.isNull(1) {
		l.Engine, l.Instance, l.Host = store.EngineID(q.ColumnInt64(1)), q.ColumnText(2), q.ColumnText(3)
		l.Acquired, l.Renewed, l.Expires = q.time(4), q.time(5), q.time(6)
	}
	if !q.isNull(7) {
		l.Deposed = store.Revocation{
			Engine: store.EngineID(q.ColumnInt64(7)), Instance: q.ColumnText(8), Host: q.ColumnText(9),
			At: q.time(10), Until: q.time(11), By: q.ColumnText(12), Why: q.ColumnText(13),
		}
	}
	return l
}

// lease reads one as it stands at an instant; one that was never held has a
// name only.
func (c *conn) lease(name string, now int64) (store.Lease, error) {
	l := store.Lease{Name: name}
	err := c.query(leaseSQL, []any{now, name}, func(q *stmt) error {
		l = scanLease(q)
		return nil
	})
	return l, err
}

// Acquire implements [store.Leaser].
func (s *Store) Acquire(ctx context.Context, name string, engine store.EngineID, term time.Duration) (l store.Lease, err error) {
	if err := store.CheckTerm(name, term); err != nil {
		return store.Lease{}, err
	}
	defer wrap(&err, "acquire the lease %q", name)
	// Nearly always another engine has it, and nothing is written.
	err = s.read(ctx, func(c *conn) (err error) {
		if err = c.fence(engine); err == nil {
			l, err = c.lease(name, micro(time.Now()))
		}
		return err
	})
	if err != nil || l.Engine != 0 && l.Engine != engine {
		return l, err
	}
	err = s.write(ctx, func(c *conn) (_ bool, err error) {
		now := time.Now()
		at, until := micro(now), micro(now.Add(term))
		if err := c.fence(engine); err != nil {
			return false, err
		}
		if l, err = c.lease(name, at); err != nil {
			return false, err
		}
		switch barred := l.Deposed.Engine == engine && l.Deposed.Until.After(now); {
		case l.Engine == engine:
			_, err = c.exec(renewSQL, at, until, name)
		case l.Engine == 0 && !barred:
			_, err = c.exec(grantSQL, name, int64(engine), at, until)
		default:
			return false, nil
		}
		if err == nil {
			l, err = c.lease(name, at)
		}
		return false, err
	})
	return l, err
}

// ReleaseLease implements [store.Leaser].
func (s *Store) ReleaseLease(ctx context.Context, name string, engine store.EngineID) (bool, error) {
	return writing(ctx, s, fmt.Sprintf("release the lease %q", name), func(c *conn) (had, wake bool, err error) {
		l, err := c.lease(name, micro(time.Now()))
		if err != nil {
			return false, false, err
		}
		had = l.Engine == engine && engine != 0
		_, err = c.exec(resignSQL, name, int64(engine))
		return had, had, err
	})
}

// Revoke implements [store.Leaser].
func (s *Store) Revoke(ctx context.Context, name, by, why string) (store.Revocation, bool, error) {
	if err := valid.Name("lease", name); err != nil {
		return store.Revocation{}, false, err
	}
	had := false
	revoked, err := writing(ctx, s, fmt.Sprintf("free the lease %q", name), func(c *conn) (store.Revocation, bool, error) {
		now := micro(time.Now())
		l, err := c.lease(name, now)
		if had = err == nil && l.Engine != 0; !had {
			return store.Revocation{}, false, err
		}
		if _, err = c.exec(deposeSQL, name, now, orNil(valid.CleanText(by, 255)), orNil(valid.CleanText(why, 1<<10))); err == nil {
			l, err = c.lease(name, now)
		}
		return l.Deposed, true, err
	})
	return revoked, had && err == nil, err
}

// Leases implements [store.Leaser].
func (s *Store) Leases(ctx context.Context) ([]store.Lease, error) {
	return collect(ctx, s, "list leases", leasesSQL, []any{micro(time.Now())}, scanLease)
}

// under fails unless the engine holds the lease. No other transaction writes before
// this one has ended.
func (c *conn) under(t store.LeaseGuard) error {
	if t == (store.LeaseGuard{}) {
		return nil
	}
	l, err := c.lease(t.Lease, micro(time.Now()))
	if err == nil && l.Engine != t.Engine {
		err = fmt.Errorf("%w %q", store.ErrNotHeld, t.Lease)
	}
	return err
}
