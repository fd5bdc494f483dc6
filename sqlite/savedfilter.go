package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.FilterKeeper = (*Store)(nil)

const (
	savedFiltersSQL = `select name, query, at, by from stint_saved_filters order by name`
	countFiltersSQL = `select ifnull(sum(name <> ?1), 0), ifnull(sum(name = ?1), 0) from stint_saved_filters`
	saveFilterSQL   = `
	insert into stint_saved_filters (name, query, at, by) values (?, ?, ?, ?)
	on conflict (name) do update set query = excluded.query, at = excluded.at, by = excluded.by`
	renameFilterSQL = `
	insert into stint_saved_filters (name, query, at, by) select ?2, query, at, by from stint_saved_filters where name = ?1
	on conflict (name) do nothing`
	hasFilterSQL    = `select count(*) from stint_saved_filters where name = ?`
	deleteFilterSQL = `delete from stint_saved_filters where name = ?`
)

// SavedFilters implements [store.FilterKeeper].
func (s *Store) SavedFilters(ctx context.Context) ([]store.SavedFilter, error) {
	return reading(ctx, s, "list saved filters", func(c *conn) ([]store.SavedFilter, error) {
		return fieldsOf[store.SavedFilter](c, savedFiltersSQL)
	})
}

// SaveFilter implements [store.FilterKeeper].
func (s *Store) SaveFilter(ctx context.Context, f store.SavedFilter) (_ store.SavedFilter, replaced bool, err error) {
	if err := f.Check(); err != nil {
		return store.SavedFilter{}, false, err
	}
	f.By = valid.CleanText(f.By, 255)
	f, err = writing(ctx, s, fmt.Sprintf("save the filter %q", f.Name), func(c *conn) (store.SavedFilter, bool, error) {
		others := 0
		err := c.query(countFiltersSQL, []any{f.Name}, func(q *stmt) error {
			others, replaced = q.ColumnInt(0), q.ColumnInt(1) > 0
			return nil
		})
		if err == nil && others >= store.MaxSavedFilters {
			err = store.ErrManyFilters
		}
		if err != nil {
			return f, false, err
		}
		f.At = fromMicro(micro(time.Now()))
		_, err = c.exec(saveFilterSQL, f.Name, f.Query, micro(f.At), orNil(f.By))
		return f, false, err
	})
	return f, replaced && err == nil, err
}

// RenameFilter implements [store.FilterKeeper].
func (s *Store) RenameFilter(ctx context.Context, name, to string) error {
	for _, name := range []string{name, to} {
		if err := store.CheckFilterName(name); err != nil {
			return err
		}
	}
	_, err := writing(ctx, s, fmt.Sprintf("rename the filter %q to %q", name, to), func(c *conn) (none struct{}, _ bool, err error) {
		found, err := oneRow(c, firstNumber[int], hasFilterSQL, name)
		if err == nil && found == 0 {
			err = store.ErrNoFilter
		}
		if err != nil {
			return none, false, err
		}
		n, err := c.exec(renameFilterSQL, name, to)
		if err == nil && n == 0 {
			err = store.ErrFilterExists
		}
		if err == nil {
			_, err = c.exec(deleteFilterSQL, name)
		}
		return none, false, err
	})
	return err
}

// DeleteFilter implements [store.FilterKeeper].
func (s *Store) DeleteFilter(ctx context.Context, name string) (bool, error) {
	if err := store.CheckFilterName(name); err != nil {
		return false, err
	}
	return writing(ctx, s, fmt.Sprintf("delete the filter %q", name), func(c *conn) (bool, bool, error) {
		n, err := c.exec(deleteFilterSQL, name)
		return n > 0, false, err
	})
}
