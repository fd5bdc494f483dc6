package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.ChangeKeeper = (*Store)(nil)

const (
	beginChangeSQL = `insert into stint_changes (at, by, role, way, operation, subject, details) values (?, ?, ?, ?, ?, ?, ?) returning n`
	endChangeSQL   = `update stint_changes set ended = ?, problem = ? where n = ? and ended is null`
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
	return reading(ctx, s, "list changes", func(c *conn) ([]store.Change, error) { return readRows(c, scanChange, text, args...) })
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
	return "select " + rows.ChangeColumns + " from stint_changes where " + strings.Join(where, " and ") + " order by n desc limit ?", append(args, max(0, cmp.Or(f.Limit, 100)))
}

func scanChange(c *store.Change, q *stmt) error { return rows.ReadChange(c, q.scan) }
