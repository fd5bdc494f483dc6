package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/stint-go/stint/report"
)

var _ report.LiveStats = (*Store)(nil)

// Each of these is one statement, and what it calls is stable, so all figures are
// of one moment.
const (
	analyticsSQL   = `select moment, queued, postponed, running, zombies, ` + figuresSQL + ` from stint.analytics($1, $2, $3, $4, $5)`
	kindFiguresSQL = `select of_kind, ` + figuresSQL + ` from stint.attempt_figures($1, $2, $3, $4, $5) order by of_kind collate "C"`

	figuresSQL = `ended, ended / date_part('epoch', $5::interval), latency_mean, latency_p50, latency_p95, latency_p99,
	  execution_mean, execution_p50, execution_p95, execution_p99`
)

// Analyze implements [report.LiveStats].
func (s *Store) Analyze(ctx context.Context, f report.AnalyticsFilter) (report.Analytics, error) {
	if err := f.Check(); err != nil {
		return report.Analytics{}, err
	}
	all, err := collect(ctx, s.pool, "analyze", s.sql.in(analyticsSQL), analyticsArgs(f), fieldsOf[report.Analytics])
	if err != nil {
		return report.Analytics{}, err
	}
	return all[0], nil
}

// AnalyzeKinds implements [report.LiveStats].
func (s *Store) AnalyzeKinds(ctx context.Context, f report.AnalyticsFilter) ([]report.KindAnalytics, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	return collect(ctx, s.pool, "analyze kinds", s.sql.in(kindFiguresSQL), analyticsArgs(f), fieldsOf[report.KindAnalytics])
}

func analyticsArgs(f report.AnalyticsFilter) []any {
	return []any{nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), nilTime(f.At), cmp.Or(f.Span, report.MaxSpan)}
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
		nilText(f.Queue), nilText(f.Kind), nilText(f.Tag), nilTime(f.At), cmp.Or(limit, 100)}, fieldsOf[report.DueGroup])
}
