package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

var _ stint.ErrorAnalyst = (*Store)(nil)

// errorsSQL reads attempts with errors along the index of what went wrong, the
// newest jobs first, and counts in its first column how many it looked at. What
// they said is read only of those that fit; of a stack it takes the part that
// tells the place, for all of ten thousand would be 40 MB. There is always a row.
const errorsSQL = `
with newest as materialized (
  select coalesce(o.job, o.pos) as job, o.pos, o.finished
  from stint.executions o where o.outcome <> 1 and o.outcome in (2, 5)
  order by coalesce(o.job, o.pos) desc, o.outcome desc, o.final desc limit $4
)
select (select count(*) from newest), a.*
from (select) one
left join lateral (
  select n.job, e.kind, coalesce(x.error ->> 'class', case x.outcome when 5 then 'lost' else '' end) as class,
         left(coalesce(x.error ->> 'message', ''), 1000) as message,
         coalesce(substr(x.error ->> 'stack', nullif(strpos(x.error ->> 'stack', E'\npanic('), 0) + 1, 2000), '') as stack, n.finished
  from newest n
  cross join lateral (select l.kind, l.queue from stint.entries l where l.pos = n.pos offset 0) e
  cross join lateral (select y.error, y.outcome from stint.executions y where y.pos = n.pos offset 0) x
  where ($1::text is null or e.kind = $1) and ($2::text is null or e.queue = $2) and ($3::timestamptz is null or n.finished >= $3)
  order by n.job desc limit $5
) a on true`

// Errors implements [stint.ErrorAnalyst].
func (s *Store) Errors(ctx context.Context, f stint.ErrorFilter) (stint.ErrorReport, error) {
	look := stint.MaxErrors
	if f != (stint.ErrorFilter{}) {
		look *= 5
	}
	var (
		all  []stint.FailedAttempt
		seen int
	)
	batch := &pgx.Batch{}
	batch.Queue(pageSQL)
	batch.Queue(s.sql.in(errorsSQL), nilText(f.Kind), nilText(f.Queue), nilTime(f.Since), look+1, stint.MaxErrors+1).Query(func(rows pgx.Rows) error {
		all = nil
		for rows.Next() {
			var (
				job                         *stint.ID
				kind, class, message, stack *string
				ended                       *time.Time
			)
			if err := rows.Scan(&seen, &job, &kind, &class, &message, &stack, &ended); err != nil {
				return err
			}
			if job != nil {
				all = append(all, stint.FailedAttempt{Job: *job, Kind: *kind, Class: *class, Message: *message, Stack: *stack, Ended: *ended})
			}
		}
		return rows.Err()
	})
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return stint.ErrorReport{}, fmt.Errorf("group errors: %w", translate(err))
	}
	fit := min(len(all), stint.MaxErrors)
	return stint.GroupErrors(all[:fit], seen > look || fit < len(all)), nil
}
