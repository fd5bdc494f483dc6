package postgres

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/stint-go/stint/report"
)

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
