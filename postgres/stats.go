package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

var _ stint.Statistician = (*Store)(nil)

// SumUp implements [stint.Statistician]. A step may read many attempts, so that
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

// statsSQL puts the sums and what is not in them yet together.
const statsSQL = `
select case when $5 then s.hour end as hour, s.kind, s.queue, s.outcome, sum(s.n)::bigint, sum(s.ran)::bigint,
       sum(s.total)::bigint, coalesce(min(s.fastest), 0), coalesce(max(s.longest), 0),
       coalesce((array_agg(s.last order by s.last_at desc nulls last, s.last desc))[1], 0), max(s.last_at), sum(s.waited)::bigint
from stint.stats_hours s
where ($1::text is null or s.kind = $1) and ($2::text is null or s.queue = $2)
  and ($3::timestamptz is null or s.hour >= $3) and ($4::timestamptz is null or s.hour < $4)
group by 1, 2, 3, 4
order by 1, s.kind collate "C", s.queue collate "C", s.outcome`

// Stats implements [stint.Statistician].
func (s *Store) Stats(ctx context.Context, f stint.StatsFilter) ([]stint.Stats, error) {
	from, to := f.Hours()
	rows, err := s.pool.Query(ctx, s.sql.in(statsSQL), nilText(f.Kind), nilText(f.Queue), nilTime(from), nilTime(to), f.Hourly)
	if err != nil {
		return nil, fmt.Errorf("read the statistics: %w", translate(err))
	}
	list, err := pgx.CollectRows(rows, scanStats)
	if err != nil {
		return nil, fmt.Errorf("read the statistics: %w", translate(err))
	}
	return list, nil
}

func scanStats(row pgx.CollectableRow) (s stint.Stats, err error) {
	var (
		hour, last                             *time.Time
		total, fastest, longest, took, waiting int64
	)
	err = row.Scan(&hour, &s.Kind, &s.Queue, &s.Outcome, &s.Attempts, &s.Took.Count, &total, &fastest, &longest, &took, &last, &waiting)
	s.Hour, s.LastAt = deref(hour), deref(last)
	s.Took.Total, s.Took.Fastest, s.Took.Longest, s.Took.Last = micros(total), micros(fastest), micros(longest), micros(took)
	s.Waited = micros(waiting)
	return s, err
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
