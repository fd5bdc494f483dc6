package sqlite

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/stint-go/stint/report"
)

var (
	_ report.ErrorAnalyst = (*Store)(nil)
	_ report.ErrorMarker  = (*Store)(nil)
)

// newestErrorsSQL are the newest attempts that failed or were lost: the newest of
// each part of the index of what went wrong, which has them by position.
const newestErrorsSQL = `
select pos from (
  select * from (select pos from stint_executions indexed by stint_executions_rare where outcome <> 1 and outcome = 2 and final = 0 order by pos desc limit ?1)
  union all
  select * from (select pos from stint_executions indexed by stint_executions_rare where outcome <> 1 and outcome = 2 and final = 1 order by pos desc limit ?1)
  union all
  select * from (select pos from stint_executions indexed by stint_executions_rare where outcome <> 1 and outcome = 5 and final = 0 order by pos desc limit ?1)
  union all
  select * from (select pos from stint_executions indexed by stint_executions_rare where outcome <> 1 and outcome = 5 and final = 1 order by pos desc limit ?1)
) order by pos desc limit ?1`

const (
	countErrorsSQL = `select count(*) from (` + newestErrorsSQL + `)`

	// Of a stack it takes the part that tells the place.
	errorsSQL = `
	select ifnull(x.job, x.pos), e.kind, ifnull(x.error ->> '$.class', iif(x.outcome = 5, 'lost', '')), substr(ifnull(x.error ->> '$.message', ''), 1, 1000),
	       ifnull(substr(x.error ->> '$.stack', nullif(instr(x.error ->> '$.stack', char(10) || 'panic('), 0) + 1, 2000), ''), x.finished
	from (` + newestErrorsSQL + `) n
	cross join stint_entries e on e.pos = n.pos
	cross join stint_executions x on x.pos = n.pos
	where (?2 is null or e.kind = ?2) and (?3 is null or e.queue = ?3) and x.finished >= ?4
	order by n.pos desc limit ?5`
)

// Errors implements [report.ErrorAnalyst].
func (s *Store) Errors(ctx context.Context, f report.ErrorFilter) (report.ErrorReport, error) {
	look, since := f.Look(), int64(math.MinInt64)
	if !f.Since.IsZero() {
		since = ceilMicro(f.Since)
	}
	return reading(ctx, s, "group errors", func(c *conn) (report.ErrorReport, error) {
		seen, err := oneRow(c, firstNumber[int], countErrorsSQL, look+1)
		if err != nil {
			return report.ErrorReport{}, err
		}
		found := report.ErrorsFound{More: seen > look, Now: fromMicro(micro(time.Now()))}
		found.Attempts, err = fieldsOf[report.FailedAttempt](c, errorsSQL, look+1, nilText(f.Kind), nilText(f.Queue), since, report.MaxErrors+1)
		if err != nil {
			return report.ErrorReport{}, err
		}
		found.Marks, err = fieldsOf[report.ErrorMark](c, errorMarksSQL)
		return report.GroupErrors(found, f), err
	})
}

const (
	errorMarksSQL = `select key, state, at, by, why from stint_error_groups`

	markErrorsSQL = `
	insert into stint_error_groups (key, state, at, by, why) values (?, ?, ?, ?, ?)
	on conflict (key) do update set state = excluded.state, at = excluded.at, by = excluded.by, why = excluded.why`
	forgetErrorMarksSQL = `delete from stint_error_groups where key in (select key from stint_error_groups where key <> ? order by at desc, key limit -1 offset ?)`
	reopenErrorsSQL     = `delete from stint_error_groups where key = ?`
)

// MarkErrors implements [report.ErrorMarker].
func (s *Store) MarkErrors(ctx context.Context, m report.ErrorMark) (report.ErrorMark, error) {
	if err := m.Check(); err != nil {
		return report.ErrorMark{}, err
	}
	m = m.Clean()
	return writing(ctx, s, fmt.Sprintf("mark the errors %s as %s", m.Key, m.State), func(c *conn) (report.ErrorMark, bool, error) {
		m.At = fromMicro(micro(time.Now()))
		_, err := c.exec(markErrorsSQL, m.Key, string(m.State), micro(m.At), orNil(m.By), orNil(m.Why))
		if err == nil {
			_, err = c.exec(forgetErrorMarksSQL, m.Key, report.MaxErrorMarks-1)
		}
		return m, false, err
	})
}

// ReopenErrors implements [report.ErrorMarker].
func (s *Store) ReopenErrors(ctx context.Context, key string) (bool, error) {
	if err := report.CheckErrorKey(key); err != nil {
		return false, err
	}
	return writing(ctx, s, "reopen the errors "+key, func(c *conn) (bool, bool, error) {
		n, err := c.exec(reopenErrorsSQL, key)
		return n > 0, false, err
	})
}
