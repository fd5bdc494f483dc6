package floor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Inserts is a table into which producers insert single rows, each in a
// transaction of its own: what storing a job would cost if nobody had to read
// it.
type Inserts struct {
	*site
	conns []*pgxpool.Conn // one for each producer
	text  string
	row   []any
}

// baseTypesSQL has columns of the types under their domains: those check too.
const baseTypesSQL = `
do $$
declare
  change text := (
    select 'alter table %s.rows ' || string_agg('alter ' || quote_ident(a.attname) || ' type ' || format_type(t.typbasetype, t.typtypmod), ', ')
    from pg_attribute a join pg_type t on t.oid = a.atttypid
    where a.attrelid = '%s.rows'::regclass and a.attnum > 0 and t.typtype = 'd');
begin
  if change is not null then
    execute change;
  end if;
end
$$`

// Column is a value of the row that is inserted.
type Column struct {
	Name  string
	Value any
}

// NewInserts creates the table in a schema of its own, which must not be there
// yet. It has the columns, the defaults and the indexes of another table, but
// none of its checks; its rows get those values. Each producer has a connection
// that is open and knows the statement. Close it when done.
func NewInserts(ctx context.Context, url, schema string, producers int, like pgx.Identifier, row []Column) (*Inserts, error) {
	s, err := build(ctx, url, schema, producers, "create table %s.rows (like "+like.Sanitize()+" including defaults including indexes)", baseTypesSQL)
	if err != nil {
		return nil, err
	}
	i := &Inserts{site: s}
	var names, places []string
	for n, c := range row {
		names, places = append(names, c.Name), append(places, fmt.Sprintf("$%d", n+1))
		i.row = append(i.row, c.Value)
	}
	i.text = s.in("insert into %s.rows (" + strings.Join(names, ", ") + ") values (" + strings.Join(places, ", ") + ")")
	for n := range producers {
		conn, err := s.pool.Acquire(ctx)
		if err == nil {
			i.conns = append(i.conns, conn)
			err = i.Insert(ctx, n)
		}
		if err != nil {
			return nil, errors.Join(err, i.Close())
		}
	}
	return i, nil
}

// Insert inserts one row durably. Each producer, from 0, has one call under
// way at a time.
func (i *Inserts) Insert(ctx context.Context, producer int) error {
	if _, err := i.conns[producer].Exec(ctx, i.text, i.row...); err != nil {
		return fmt.Errorf("insert a row: %w", err)
	}
	return nil
}

// Close drops the table and ends the connections.
func (i *Inserts) Close() error {
	for _, conn := range i.conns {
		conn.Release()
	}
	return i.site.Close()
}
