package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// walkSQL keeps the planner from reading the log whole: what is asked for here
// begins at a bound and ends at a limit.
const walkSQL = `set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = on; set local jit = off`

// backlogSQL counts what is ready after each frontier, up to a limit for each
// lane: the index (lane, xid, pos) is walked from there. What was in progress
// when the frontier passed is left out; it is taken first.
const backlogSQL = `
select e.queue, e.priority::integer, e.kind, count(*)::integer, (count(*) filter (where e.start_by < clock_timestamp()))::integer,
       min(e.created), q.paused, q.by, q.why
from stint.look('{}', '{}') l
cross join lateral stint.frontier(l.lane) f
cross join lateral (
  select e.queue, e.priority, e.kind, e.created, e.start_by from stint.entries e
  where e.lane = l.lane and (e.xid, e.pos) > (f.xid, f.pos)
  order by e.xid, e.pos limit $1) e
left join stint.queues q on q.queue = e.queue
where not l.settle
group by l.lane, e.queue, e.priority, e.kind, q.paused, q.by, q.why
order by 6`

func (x *examination) ready(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, walkSQL); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, x.sql.in(backlogSQL), report.BacklogLimit)
	if err != nil {
		return err
	}
	x.signs.Backlogs, err = pgx.CollectRows(rows, fieldsOf[report.Backlog])
	return err
}

// undecidedBacklogSQL goes through the partial index on what is undecided. A job failed
// when its last execution ended.
const undecidedBacklogSQL = `
select u.undecided, count(*)::integer, min(coalesce(
  (select y.finished from stint.executions y where y.pos = coalesce((select max(z.pos) from stint.executions z where z.job = u.job), u.job)),
  clock_timestamp()))
from (select w.job, w.undecided from stint.waiting w where w.undecided is not null order by w.job limit $1) u
group by u.undecided order by u.undecided`

func (x *examination) undecided(ctx context.Context, tx pgx.Tx) (err error) {
	if _, err := tx.Exec(ctx, walkSQL); err != nil {
		return err
	}
	x.signs.Undecided, err = ask[report.UndecidedBacklog](ctx, tx, x.sql.in(undecidedBacklogSQL), report.BacklogLimit)
	return err
}

// holdsSQL begins at the bound that an engine's last beat told. It may be off
// for a claim whose fate the engine did not know, and is right for a count. What
// an exists asks would be a join, and that may hash all executions there are.
const holdsSQL = `
select b.token, count(p.pos)::integer
from stint.engines e
join stint.beats b on b.token = e.token
cross join lateral (
  select p.pos from stint.claims c cross join lateral unnest(c.positions) p(pos)
  where c.engine = b.token and c.serial >= b.low
    and (select true from stint.executions o where o.pos = p.pos) is null
    and (select true from stint.entries n where n.pos = p.pos)
  limit $1) p
where b.beat < clock_timestamp() - e.ttl * interval '1 millisecond'
group by b.token`

func (x *examination) holds(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, walkSQL); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, x.sql.in(holdsSQL), report.HoldsLimit)
	if err != nil {
		return err
	}
	x.signs.Holds = map[store.EngineID]int{}
	var (
		token store.EngineID
		n     int
	)
	_, err = pgx.ForEachRow(rows, []any{&token, &n}, func() error {
		x.signs.Holds[token] = n
		return nil
	})
	return err
}
