package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var _ report.MetricsKeeper = (*Store)(nil)

const (
	updateMetricsSQL = `update stint_metrics set engine = ?3, at = ?4, figures = ?5 where instance = ?1 and since = ?2`
	insertMetricsSQL = `insert into stint_metrics (instance, since, engine, at, figures) values (?, ?, ?, ?, ?)`
	oldMetricsSQL    = `delete from stint_metrics where at < ?`
	metricsSQL       = `select figures, at from stint_metrics order by at desc, instance`
)

// WriteMetrics implements [report.MetricsWriter]. The first figures of an engine
// also make room.
func (s *Store) WriteMetrics(ctx context.Context, m report.Metrics) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keep the metrics of %s: %w", m.Instance, err)
	}
	_, err = writing(ctx, s, "keep the metrics of "+m.Instance, func(c *conn) (changed int64, wake bool, err error) {
		now := time.Now()
		row := []any{m.Instance, micro(m.Since), int64(m.Engine), micro(now), string(text)}
		if changed, err = c.exec(updateMetricsSQL, row...); err != nil || changed > 0 {
			return changed, false, err
		}
		if _, err := c.exec(insertMetricsSQL, row...); err != nil {
			return 0, false, err
		}
		changed, err = c.exec(oldMetricsSQL, micro(now.Add(-store.DefaultRetention)))
		return changed, false, err
	})
	return err
}

// EngineMetrics implements [report.MetricsKeeper].
func (s *Store) EngineMetrics(ctx context.Context) ([]report.Metrics, error) {
	return reading(ctx, s, "list metrics", func(c *conn) ([]report.Metrics, error) {
		return readRows(c, func(m *report.Metrics, q *stmt) error { return q.scan(m, &m.At) }, metricsSQL)
	})
}
