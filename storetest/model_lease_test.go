package storetest_test

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

// lease is one as it stands now.
func (d *database) lease(name string) store.Lease {
	l := d.leases[d.exactly(name)]
	l.Name = name
	e := d.engine(l.Engine)
	if e == nil && !d.is("lets the buried hold leases") || !l.Expires.After(time.Now()) && !d.is("keeps leases for ever") {
		return store.Lease{Name: name, Deposed: l.Deposed}
	}
	if e != nil {
		l.Instance, l.Host = e.Instance, e.Host
	}
	return l
}

func (m *model) Acquire(ctx context.Context, name string, engine store.EngineID, term time.Duration) (store.Lease, error) {
	if err := store.CheckTerm(name, term); err != nil && !m.is("gives any lease") {
		return store.Lease{}, err
	}
	if err := ctx.Err(); err != nil {
		return store.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.engine(engine) == nil && !m.is("gives leases to the buried") {
		return store.Lease{}, store.ErrBuried
	}
	now := time.Now()
	l := m.lease(name)
	free := l.Engine == 0 && (l.Deposed.Engine != engine || !l.Deposed.Until.After(now) || m.is("lets the deposed come back"))
	switch {
	case l.Engine == engine && !m.is("renews as if it began"):
		l.Renewed, l.Expires = now, now.Add(term)
	case free || l.Engine == engine || m.is("gives a lease to everybody"):
		l.Engine, l.Acquired, l.Renewed, l.Expires = engine, now, now, now.Add(term)
	default:
		return l, nil
	}
	m.leases[m.exactly(name)] = l
	return m.lease(name), nil
}

func (m *model) ReleaseLease(_ context.Context, name string, engine store.EngineID) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lease(name)
	if l.Engine != engine && !m.is("resigns for others") || l.Engine == 0 {
		return m.is("always resigns"), nil
	}
	m.leases[m.exactly(name)] = store.Lease{Name: name, Deposed: l.Deposed}
	if !m.is("does not ring for resignations") {
		m.ring()
	}
	return true, nil
}

func (m *model) Revoke(_ context.Context, name, by, why string) (store.Revocation, bool, error) {
	if err := valid.Name("lease", name); err != nil {
		return store.Revocation{}, false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lease(name)
	if l.Engine == 0 {
		return store.Revocation{}, false, nil
	}
	now := time.Now()
	d := store.Revocation{
		Engine: l.Engine, Instance: l.Instance, Host: l.Host, At: now, Until: now.Add(l.Expires.Sub(l.Renewed)),
		By: valid.CleanText(by, 255), Why: valid.CleanText(why, 1<<10),
	}
	if m.is("forgets who was deposed") {
		d = store.Revocation{}
	}
	m.leases[m.exactly(name)] = store.Lease{Name: name, Deposed: d}
	if m.is("leaves the deposed in place") {
		m.leases[m.exactly(name)] = l
	}
	m.ring()
	return d, true, nil
}

func (m *model) Leases(context.Context) ([]store.Lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []store.Lease
	for _, name := range slices.Sorted(maps.Keys(m.leases)) {
		list = append(list, m.lease(name))
	}
	return list, nil
}
