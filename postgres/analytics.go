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

// Each of these is one statement, and what it calls is stable, so all figures are
// of one moment.
const (
	analyticsSQL   = `select * from stint.analytics($1, $2, $3, $4, $5)`
	kindFiguresSQL = `select * from stint.attempt_figures($1, $2, $3, $4, $5) order by of_kind collate "C"`
)

// Analyze implements [stint.Analyst].
func (s *Store) Analyze(ctx context.Context, f stint.AnalyticsFilter) (stint.Analytics, error) {
	if err := f.Check(); err != nil {
		return stint.Analytics{}, err
	}
	var a stint.Analytics
	err := scanFigures(s.pool.QueryRow(ctx, s.sql.in(analyticsSQL), analyticsArgs(f)...), &a.AttemptFigures, f.Span,
		&a.At, &a.Queued, &a.Postponed, &a.Running, &a.Zombies)
	if err != nil {
		return stint.Analytics{}, fmt.Errorf("analyze: %w", translate(err))
	}
	return a, nil
}

// AnalyzeKinds implements [stint.Analyst].
func (s *Store) AnalyzeKinds(ctx context.Context, f stint.AnalyticsFilter) ([]stint.KindAnalytics, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	rows, err := s.pool.Query(ctx, s.sql.in(kindFiguresSQL), analyticsArgs(f)...)
	if err != nil {
		return nil, fmt.Errorf("analyze kinds: %w", translate(err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k stint.KindAnalytics, err error) {
		return k, scanFigures(row, &k.AttemptFigures, f.Span, &k.Kind)
	})
	if err != nil {
		return nil, fmt.Errorf("analyze kinds: %w", translate(err))
	}
	return list, nil
}

func analyticsArgs(f stint.AnalyticsFilter) []any {
	return []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), nilTime(f.At), cmp.Or(f.Span, stint.MaxSpan)}
}

// scanFigures reads a row that ends with the figures of attempts of a time.
func scanFigures(row pgx.Row, a *stint.AttemptFigures, span time.Duration, before ...any) error {
	l, x := make([]*time.Duration, 4), make([]*time.Duration, 4)
	if err := row.Scan(append(before, &a.Ended, &l[0], &l[1], &l[2], &l[3], &x[0], &x[1], &x[2], &x[3])...); err != nil {
		return err
	}
	a.PerSecond = float64(a.Ended) / cmp.Or(span, stint.MaxSpan).Seconds()
	a.Latency = stint.Spread{Mean: deref(l[0]), P50: deref(l[1]), P95: deref(l[2]), P99: deref(l[3])}
	a.Execution = stint.Spread{Mean: deref(x[0]), P50: deref(x[1]), P95: deref(x[2]), P99: deref(x[3])}
	return nil
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
