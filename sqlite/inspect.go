package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/store"
)

const jobColumns = rows.JobColumns + ", j.policy"

const jobSQL = `select ` + jobColumns + ` from stint_jobs j where j.id = ?`

const jobExecutionsSQL = `
select x.attempt, x.outcome, x.final, x.reason, x.started, x.finished, x.engine, h.instance, h.host, h.pid, x.slot, x.result, x.error
from (select * from stint_executions where job = ?1
      union all
      select * from stint_executions where pos = ?1 and job is null) x
left join stint_engine_history h on h.token = x.engine
order by x.pos`

// Job implements [store.Inspector].
func (s *Store) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	job, err := reading(ctx, s, fmt.Sprintf("show job %d", id), func(c *conn) (*stint.JobInfo, error) { return s.show(c, id) })
	if err == nil && job == nil {
		err = fmt.Errorf("%w with id %d", stint.ErrNotFound, id)
	}
	return job, err
}

// show shows a job with its executions, nil when it is not there.
func (s *Store) show(c *conn, id stint.ID) (*stint.JobInfo, error) {
	var job *stint.JobInfo
	err := c.query(jobSQL, []any{int64(id)}, func(q *stmt) error {
		job = &stint.JobInfo{}
		return s.scanJob(c, q, job)
	})
	if err != nil || job == nil {
		return nil, err
	}
	if job.State.Final() {
		if job.RetriedAs, err = oneRow(c, firstNumber[stint.ID], recoveredSQL, int64(id)); err != nil {
			return nil, err
		}
	}
	job.Attempts, err = readRows(c, scanAttempted, jobExecutionsSQL, int64(id))
	store.ShowCancelled(job)
	return job, err
}

// scanJob reads jobColumns.
func (s *Store) scanJob(c *conn, q *stmt, j *stint.JobInfo) (err error) {
	var policy int64
	if err = q.scan(append(rows.Job(j), &policy)...); err == nil {
		slices.Sort(j.Awaits)
		slices.Sort(j.Asks)
		j.Awaits = slices.Compact(j.Awaits) // several steps may wait for one signal
		j.Retry, err = s.policies.name(c, policy)
	}
	return err
}

func scanAttempted(x *stint.Attempt, q *stmt) error {
	err := q.scan(&x.Attempt, &x.Outcome, &x.Final, &x.Reason, &x.Started, &x.Finished, &x.Engine, &x.Instance,
		&x.Host, &x.PID, &x.Slot, &x.Result, &x.Error)
	x.Derive()
	return err
}

// countsSQL counts without looking at every job: the history is counted page
// by page, and only what is not an ordinary success row by row. Running is
// what is left of the log. (Executions in lane -1, which no engine claims, are of
// jobs that ended, or were decided about, while they waited.)
const countsSQL = `
with rare (outcome, final, n) as (
  select outcome, final, count(*) from stint_executions where outcome <> 1 group by outcome, final
), c as (
  select (select count(*) from stint_executions) as executions,
         (select count(*) from stint_entries where lane >= 0) as entries,
         (select count(*) from (` + frontiersSQL + `) f cross join stint_entries e indexed by stint_entries_lane
            on e.lane = f.lane and e.pos > f.frontier) as available,
         (select count(*) from stint_executions indexed by stint_executions_unclaimed where nonce = 0) as unready
), marked as (
  select 'available' as state from stint_cancellations m cross join stint_entries e
  where e.pos in (select m.job union all select l.pos from stint_entries l where l.job = m.job) and e.lane >= 0
    and e.pos > ifnull((select f.frontier from stint_claims f where f.lane = e.lane order by f.n desc limit 1), 0)
  union all
  select w.why from stint_cancellations m cross join stint_waiting w on w.job = m.job
  where not exists (select 1 from stint_flows f where f.flow = m.job)
)
select 'completed', executions - ifnull((select sum(n) from rare), 0) from c
union all select 'available', available from c
union all select 'running', entries - available - (executions - unready) from c
union all select 'failed', ifnull((select sum(n) from rare where outcome in (2, 5, 7) and final = 1), 0)
union all select 'cancelled', ifnull((select sum(n) from rare where outcome in (6, 8)), 0)
union all select why, count(*) from stint_waiting group by why
union all select state, -1 from marked
union all select 'cancelled', 1 from marked`

// Counts implements [store.Inspector].
func (s *Store) Counts(ctx context.Context) (map[stint.State]int64, error) {
	return reading(ctx, s, "count jobs", func(c *conn) (map[stint.State]int64, error) {
		counts := map[stint.State]int64{}
		err := c.query(countsSQL, nil, func(q *stmt) error {
			counts[stint.State(q.ColumnText(0))] += q.ColumnInt64(1)
			return nil
		})
		return counts, err
	})
}

// aheadSQL counts what is between the frontier of a job's lane and its entry.
const aheadSQL = `
with v as (
  select max(e.pos) as pos, e.lane from stint_entries e where (e.pos = ?1 or e.job = ?1) and e.lane >= 0
  and (select j.state from stint_jobs j where j.id = ?1) = 'available'
)
select count(*) from (
  select 1 from v cross join stint_entries e indexed by stint_entries_lane on e.lane = v.lane and e.pos < v.pos
    and e.pos > ifnull((select c.frontier from stint_claims c where c.lane = v.lane order by c.n desc limit 1), 0)
  limit ?2)`

// Ahead implements [store.Inspector].
func (s *Store) Ahead(ctx context.Context, id stint.ID, most int) (int, error) {
	return reading(ctx, s, "count jobs", func(c *conn) (int, error) { return oneRow(c, firstNumber[int], aheadSQL, int64(id), most) })
}

// Kinds implements [store.Inspector].
func (s *Store) Kinds(ctx context.Context) ([]stint.KindInfo, error) {
	return reading(ctx, s, "list kinds", func(c *conn) ([]stint.KindInfo, error) {
		return readRows(c, func(d *stint.KindInfo, q *stmt) error { return q.scan(rows.Kind(d)...) },
			`select name, `+rows.KindColumns+` from stint_kinds order by name`)
	})
}

var _ store.Awaiter = (*Store)(nil)

// endedSQL chooses those jobs that may have ended or are gone, by keys alone: the
// view, which tells exactly, is asked about those only. A job has ended with a final
// execution; one that is cancelled may have ended by its marker.
const endedSQL = `
select a.value from json_each(?) a
where exists (select 1 from stint_executions x where x.pos = a.value and x.job is null and x.final = 1)
   or exists (select 1 from stint_executions x where x.job = a.value and x.final = 1)
   or exists (select 1 from stint_cancellations k where k.job = a.value)
   or not exists (select 1 from stint_entries e where e.pos = a.value and e.job is null)`

// Await implements [store.Awaiter].
func (s *Store) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	return s.waits.Await(ctx, id)
}

// ended returns those of the jobs that ended; nil for those that do not exist.
func (s *Store) ended(ctx context.Context, ids []stint.ID) (ended map[stint.ID]*stint.JobInfo, err error) {
	err = s.read(ctx, func(c *conn) error {
		maybe, err := allRows(c, firstNumber[stint.ID], endedSQL, arrayOf(ids))
		ended = make(map[stint.ID]*stint.JobInfo, len(maybe))
		for _, id := range maybe {
			if err != nil {
				break
			}
			var job *stint.JobInfo
			if job, err = s.show(c, id); job == nil || job.State.Final() {
				ended[id] = job
			}
		}
		return err
	})
	return ended, err
}
