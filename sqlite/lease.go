package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Leaser = (*Store)(nil)

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

func scanLease(q *stmt) stint.Lease {
	l := stint.Lease{Name: q.ColumnText(0)}
	if !q.isNull(1) {
		l.Engine, l.Instance, l.Host = stint.Token(q.ColumnInt64(1)), q.ColumnText(2), q.ColumnText(3)
		l.Acquired, l.Renewed, l.Expires = q.time(4), q.time(5), q.time(6)
	}
	if !q.isNull(7) {
		l.Deposed = stint.Deposition{
			Engine: stint.Token(q.ColumnInt64(7)), Instance: q.ColumnText(8), Host: q.ColumnText(9),
			At: q.time(10), Until: q.time(11), By: q.ColumnText(12), Why: q.ColumnText(13),
		}
	}
	return l
}

// lease reads one as it stands at an instant; one that was never held has a
// name only.
func (c *conn) lease(name string, now int64) (stint.Lease, error) {
	l := stint.Lease{Name: name}
	err := c.query(leaseSQL, []any{now, name}, func(q *stmt) error {
		l = scanLease(q)
		return nil
	})
	return l, err
}

// Acquire implements [stint.Leaser].
func (s *Store) Acquire(ctx context.Context, name string, engine stint.Token, term time.Duration) (stint.Lease, error) {
	if err := stint.CheckTerm(name, term); err != nil {
		return stint.Lease{}, err
	}
	l, err := s.acquire(ctx, name, engine, term)
	if err != nil {
		return stint.Lease{}, fmt.Errorf("acquire the lease %q: %w", name, err)
	}
	return l, nil
}

func (s *Store) acquire(ctx context.Context, name string, engine stint.Token, term time.Duration) (l stint.Lease, err error) {
	// Nearly always somebody else has it, and nothing is written.
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

// Resign implements [stint.Leaser].
func (s *Store) Resign(ctx context.Context, name string, engine stint.Token) (bool, error) {
	had := false
	err := s.write(ctx, func(c *conn) (bool, error) {
		l, err := c.lease(name, micro(time.Now()))
		if err != nil {
			return false, err
		}
		had = l.Engine == engine && engine != 0
		_, err = c.exec(resignSQL, name, int64(engine))
		return had, err
	})
	if err != nil {
		return false, fmt.Errorf("resign the lease %q: %w", name, err)
	}
	return had, nil
}

// Depose implements [stint.Leaser].
func (s *Store) Depose(ctx context.Context, name, by, why string) (stint.Deposition, bool, error) {
	if err := stint.CheckName("lease", name); err != nil {
		return stint.Deposition{}, false, err
	}
	var l stint.Lease
	had := false
	err := s.write(ctx, func(c *conn) (_ bool, err error) {
		now := micro(time.Now())
		if l, err = c.lease(name, now); err != nil {
			return false, err
		}
		if had = l.Engine != 0; !had {
			return false, nil
		}
		if _, err = c.exec(deposeSQL, name, now, orNil(stint.CleanText(by, 255)), orNil(stint.CleanText(why, 1<<10))); err == nil {
			l, err = c.lease(name, now)
		}
		return true, err
	})
	if err != nil {
		return stint.Deposition{}, false, fmt.Errorf("free the lease %q: %w", name, err)
	}
	if !had {
		return stint.Deposition{}, false, nil
	}
	return l.Deposed, true, nil
}

// Leases implements [stint.Leaser].
func (s *Store) Leases(ctx context.Context) ([]stint.Lease, error) {
	var list []stint.Lease
	err := s.read(ctx, func(c *conn) error {
		list = nil
		return c.query(leasesSQL, []any{micro(time.Now())}, func(q *stmt) error {
			list = append(list, scanLease(q))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	return list, nil
}

// under goes on only while an engine holds a lease. Nobody else writes before
// the transaction has ended.
func (c *conn) under(t stint.Tenure) error {
	if t == (stint.Tenure{}) {
		return nil
	}
	l, err := c.lease(t.Lease, micro(time.Now()))
	if err == nil && l.Engine != t.Engine {
		err = fmt.Errorf("%w %q", stint.ErrNotHeld, t.Lease)
	}
	return err
}
