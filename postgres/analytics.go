package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var (
	_ report.LiveStats     = (*Store)(nil)
	_ report.ActivityStats = (*Store)(nil)
)

// Each of these is one statement, and what it calls is stable, so all figures are
// of one moment, but for what limits hold up.
const (
	analyticsSQL   = `select moment, queued, 0::bigint, postponed, running, zombies, ` + figuresSQL + ` from stint.analytics($1, $2, $3, $4, $5)`
	activitySQL    = `select moment, running, zombies, ` + figuresSQL + ` from stint.analytics($1, $2, $3, $4, $5, waiting => false)`
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
	all[0].Limited, err = s.limited(ctx, f)
	return all[0], err
}

// Activity implements [report.ActivityStats].
func (s *Store) Activity(ctx context.Context, f report.AnalyticsFilter) (report.Activity, error) {
	if err := f.Check(); err != nil {
		return report.Activity{}, err
	}
	all, err := collect(ctx, s.pool, "analyze what runs", s.sql.in(activitySQL), analyticsArgs(f), fieldsOf[report.Activity])
	if err != nil {
		return report.Activity{}, err
	}
	return all[0], nil
}

// limitedSQL groups what is due by what may limit it, if there is anything that does.
const limitedSQL = `
	select u.queue, coalesce(u.limits, ''), count(*) from stint.unclaimed u
	where (exists (select from stint.limits) or exists (select from stint.limit_pauses))
	  and ($1::text is null or u.queue = $1) and ($2::text is null or u.kind = $2)
	  and ($3::text is null or (select true from stint.job_tags t where t.tag = $3 and t.job = u.job))
	  and u.due <= (select coalesce($4, clock_timestamp()))
	group by 1, 2 order by 3 desc limit $5`

// limited counts the jobs that are due and that a limit lets not start.
func (s *Store) limited(ctx context.Context, f report.AnalyticsFilter) (int64, error) {
	groups, err := collect(ctx, s.pool, "group what is due by its limits", s.sql.in(limitedSQL), append(analyticsArgs(f)[:4], store.MostUnder), pgx.RowToStructByPos[store.JobsUnder])
	if err != nil || len(groups) == 0 {
		return 0, err
	}
	now, states, _, _, err := s.gates(ctx, s.pool, 0, store.GatesUnder(groups))
	return store.Limited(now, groups, states), err
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
