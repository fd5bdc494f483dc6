package postgres

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
)

var _ report.LiveStats = (*Store)(nil)

// Each of these is one statement, and what it calls is stable, so all figures are
// of one moment.
const (
	analyticsSQL   = `select * from stint.analytics($1, $2, $3, $4, $5)`
	kindFiguresSQL = `select * from stint.attempt_figures($1, $2, $3, $4, $5) order by of_kind collate "C"`
)

// Analyze implements [report.LiveStats].
func (s *Store) Analyze(ctx context.Context, f report.AnalyticsFilter) (report.Analytics, error) {
	if err := f.Check(); err != nil {
		return report.Analytics{}, err
	}
	var a report.Analytics
	err := scanFigures(s.pool.QueryRow(ctx, s.sql.in(analyticsSQL), analyticsArgs(f)...), &a.AttemptFigures, f.Span,
		&a.At, &a.Queued, &a.Postponed, &a.Running, &a.Zombies)
	if err != nil {
		return report.Analytics{}, fmt.Errorf("analyze: %w", translate(err))
	}
	return a, nil
}

// AnalyzeKinds implements [report.LiveStats].
func (s *Store) AnalyzeKinds(ctx context.Context, f report.AnalyticsFilter) ([]report.KindAnalytics, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return collect(ctx, s.pool, "analyze kinds", s.sql.in(kindFiguresSQL), analyticsArgs(f), func(row pgx.CollectableRow) (k report.KindAnalytics, err error) {
		return k, scanFigures(row, &k.AttemptFigures, f.Span, &k.Kind)
	})
}

func analyticsArgs(f report.AnalyticsFilter) []any {
	return []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), nilTime(f.At), cmp.Or(f.Span, report.MaxSpan)}
}

// scanFigures reads a row that ends with the figures of attempts of a time.
func scanFigures(row pgx.Row, a *report.AttemptFigures, span time.Duration, before ...any) error {
	l, x := make([]*time.Duration, 4), make([]*time.Duration, 4)
	if err := row.Scan(append(before, &a.Ended, &l[0], &l[1], &l[2], &l[3], &x[0], &x[1], &x[2], &x[3])...); err != nil {
		return err
	}
	a.PerSecond = float64(a.Ended) / cmp.Or(span, report.MaxSpan).Seconds()
	a.Latency = report.Percentiles{Mean: deref(l[0]), P50: deref(l[1]), P95: deref(l[2]), P99: deref(l[3])}
	a.Execution = report.Percentiles{Mean: deref(x[0]), P50: deref(x[1]), P95: deref(x[2]), P99: deref(x[3])}
	return nil
}

const dueBySQL = `
select value, jobs from stint.due_by($1, $2, $3, $4, $5, $6)
order by jobs desc, value collate "C" nulls first limit $7`

// DueBy implements [report.LiveStats].
func (s *Store) DueBy(ctx context.Context, field report.Field, f report.AnalyticsFilter, limit int) ([]report.DueGroup, error) {
	if err := field.Check(); err != nil {
		return nil, err
	}
	name, keys := field.Path()
	return collect(ctx, s.pool, fmt.Sprintf("group what is due by %s", field), s.sql.in(dueBySQL), []any{cmp.Or(name, string(field)), keys,
		nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), nilTime(f.At), cmp.Or(limit, 100)}, func(row pgx.CollectableRow) (g report.DueGroup, err error) {
		return g, row.Scan(&g.Value, &g.Jobs)
	})
}
