package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

const jobColumns = `j.id, j.kind, j.state, j.begun, j.queue, j.priority, j.args, j.attempt, j.losses, j.reason, j.tags,
  j.urn, j.source, j.metadata, j.policy, j.timeout, j.created, j.due, j.started, j.finished, j.max_losses,
  j.faulty, j.undecided, j.recovered, j.correlation, j.start_by,
  j.schedule, j.nth, j.occurrence`

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
	err = c.query(jobExecutionsSQL, []any{int64(id)}, func(q *stmt) error {
		x, err := scanExecution(q)
		job.Attempts = append(job.Attempts, x)
		return err
	})
	store.ShowCancelled(job)
	return job, err
}

// scanJob reads jobColumns.
func (s *Store) scanJob(c *conn, q *stmt, j *stint.JobInfo) error {
	*j = stint.JobInfo{
		ID: stint.ID(q.ColumnInt64(0)), Kind: q.name(1), State: stint.State(q.name(2)), Begun: q.ColumnInt64(3) != 0,
		Queue: q.name(4), Priority: q.ColumnInt(5), Args: q.json(6), Attempt: q.ColumnInt(7), Losses: q.ColumnInt(8),
		Reason: q.ColumnText(9), URN: q.ColumnText(11), Source: q.ColumnText(12), Metadata: q.json(13),
		Timeout: time.Duration(q.ColumnInt64(15)) * time.Microsecond,
		Created: q.time(16), Due: q.time(17), Started: q.time(18), Finished: q.time(19), MaxLosses: q.maxLosses(20),
		Faulty: q.ColumnInt64(21) != 0, PendingRetry: q.ColumnText(22),
		Origin: stint.Origin{
			Recovered: stint.ID(q.ColumnInt64(23)), Schedule: q.ColumnText(26), Nth: q.ColumnInt64(27), Occurrence: q.time(28),
		},
		Correlation: q.ColumnText(24), StartBy: q.time(25),
	}
	var err error
	if j.Retry, err = s.policies.name(c, q.ColumnInt64(14)); err != nil {
		return err
	}
	j.Tags, err = list[string](q, 10)
	return err
}

func scanExecution(q *stmt) (x stint.Attempt, err error) {
	x = stint.Attempt{
		Attempt: q.ColumnInt(0), Outcome: stint.Outcome(q.ColumnInt(1)), Final: q.ColumnInt64(2) != 0, Reason: q.ColumnText(3),
		Started: q.time(4), Finished: q.time(5), Engine: q.ColumnInt64(6), Instance: q.ColumnText(7),
		Host: q.ColumnText(8), PID: q.ColumnInt(9), Slot: q.ColumnInt(10), Result: q.json(11),
	}
	if text := q.json(12); text != nil {
		err = json.Unmarshal(text, &x.Error)
	}
	x.Derive()
	return x, err
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
)
select 'completed', executions - ifnull((select sum(n) from rare), 0) from c
union all select 'available', available from c
union all select 'running', entries - available - (executions - unready) from c
union all select 'failed', ifnull((select sum(n) from rare where outcome in (2, 5, 7) and final = 1), 0)
union all select 'cancelled', ifnull((select sum(n) from rare where outcome = 6), 0)
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

const kindsSQL = `select name, queue, priority, timeout, tags, retry, max_losses, declared, start_within from stint_kinds order by name`

// Kinds implements [store.Inspector].
func (s *Store) Kinds(ctx context.Context) ([]stint.KindInfo, error) {
	return reading(ctx, s, "list kinds", func(c *conn) (kinds []stint.KindInfo, err error) {
		err = c.query(kindsSQL, nil, func(q *stmt) (err error) {
			d := stint.KindInfo{
				Name: q.ColumnText(0), Queue: q.ColumnText(1), Priority: q.ColumnInt(2),
				Timeout: time.Duration(q.ColumnInt64(3)) * time.Microsecond, Declared: q.time(7),
				StartWithin: time.Duration(q.ColumnInt64(8)) * time.Microsecond,
			}
			if d.Tags, err = list[string](q, 4); err != nil {
				return err
			}
			var policy retry.Policy
			err = json.Unmarshal(q.ColumnRawText(5), &policy)
			d.Retry = policy
			if !q.isNull(6) {
				d.MaxLosses = new(q.ColumnInt(6))
			}
			kinds = append(kinds, d)
			return err
		})
		return kinds, err
	})
}
