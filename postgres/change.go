package postgres

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.ChangeKeeper = (*Store)(nil)

const (
	beginChangeSQL = `insert into stint.changes (by, role, way, operation, subject, details) values ($1, $2, $3, $4, $5, $6) returning n`
	endChangeSQL   = `update stint.changes set ended = clock_timestamp(), problem = $2 where n = $1 and ended is null`
)

// BeginChange implements [store.ChangeKeeper].
func (s *Store) BeginChange(ctx context.Context, c store.NewChange) (int64, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	c = c.Clean()
	var details *string
	if c.Details != nil {
		details = new(string(c.Details))
	}
	return answerOf[int64](ctx, s, "write down the change "+c.Operation, beginChangeSQL,
		nilText(c.By), nilText(c.Role), c.Way, c.Operation, nilText(c.Subject), details)
}

// EndChange implements [store.ChangeKeeper].
func (s *Store) EndChange(ctx context.Context, change int64, problem string) error {
	if err := s.operate(ctx, nil, endChangeSQL, change, nilText(valid.CleanHead(problem, 1<<10))); err != nil {
		return fmt.Errorf("write down what came of change %d: %w", change, err)
	}
	return nil
}

// Changes implements [store.ChangeKeeper].
func (s *Store) Changes(ctx context.Context, f store.ChangeFilter) ([]store.Change, error) {
	text, args := changesQuery(f)
	return collect(ctx, s.pool, "list changes", s.sql.in(text), args, scanChange)
}

// changesQuery names only what is asked for, so that every plan fits.
func changesQuery(f store.ChangeFilter) (text string, args []any) {
	var where []string
	value := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	for _, c := range [...]struct{ column, want string }{{"by", f.By}, {"operation", f.Operation}, {"subject", f.Subject}} {
		if c.want != "" {
			where = append(where, "c."+c.column+" = "+value(c.want))
		}
	}
	if !f.At.From.IsZero() {
		where = append(where, "c.at >= "+value(f.At.From))
	}
	if !f.At.To.IsZero() {
		where = append(where, "c.at < "+value(f.At.To))
	}
	if f.Before != 0 {
		where = append(where, "c.n < "+value(f.Before))
	}
	text = "select " + rows.ChangeColumns + " from stint.changes c"
	if len(where) > 0 {
		text += " where " + strings.Join(where, " and ")
	}
	return text + " order by c.n desc limit " + value(cmp.Or(f.Limit, 100)), args
}

func scanChange(row pgx.CollectableRow) (c store.Change, err error) {
	err = rows.ReadChange(&c, func(into ...any) error { return scan(row, into...) })
	return c, err
}
