package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.ChangeKeeper = (*Store)(nil)

const (
	beginChangeSQL = `insert into stint_changes (at, by, role, way, operation, subject, details) values (?, ?, ?, ?, ?, ?, ?) returning n`
	endChangeSQL   = `update stint_changes set ended = ?, problem = ? where n = ? and ended is null`
	changesSQL     = `select n, at, ifnull(by, ''), ifnull(role, ''), way, operation, ifnull(subject, ''), details, ended, ifnull(problem, '') from stint_changes`
)

// BeginChange implements [store.ChangeKeeper].
func (s *Store) BeginChange(ctx context.Context, c store.NewChange) (int64, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	c = c.Clean()
	return writing(ctx, s, "write down the change "+c.Operation, func(conn *conn) (int64, bool, error) {
		n, err := oneRow(conn, firstNumber[int64], beginChangeSQL,
			micro(time.Now()), orNil(c.By), orNil(c.Role), c.Way, c.Operation, orNil(c.Subject), c.Details)
		return n, false, err
	})
}

// EndChange implements [store.ChangeKeeper].
func (s *Store) EndChange(ctx context.Context, change int64, problem string) error {
	_, err := writing(ctx, s, fmt.Sprintf("write down what came of change %d", change), func(c *conn) (n int64, wake bool, err error) {
		n, err = c.exec(endChangeSQL, micro(time.Now()), orNil(valid.CleanHead(problem, 1<<10)), change)
		return n, false, err
	})
	return err
}

// Changes implements [store.ChangeKeeper].
func (s *Store) Changes(ctx context.Context, f store.ChangeFilter) ([]store.Change, error) {
	text, args := changesQuery(f)
	return collect(ctx, s, "list changes", text, args, scanChange)
}

func changesQuery(f store.ChangeFilter) (text string, args []any) {
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

func scanChange(q *stmt) store.Change {
	c := store.Change{ID: q.ColumnInt64(0), At: q.time(1), Ended: q.time(8), Problem: q.ColumnText(9)}
	c.By, c.Role, c.Way, c.Operation, c.Subject = q.ColumnText(2), q.ColumnText(3), q.ColumnText(4), q.ColumnText(5), q.ColumnText(6)
	c.Details = json.RawMessage(slices.Clone(q.ColumnRawText(7)))
	c.Result = store.ChangeResultOf(c.Ended, c.Problem)
	return c
}
