package sqlite

import (
	"context"
	"errors"

	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/store"
)

// auditSQL are the parts of the ledger. Contents of jobs that were never ready
// are no entries: no engine can claim them.
var auditSQL = rows.LedgerSQL{
	Entries: `
	select e.pos, ifnull(e.job, e.pos), e.lane, e.attempt, e.losses,
	       e.pos <= ifnull((select c.frontier from stint_claims c where c.lane = e.lane order by c.n desc limit 1), 0)
	from stint_entries e
	where e.lane >= 0 or exists (select 1 from stint_executions x where x.pos = e.pos)
	order by e.pos`,
	Claims: `
	select c.lane, c.n, c.nonce, c.engine, c.serial, (select json_group_array(e.pos) from
	  (select pos from stint_entries where lane = c.lane and pos > c.start and pos <= c.frontier order by pos) e)
	from stint_claims c order by c.lane, c.n`,
	Executions: `select pos, ifnull(job, pos), attempt, nonce, engine, outcome, final, started, finished, ifnull(slot, 0), ifnull(reason, '') from stint_executions order by pos`,
	Waiting:    `select job, attempt, due, why from stint_waiting order by job`,
	Jobs: `
	select id, state, schedule, occurrence, flow, is_flow, recovered,
	       ifnull(uniqueness like 'until-ended%', 0) and not exists (select 1 from stint_cancellations c where c.job in (j.id, j.flow))
	from stint_jobs j order by id`,
	Needs:   `select child, parent, wants from stint_needs order by child, parent`,
	Kept:    `select job from stint_steps union select job from stint_lines union select job from stint_progress order by job`,
	Holders: `select job from stint_idempotency where substr(key, 1, 1) = char(1)`,
	Engines: `select token from stint_engines order by token`,
	Buried:  `select token, ended from stint_engine_history where ended is not null`,
}

// intervalsSQL says what is wrong with the intervals of claims: the entries in each
// are as many as it took, but for those that were deleted since.
const intervalsSQL = `
with c as (
  select lane, n, taken, (select count(*) from stint_entries e where e.lane = k.lane and e.pos > k.start and e.pos <= k.frontier) as found
  from stint_claims k)
select 'claim ' || n || ' of lane ' || lane || ' took ' || taken || ' entries, and its interval has ' || found from c where found > taken
union all
select missing || ' entries that claims took are not there, and ' || deleted || ' were deleted'
from stint_meta, (select ifnull(sum(taken - found), 0) as missing from c) where missing <> deleted`

// Audit implements [store.Auditor].
func (s *Store) Audit(ctx context.Context) (*store.Ledger, error) {
	return reading(ctx, s, "copy the ledger", func(c *conn) (*store.Ledger, error) {
		wrong, err := allRows(c, firstText[string], intervalsSQL)
		if err == nil && len(wrong) > 0 {
			err = errors.New(wrong[0])
		}
		if err != nil {
			return nil, err
		}
		return auditSQL.Read(func(text string, each func(rows.Scan) error) error {
			return c.query(text, nil, func(q *stmt) error { return each(q.scan) })
		})
	})
}
