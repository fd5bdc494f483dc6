package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/report"
)

var (
	_ report.ErrorAnalyst = (*Store)(nil)
	_ report.ErrorMarker  = (*Store)(nil)
)

// errorsSQL reads attempts with errors along the index of what went wrong, the
// newest jobs first, and counts in its first column how many it looked at. What
// they said is read only of those that fit; of a stack it takes the part that
// tells the place, for all of ten thousand would be 40 MB. There is always a row.
// The second column is the time.
const errorsSQL = `
with newest as materialized (
  select coalesce(o.job, o.pos) as job, o.pos, o.finished
  from stint.executions o where o.outcome in (2, 5)
  order by coalesce(o.job, o.pos) desc, o.outcome desc, o.final desc limit $4
)
select (select count(*) from newest), statement_timestamp(), a.*
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

// Errors implements [report.ErrorAnalyst].
func (s *Store) Errors(ctx context.Context, f report.ErrorFilter) (report.ErrorReport, error) {
	look := f.Look()
	type found struct {
		Seen int
		Now  time.Time
		report.FailedAttempt
	}
	list, err := page(ctx, s, errorsSQL, []any{nilText(f.Kind), nilText(f.Queue), nilTime(f.Since), look + 1, report.MaxErrors + 1}, fieldsOf[found])
	if err != nil {
		return report.ErrorReport{}, fmt.Errorf("group errors: %w", err)
	}
	var all []report.FailedAttempt
	for _, r := range list {
		if r.Job != 0 {
			all = append(all, r.FailedAttempt)
		}
	}
	marks, err := collect(ctx, s.pool, "read what was decided about errors", s.sql.in(errorMarksSQL), nil, fieldsOf[report.ErrorMark])
	if err != nil {
		return report.ErrorReport{}, err
	}
	return report.GroupErrors(report.ErrorsFound{Attempts: all, More: list[0].Seen > look, Now: list[0].Now, Marks: marks}, f), nil
}

const (
	errorMarksSQL = `select key, state, at, by, why from stint.error_groups`

	// Those that are forgotten are not the one that is kept, so that no row is changed twice.
	markErrorsSQL = `
	with forgotten as (delete from stint.error_groups where key in (
	  select g.key from stint.error_groups g where g.key <> $1 order by g.at desc, g.key offset $5))
	insert into stint.error_groups (key, state, by, why) values ($1, $2, $3, $4)
	on conflict (key) do update set state = excluded.state, at = excluded.at, by = excluded.by, why = excluded.why
	returning at`
)

// MarkErrors implements [report.ErrorMarker].
func (s *Store) MarkErrors(ctx context.Context, m report.ErrorMark) (report.ErrorMark, error) {
	if err := m.Check(); err != nil {
		return report.ErrorMark{}, err
	}
	m = m.Clean()
	at, err := answerOf[time.Time](ctx, s, fmt.Sprintf("mark the errors %s as %s", m.Key, m.State), markErrorsSQL,
		m.Key, m.State, nilText(m.By), nilText(m.Why), report.MaxErrorMarks-1)
	m.At = at
	return m, err
}

// ReopenErrors implements [report.ErrorMarker].
func (s *Store) ReopenErrors(ctx context.Context, key string) (bool, error) {
	if err := report.CheckErrorKey(key); err != nil {
		return false, err
	}
	return answerOf[bool](ctx, s, "reopen the errors "+key, `with gone as (delete from stint.error_groups where key = $1 returning true) select exists (select from gone)`, key)
}
