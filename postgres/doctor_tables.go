package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var (
	bloat = warning("table_bloated", "{dead} dead rows beside {live} live ones, {size_bytes}; {vacuum}",
		"end what pins the horizon, if a finding tells of it; then: vacuum {table}")
	withoutAutovacuum = warning("autovacuum_disabled", "autovacuum passes over it: it is never cleaned up or analysed, nor frozen before the last moment",
		"alter table {table} reset (autovacuum_enabled)")
	history = note("history_long", "it goes back {days} days, to {date}, and the tables take {size_bytes}",
		"delete what nobody asks for any more: stint jobs delete --finished-before 30d")

	// identity sees whether the log is written in this database's transaction
	// numbers. A copy is translated by the first program that opens it.
	identity = question{about: "where the log was written", tables: true, rule: warning("database_copied",
		"it is a copy of another database's, and its log is written in the transaction numbers of that one",
		"open it with a program that works or enqueues (stint jobs list does too): the first one translates the log"), sql: `
		select 'schema ' || @name as subject
		from stint.meta m, pg_control_system() c
		where m.system_identifier <> c.system_identifier or m.entries_oid <> 'stint.entries'::regclass::oid`}
)

// tables reads how large they are, looks at what vacuum has done with them, and how
// far back they go.
func (x *examination) tables(ctx context.Context, tx pgx.Tx) error {
	type table struct {
		report.Size
		Dead     int64
		Vacuumed *time.Time
		Options  []string
	}
	all, err := ask[table](ctx, tx, `
		select c.relname::text, pg_total_relation_size(c.oid), pg_stat_get_live_tuples(c.oid), pg_stat_get_dead_tuples(c.oid),
		       greatest(pg_stat_get_last_vacuum_time(c.oid), pg_stat_get_last_autovacuum_time(c.oid)), coalesce(c.reloptions, '{}')
		from pg_class c where c.relnamespace = $1::regnamespace and c.relkind = 'r' order by 1`, x.sql.schema)
	if err != nil {
		return err
	}
	for _, t := range all {
		x.signs.Sizes = append(x.signs.Sizes, t.Size)
		table := x.sql.schema + "." + pgx.Identifier{t.Name}.Sanitize()
		if t.Dead >= x.normal.dead && t.Dead > 5*t.Rows {
			vacuumed := "it was never vacuumed"
			if t.Vacuumed != nil {
				vacuumed = "it was last vacuumed at " + t.Vacuumed.UTC().Format(time.DateTime) + " UTC"
			}
			x.find(bloat.With("table", table, "vacuum", vacuumed).Find("table "+t.Name,
				map[string]any{"dead": t.Dead, "live": t.Rows, "size_bytes": t.Bytes, "vacuumed": t.Vacuumed}))
		}
		for _, option := range t.Options {
			if name, value, _ := strings.Cut(option, "="); name == "autovacuum_enabled" && slices.Contains([]string{"false", "off", "0"}, value) {
				x.find(withoutAutovacuum.With("table", table).Find("table "+t.Name, nil))
			}
		}
	}
	return x.oldest(ctx, tx)
}

// oldest looks for a history that was never cut: it costs room, and nothing
// else. The oldest outcome is the one at the lowest position, nearly.
func (x *examination) oldest(ctx context.Context, tx pgx.Tx) error {
	var (
		finished *time.Time
		now      time.Time
	)
	err := tx.QueryRow(ctx, x.sql.in(`select (select finished from stint.executions order by pos limit 1), clock_timestamp()`)).Scan(&finished, &now)
	if err != nil || finished == nil || now.Sub(*finished) < x.normal.history {
		return err
	}
	sizes, total := map[string]any{}, int64(0)
	for _, s := range x.signs.Sizes {
		sizes[s.Name] = s.Bytes
		total += s.Bytes
	}
	x.find(history.With("days", fmt.Sprint(int(now.Sub(*finished).Hours()/24)), "date", finished.UTC().Format(time.DateOnly)).
		Find("the history", map[string]any{"oldest": finished.UTC(), "size_bytes": total, "sizes_bytes": sizes}))
	return nil
}

// walkSQL keeps the planner from reading the log whole: what is asked for here
// begins at a bound and ends at a limit.
const walkSQL = `set local enable_seqscan = off; set local enable_bitmapscan = off; set local enable_sort = on; set local jit = off`

// backlogSQL counts what is ready after each frontier, up to a limit for each
// lane: the index (lane, xid, pos) is walked from there. What was in progress
// when the frontier passed is left out; it is taken first.
const backlogSQL = `
select e.queue, e.priority::integer, e.kind, count(*)::integer, (count(*) filter (where e.start_by < clock_timestamp()))::integer,
       min(e.created), bool_or(e.limits is not null), q.paused, q.by, q.why
from stint.look('{}', '{}') l
cross join lateral stint.frontier(l.lane) f
cross join lateral (
  select e.queue, e.priority, e.kind, e.created, e.start_by, e.limits from stint.entries e
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

// flowFactsSQL goes through the index of those that wait for jobs. There are few notes, unless nobody looks at them.
const flowFactsSQL = `
select count(f.flow), count(*) - count(f.flow), (select min(n.at) from (select t.at from stint.notes t order by t.n limit $2) n)
from (select w.job from stint.waiting w where w.watch is not null order by w.watch, w.job limit $1) b left join stint.flows f on f.flow = b.job`

func (x *examination) flows(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, walkSQL); err != nil {
		return err
	}
	var noted *time.Time
	f := &x.signs.Flows
	err := tx.QueryRow(ctx, x.sql.in(flowFactsSQL), report.FlowsLimit, report.BacklogLimit).Scan(&f.Open, &f.Blocked, &noted)
	f.Noted = deref(noted)
	return err
}
