package storetest_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

func (m *model) BeginChange(ctx context.Context, c store.NewChange) (int64, error) {
	if err := c.Check(); err != nil && !m.is("keeps any details") {
		return 0, err
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.is("keeps odd texts of changes") {
		c = c.Clean()
	}
	n := m.draw()
	if m.is("numbers changes anew") {
		n = 1
	}
	if !m.is("forgets changes") {
		m.changes = append(m.changes, store.Change{ID: n, At: time.Now(), NewChange: c})
	}
	return n, nil
}

func (m *model) EndChange(_ context.Context, change int64, problem string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.changes {
		c := &m.changes[i]
		if c.ID != change || !c.Ended.IsZero() && !m.is("lets the last word stand") || m.is("forgets what came of changes") {
			continue
		}
		if c.Ended, c.Problem = time.Now(), valid.CleanHead(problem, 1<<10); m.is("takes every change for done") {
			c.Problem = ""
		}
	}
	return nil
}

func (m *model) Changes(_ context.Context, f store.ChangeFilter) ([]store.Change, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []store.Change
	for _, c := range slices.Backward(m.changes) {
		fits := (f.By == "" || c.By == f.By) && (f.Operation == "" || c.Operation == f.Operation) && (f.Subject == "" || c.Subject == f.Subject) && f.At.Holds(c.At)
		after := f.Before == 0 || c.ID < f.Before || c.ID == f.Before && m.is("repeats a change on the next page")
		if (fits || m.is("filters changes in vain")) && after && len(list) < cmp.Or(f.Limit, 100) {
			c.Result = store.ChangeResultOf(c.Ended, c.Problem)
			list = append(list, c)
		}
	}
	if m.is("lists the oldest changes first") {
		slices.Reverse(list)
	}
	return list, nil
}
