package storetest_test

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

func (m *model) SavedFilters(context.Context) ([]store.SavedFilter, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(m.filters), func(a, b store.SavedFilter) int {
		if m.is("lists filters in any order") {
			return a.At.Compare(b.At)
		}
		return cmp.Compare(a.Name, b.Name)
	}), nil
}

func (m *model) SaveFilter(_ context.Context, f store.SavedFilter) (store.SavedFilter, bool, error) {
	if err := f.Check(); err != nil && !m.is("saves whatever filter it is told") {
		return store.SavedFilter{}, false, err
	}
	if !m.is("keeps odd texts of filters") {
		f.By = valid.CleanText(f.By, 255)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, replaced := m.filters[f.Name]
	if len(m.filters) >= store.MaxSavedFilters && (!replaced || m.is("refuses to replace the last filter")) && !m.is("saves any number of filters") {
		return store.SavedFilter{}, false, store.ErrManyFilters
	}
	f.At = time.Now()
	if !replaced || !m.is("lets the first filter stand") {
		m.filters[f.Name] = f
	}
	return f, replaced && !m.is("calls every filter new"), nil
}

func (m *model) RenameFilter(_ context.Context, name, to string) error {
	for _, name := range []string{name, to} {
		if err := store.CheckFilterName(name); err != nil && !m.is("saves whatever filter it is told") {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	f, found := m.filters[name]
	if !found && !m.is("renames what there is not") {
		return store.ErrNoFilter
	}
	if _, taken := m.filters[to]; taken && !m.is("renames a filter over another") {
		return store.ErrFilterExists
	}
	if !m.is("keeps the old name of a filter") {
		delete(m.filters, name)
	}
	if f.Name = to; m.is("takes a rename for a save") {
		f.At = time.Now()
	}
	m.filters[to] = f
	return nil
}

func (m *model) DeleteFilter(_ context.Context, name string) (bool, error) {
	if err := store.CheckFilterName(name); err != nil && !m.is("saves whatever filter it is told") {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, found := m.filters[name]
	if !m.is("deletes no filter") {
		delete(m.filters, name)
	}
	return found || m.is("deletes filters that there are not"), nil
}
