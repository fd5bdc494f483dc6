package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.MetricsKeeper = (*Store)(nil)

const (
	updateMetricsSQL = `update stint_metrics set engine = ?3, at = ?4, figures = ?5 where instance = ?1 and since = ?2`
	insertMetricsSQL = `insert into stint_metrics (instance, since, engine, at, figures) values (?, ?, ?, ?, ?)`
	oldMetricsSQL    = `delete from stint_metrics where at < ?`
	metricsSQL       = `select figures, at from stint_metrics order by at desc, instance`
)

// WriteMetrics implements [stint.MetricsWriter]. The first figures of an engine
// also make room.
func (s *Store) WriteMetrics(ctx context.Context, m stint.Metrics) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("keep the metrics of %s: %w", m.Instance, err)
	}
	err = s.write(ctx, func(c *conn) (bool, error) {
		now := time.Now()
		row := []any{m.Instance, micro(m.Since), int64(m.Engine), micro(now), string(text)}
		changed, err := c.exec(updateMetricsSQL, row...)
		if err != nil || changed > 0 {
			return false, err
		}
		if _, err := c.exec(insertMetricsSQL, row...); err != nil {
			return false, err
		}
		_, err = c.exec(oldMetricsSQL, micro(now.Add(-stint.DefaultRetention)))
		return false, err
	})
	if err != nil {
		return fmt.Errorf("keep the metrics of %s: %w", m.Instance, err)
	}
	return nil
}

// EngineMetrics implements [stint.MetricsKeeper].
func (s *Store) EngineMetrics(ctx context.Context) ([]stint.Metrics, error) {
	var list []stint.Metrics
	err := s.read(ctx, func(c *conn) error {
		list = nil
		return c.query(metricsSQL, nil, func(q *stmt) error {
			var m stint.Metrics
			err := json.Unmarshal(q.ColumnRawText(0), &m)
			m.At = q.time(1)
			list = append(list, m)
			return err
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list metrics: %w", err)
	}
	return list, nil
}
