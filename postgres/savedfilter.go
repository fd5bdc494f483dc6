package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.FilterKeeper = (*Store)(nil)

// SavedFilters implements [store.FilterKeeper].
func (s *Store) SavedFilters(ctx context.Context) ([]store.SavedFilter, error) {
	return collect(ctx, s.pool, "list saved filters", s.sql.in(`select name, query, at, by from stint.saved_filters order by name`), nil, fieldsOf[store.SavedFilter])
}

const (
	// Whether there was one is asked of the rows before the statement.
	saveFilterSQL = `
	with kept as (
	  insert into stint.saved_filters (name, query, by)
	  select $1, $2, $3 where (select count(*) from stint.saved_filters f where f.name <> $1) < $4
	  on conflict (name) do update set query = excluded.query, at = excluded.at, by = excluded.by
	  returning at)
	select (select k.at from kept k), exists (select from stint.saved_filters f where f.name = $1)`

	// The lock has one of two who rename the same filter find it gone.
	renameFilterSQL = `
	with old as materialized (select f.name, f.query, f.at, f.by from stint.saved_filters f where f.name = $1 for update),
	renamed as (
	  insert into stint.saved_filters (name, query, at, by) select $2, o.query, o.at, o.by from old o
	  on conflict (name) do nothing returning name),
	gone as (delete from stint.saved_filters f where f.name = $1 and exists (select from renamed))
	select exists (select from old), exists (select from renamed)`

	deleteFilterSQL = `with gone as (delete from stint.saved_filters where name = $1 returning true) select exists (select from gone)`
)

// SaveFilter implements [store.FilterKeeper].
func (s *Store) SaveFilter(ctx context.Context, f store.SavedFilter) (_ store.SavedFilter, replaced bool, err error) {
	if err := f.Check(); err != nil {
		return store.SavedFilter{}, false, err
	}
	f.By = valid.CleanText(f.By, 255)
	var at *time.Time
	err = s.operate(ctx, func(row pgx.Row) error { return row.Scan(&at, &replaced) }, saveFilterSQL, f.Name, f.Query, nilText(f.By), store.MaxSavedFilters)
	if err == nil && at == nil {
		err = store.ErrManyFilters
	}
	if err != nil {
		return store.SavedFilter{}, false, fmt.Errorf("save the filter %q: %w", f.Name, err)
	}
	f.At = *at
	return f, replaced, nil
}

// RenameFilter implements [store.FilterKeeper].
func (s *Store) RenameFilter(ctx context.Context, name, to string) error {
	for _, name := range []string{name, to} {
		if err := store.CheckFilterName(name); err != nil {
			return err
		}
	}
	var found, renamed bool
	err := s.operate(ctx, func(row pgx.Row) error { return row.Scan(&found, &renamed) }, renameFilterSQL, name, to)
	switch {
	case err == nil && !found:
		err = store.ErrNoFilter
	case err == nil && !renamed:
		err = store.ErrFilterExists
	}
	if err != nil {
		return fmt.Errorf("rename the filter %q to %q: %w", name, to, err)
	}
	return nil
}

// DeleteFilter implements [store.FilterKeeper].
func (s *Store) DeleteFilter(ctx context.Context, name string) (bool, error) {
	if err := store.CheckFilterName(name); err != nil {
		return false, err
	}
	return answerOf[bool](ctx, s, fmt.Sprintf("delete the filter %q", name), deleteFilterSQL, name)
}
