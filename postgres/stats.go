package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
)

var _ report.StatsStore = (*Store)(nil)

// SumUp implements [report.StatsStore]. A step may read many attempts, so that
// it has the time that it needs.
func (s *Store) SumUp(ctx context.Context) (more bool, err error) {
	err = s.transactWork(ctx, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, s.sql.in(`select stint.sum_up()`)).Scan(&more)
	})
	if err != nil {
		return false, fmt.Errorf("sum up: %w", err)
	}
	return more, nil
}

// statsSQL puts the sums and what is not in them yet together: minutes or hours,
// by how many minutes they have. Bounds are subqueries, so that they lead into the
// index, and what is not asked for is not read.
const statsSQL = `
with bound as (
  select greatest($3::timestamptz, case when $5::int = 1 then stint.first_minute() else '-infinity' end) as low,
         coalesce($4::timestamptz, 'infinity') as high)
select case when $6 then s.start end as start, s.kind, s.queue, s.outcome, sum(s.n)::bigint, sum(s.ran)::bigint,
       (array_agg(s.last order by s.last_at desc nulls last, s.last desc))[1], min(s.fastest), max(s.longest), sum(s.total)::bigint,
       max(s.last_at), sum(s.waited)::bigint,
       case when not $8 then null when count(*) = 1 then min(s.took_by) else stint.add_histograms(jsonb_agg(s.took_by)) end,
       case when not $8 then null when count(*) = 1 then min(s.waited_by) else stint.add_histograms(jsonb_agg(s.waited_by)) end
from (
  select s.* from stint.stats s
  where s.minutes = $5::int and s.start >= (select b.low from bound b) and s.start < (select b.high from bound b)
  union all
  select x.minutes, case when $5::int = 1 then x.start else date_trunc('hour', x.start at time zone 'UTC') at time zone 'UTC' end,
         x.kind, x.queue, x.outcome, x.n, x.ran, x.total, x.fastest, x.longest, x.last, x.last_at, x.waited, x.took_by, x.waited_by
  from bound b cross join stint.summed m cross join lateral stint.sums(greatest(m.until, b.low), b.high) x
  where not $7
) s
where ($1::text is null or s.kind = $1) and ($2::text is null or s.queue = $2)
group by 1, 2, 3, 4
order by 1, s.kind collate "C", s.queue collate "C", s.outcome`

// Stats implements [report.StatsStore].
func (s *Store) Stats(ctx context.Context, f report.StatsFilter) ([]report.Stats, error) {
	if err := f.Check(); err != nil {
		return nil, err
	}
	from, to := f.Bounds()
	minutes := cmp.Or(f.Every, time.Hour) / time.Minute
	return collect(ctx, s.pool, "read the statistics", s.sql.in(statsSQL), []any{nilText(f.Kind), nilText(f.Queue), nilTime(from), nilTime(to), int(minutes), f.Every != 0, f.Settled, f.Distributed}, fieldsOf[report.Stats])
}

// Unsummed implements [report.StatsStore].
func (s *Store) Unsummed(ctx context.Context, most int) (n int, err error) {
	if err := s.pool.QueryRow(ctx, s.sql.in(`select stint.unsummed($1)`), most).Scan(&n); err != nil {
		return 0, fmt.Errorf("count what is not summed up: %w", translate(err))
	}
	return n, nil
}

var _ report.MetricsKeeper = (*Store)(nil)

// keepMetricsSQL takes the place of an engine's older figures. The first ones
// of an engine also make room: the table is read for that only then.
const keepMetricsSQL = `
with kept as (
  insert into stint.metrics as m (instance, since, engine, figures) values ($1, $2, $3, $4)
  on conflict (instance, since) do update set engine = excluded.engine, at = clock_timestamp(), figures = excluded.figures
  returning m.xmax = 0 as fresh
)
delete from stint.metrics m where (select fresh from kept) and m.at < clock_timestamp() - interval '5 days'`

// WriteMetrics implements [report.MetricsWriter].
func (s *Store) WriteMetrics(ctx context.Context, m report.Metrics) error {
	text, err := json.Marshal(m)
	if err == nil {
		err = s.once(ctx, nil, s.sql.in(keepMetricsSQL), m.Instance, m.Since, m.Engine, string(text))
	}
	if err != nil {
		return fmt.Errorf("keep the metrics of %s: %w", m.Instance, err)
	}
	return nil
}

// EngineMetrics implements [report.MetricsKeeper].
func (s *Store) EngineMetrics(ctx context.Context) ([]report.Metrics, error) {
	return collect(ctx, s.pool, "list metrics", s.sql.in(`select figures, at from stint.metrics order by at desc, instance collate "C"`), nil, func(row pgx.CollectableRow) (m report.Metrics, err error) {
		err = row.Scan(&m, &m.At)
		return m, err
	})
}
