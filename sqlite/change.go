package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.ChangeKeeper = (*Store)(nil)

const (
	beginChangeSQL = `insert into stint_changes (at, by, role, way, operation, subject, details) values (?, ?, ?, ?, ?, ?, ?) returning n`
	endChangeSQL   = `update stint_changes set ended = ?, problem = ? where n = ? and ended is null`
	changesSQL     = `select n, at, ifnull(by, ''), ifnull(role, ''), way, operation, ifnull(subject, ''), details, ended, ifnull(problem, '') from stint_changes`
)

// BeginChange implements [stint.ChangeKeeper].
func (s *Store) BeginChange(ctx context.Context, c stint.NewChange) (n int64, err error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	c = c.Clean()
	err = s.write(ctx, func(conn *conn) (bool, error) {
		row := []any{micro(time.Now()), orNil(c.By), orNil(c.Role), c.Way, c.Operation, orNil(c.Subject), c.Details}
		return false, conn.query(beginChangeSQL, row, func(q *stmt) error { n = q.ColumnInt64(0); return nil })
	})
	if err != nil {
		return 0, fmt.Errorf("write down the change %s: %w", c.Operation, err)
	}
	return n, nil
}

// EndChange implements [stint.ChangeKeeper].
func (s *Store) EndChange(ctx context.Context, change int64, problem string) error {
	err := s.write(ctx, func(c *conn) (bool, error) {
		_, err := c.exec(endChangeSQL, micro(time.Now()), orNil(stint.CleanHead(problem, 1<<10)), change)
		return false, err
	})
	if err != nil {
		return fmt.Errorf("write down what came of change %d: %w", change, err)
	}
	return nil
}

// Changes implements [stint.ChangeKeeper].
func (s *Store) Changes(ctx context.Context, f stint.ChangeFilter) ([]stint.Change, error) {
	text, args := changesQuery(f)
	var list []stint.Change
	err := s.read(ctx, func(c *conn) error {
		list = nil
		return c.query(text, args, func(q *stmt) error {
			list = append(list, scanChange(q))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list changes: %w", err)
	}
	return list, nil
}

func changesQuery(f stint.ChangeFilter) (text string, args []any) {
	where := []string{"true"}
	add := func(condition string, value any) { where, args = append(where, condition), append(args, value) }
	for _, c := range [...]struct{ column, want string }{{"by", f.By}, {"operation", f.Operation}, {"subject", f.Subject}} {
		if c.want != "" {
			add(c.column+" = ?", c.want)
		}
	}
	if !f.At.From.IsZero() {
		add("at >= ?", ceilMicro(f.At.From))
	}
	if !f.At.To.IsZero() {
		add("at < ?", ceilMicro(f.At.To))
	}
	if f.Before != 0 {
		add("n < ?", f.Before)
	}
	return changesSQL + " where " + strings.Join(where, " and ") + " order by n desc limit ?", append(args, max(0, cmp.Or(f.Limit, 100)))
}

func scanChange(q *stmt) stint.Change {
	c := stint.Change{ID: q.ColumnInt64(0), At: q.time(1), Ended: q.time(8), Problem: q.ColumnText(9)}
	c.By, c.Role, c.Way, c.Operation, c.Subject = q.ColumnText(2), q.ColumnText(3), q.ColumnText(4), q.ColumnText(5), q.ColumnText(6)
	c.Details = json.RawMessage(slices.Clone(q.ColumnRawText(7)))
	c.Result = stint.Came(c.Ended, c.Problem)
	return c
}
