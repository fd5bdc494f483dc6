package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

var _ stint.Analyst = (*Store)(nil)

// analyticsSQL is one statement, and what it calls is stable, so all figures are
// of one moment.
const analyticsSQL = `select * from stint.analytics($1, $2, $3, $4)`

// Analyze implements [stint.Analyst].
func (s *Store) Analyze(ctx context.Context, f stint.AnalyticsFilter) (stint.Analytics, error) {
	var a stint.Analytics
	l, x := make([]*time.Duration, 4), make([]*time.Duration, 4)
	err := s.pool.QueryRow(ctx, s.sql.in(analyticsSQL), nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), nilTime(f.At)).Scan(
		&a.At, &a.Queued, &a.Postponed, &a.Running, &a.Zombies, &a.Ended, &l[0], &l[1], &l[2], &l[3], &x[0], &x[1], &x[2], &x[3])
	if err != nil {
		return stint.Analytics{}, fmt.Errorf("analyze: %w", translate(err))
	}
	a.PerSecond = float64(a.Ended) / 60
	a.Latency = stint.Spread{Mean: deref(l[0]), P50: deref(l[1]), P95: deref(l[2]), P99: deref(l[3])}
	a.Execution = stint.Spread{Mean: deref(x[0]), P50: deref(x[1]), P95: deref(x[2]), P99: deref(x[3])}
	return a, nil
}

const dueBySQL = `
select value, jobs from stint.due_by($1, $2, $3, $4, $5, $6)
order by jobs desc, value collate "C" nulls first limit $7`

// DueBy implements [stint.Analyst].
func (s *Store) DueBy(ctx context.Context, field stint.Field, f stint.AnalyticsFilter, limit int) ([]stint.DueGroup, error) {
	if err := field.Check(); err != nil {
		return nil, err
	}
	name, keys := field.Path()
	rows, err := s.pool.Query(ctx, s.sql.in(dueBySQL), cmp.Or(name, string(field)), keys,
		nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), nilTime(f.At), cmp.Or(limit, 100))
	if err != nil {
		return nil, fmt.Errorf("group what is due by %s: %w", field, translate(err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g stint.DueGroup, err error) {
		return g, row.Scan(&g.Value, &g.Jobs)
	})
	if err != nil {
		return nil, fmt.Errorf("group what is due by %s: %w", field, translate(err))
	}
	return list, nil
}

// nilText and nilTime are null for what was not set.
func nilText(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

func nilTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
