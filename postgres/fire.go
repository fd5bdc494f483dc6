package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Scheduler = (*Store)(nil)

// declareScheduleSQL takes the names in one order, or two programs that declare the same
// schedules could wait for each other. What is declared again as it was keeps its
// revision: nothing that was computed from it is out of date.
const declareScheduleSQL = `
insert into stint.schedules as s (name, recurrence, function, zone, job, overlap, missed, not_before, not_after, declared_by)
select d.name, d.recurrence, d.function, d.zone, d.job::jsonb, d.overlap, d.missed, d.not_before, d.not_after, $10
from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::boolean[], $7::text[], $8::timestamptz[], $9::timestamptz[])
  as d(name, recurrence, function, zone, job, overlap, missed, not_before, not_after)
order by d.name collate "C"
on conflict (name) do update set
  recurrence = excluded.recurrence, function = excluded.function, zone = excluded.zone, job = excluded.job, overlap = excluded.overlap,
  missed = excluded.missed, not_before = excluded.not_before, not_after = excluded.not_after,
  declared = clock_timestamp(), declared_by = excluded.declared_by,
  revision = s.revision + case when ` + sameTimesSQL + ` and (s.job, s.overlap, s.missed) = (excluded.job, excluded.overlap, excluded.missed) then 0 else 1 end,
  after = case when ` + sameTimesSQL + ` then s.after else greatest(s.after, clock_timestamp()) end,
  next = case when ` + sameTimesSQL + ` then s.next end,
  ended = case when ` + sameTimesSQL + ` then s.ended end`

const sameTimesSQL = `(s.recurrence, s.zone, s.not_before, s.not_after) is not distinct from (excluded.recurrence, excluded.zone, excluded.not_before, excluded.not_after)`

// Declare is [store.Declare] without recurrence functions: what [stint.Client.Schedule]
// calls.
func (s *Store) Declare(ctx context.Context, by string, ready []stint.Schedule) error {
	return store.Declare(ctx, s, by, ready, nil, store.NewPlanner(nil).Plan)
}

// DeclareSchedules implements [store.Scheduler].
func (s *Store) DeclareSchedules(ctx context.Context, by string, schedules []stint.Schedule) error {
	if len(schedules) == 0 {
		return nil
	}
	n := len(schedules)
	name, recurrence, zone, job, missed := make([]string, n), make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	overlap, notBefore, notAfter := make([]bool, n), make([]*time.Time, n), make([]*time.Time, n)
	function := make([]*string, n)
	for i, d := range schedules {
		text, err := store.TextsOf(d)
		if err != nil {
			return fmt.Errorf("declare schedule %s: %w", d.Name, err)
		}
		name[i], recurrence[i], zone[i], job[i], missed[i], overlap[i] = d.Name, text.Recurrence, d.Zone, string(text.Job), text.Missed, !d.Unique
		function[i] = nilText(text.Function)
		notBefore[i], notAfter[i] = nilTime(d.NotBefore), nilTime(d.NotAfter)
	}
	err := runCommitted(ctx, s.pool, []statement{
		{s.sql.in(declareScheduleSQL), []any{name, recurrence, function, zone, job, overlap, missed, notBefore, notAfter, orNull(valid.CleanText(by, 255))}},
		{s.sql.notify, nil},
	}, nil)
	if err != nil {
		return fmt.Errorf("declare %d schedules: %w", n, err)
	}
	return nil
}

// dueSQL reads, without a lock, what is to be looked at next. The index has it in
// this order, so that asking costs nothing while nothing is due; two ranges of it,
// so that what is not due is not read.
const dueSQL = `
with clock as materialized (select clock_timestamp() as now)
select ` + rows.ScheduleColumns + `, clock.now
from clock, (
  (select * from stint.schedules s where s.next is null and ` + firesSQL + ` order by s.next nulls first, s.name limit $4)
  union all
  (select * from stint.schedules s where s.next <= $3::timestamptz and ` + firesSQL + ` order by s.next nulls first, s.name limit $4)) s
order by s.next nulls first, s.name limit $4`

const firesSQL = `s.paused is null and s.ended is null and (s.function is null or s.function = any ($1::text[])) and s.name <> all ($2::text[])`

// fireSQL moves schedules on and makes the jobs of their occurrences, all in one
// statement. The row lock makes one of many win; the revision tells the others,
// that come later, that what they computed is out of date. A unique schedule whose
// last job has not ended skips. Should all of that fail, the index on schedule
// and occurrence is the last line: what is there already is not made again.
const fireSQL = `
with ` + dictSQL + `, clock as materialized (
  select clock_timestamp() as now
), mine as materialized (
  select s.name, s.fired, p.*,
         not s.overlap and exists (select from stint.entries e where e.pos = s.last_job)
           and not exists (select from stint.executions x where x.pos = s.last_job and x.job is null and x.final)
           and not exists (select from stint.executions x where x.job = s.last_job and x.final) as busy
  from unnest($21::text[], $22::bigint[], $23::timestamptz[], $24::timestamptz[], $25::boolean[], $26::bigint[], $27::bigint[], $28::bigint[])
    as p(schedule, revision, after, next, ended, passed, skipped, runs)
  join stint.schedules s on s.name = p.schedule and s.revision = p.revision
  order by s.name
  for update of s skip locked
), job as materialized (
  select j.*, d.ids[j.policy] as known, d.bodies[j.policy] as retry, nextval('stint.positions') as id, clock.now as created,
         m.fired + row_number() over (partition by j.schedule order by j.i) as nth
  from dict d, clock, unnest(` + columnsSQL + `, $29::text[], $30::timestamptz[]) with ordinality as j(` + columnNames + `, schedule, occurrence, i)
  join mine m on m.name = j.schedule and not m.busy
  order by j.i
), made as (
  insert into stint.entries (pos, created, lane, queue, priority, kind, args, due, policy, retry, timeout, tags, urn, source, metadata,
    max_losses, correlation, limits, start_by, schedule, nth, occurrence)
  select id, created, lane, queue, priority, kind, args::jsonb, occurrence, known, retry, timeout, tags::text[], urn, source, metadata::jsonb,
    max_losses, correlation, limits, coalesce(occurrence, created) + start_within * interval '1 microsecond', schedule, nth, occurrence
  from job order by i
  on conflict (schedule, occurrence) where schedule is not null do nothing
  returning pos, schedule, occurrence
), label as (
  insert into stint.job_tags (tag, job) select unnest(j.tags::text[]), j.id from job j join made on made.pos = j.id
), state as (
  update stint.schedules s
    set revision = s.revision + 1, after = m.after, next = m.next, ended = case when m.ended then coalesce(s.ended, clock.now) end,
        passed = s.passed + m.passed, passed_at = case when m.passed > 0 then clock.now else s.passed_at end, skipped = s.skipped + m.skipped + case when m.busy then m.runs else 0 end,
        fired = s.fired + coalesce(b.n, 0), last_job = coalesce(b.last, s.last_job), last_occurrence = coalesce(b.occurrence, s.last_occurrence)
    from clock, mine m left join (select schedule, count(*) as n, max(pos) as last, max(occurrence) as occurrence from made group by 1) b on b.schedule = m.name
    where s.name = m.name
)
select m.name, m.busy, b.pos, b.occurrence, case when b.pos is not null and $31::boolean then pg_notify('stint', 'work ' || pg_current_xact_id()) is null end
from mine m left join made b on b.schedule = m.name order by b.pos`

// FireSchedules implements [store.Scheduler]. When nothing is due it reads a row, else
// one and those that are due.
func (s *Store) FireSchedules(ctx context.Context, f store.FireRequest, plan store.PlanFunc) (_ store.FireResult, err error) {
	defer wrap(&err, "fire schedules")
	turn, fired, err := store.PlanDue(f, plan, func(until time.Time, limit int) ([]store.ScheduleInfo, time.Time, error) {
		return s.dueSchedules(ctx, f, until, limit)
	})
	if err != nil || len(turn.Plans) == 0 {
		return fired, err
	}
	fired.Moved, fired.Jobs, _, err = s.move(ctx, turn, true)
	return fired, err
}

func (s *Store) dueSchedules(ctx context.Context, f store.FireRequest, until time.Time, limit int) (list []store.ScheduleInfo, now time.Time, err error) {
	due, err := s.work().Query(ctx, s.sql.due, notNil(f.Functions), notNil(f.Except), until, limit)
	if err != nil {
		return nil, now, translate(err)
	}
	list, err = pgx.CollectRows(due, func(row pgx.CollectableRow) (store.ScheduleInfo, error) { return scanSchedule(row, &now) })
	return list, now, translate(err)
}

// notNil keeps an empty list from being null, with which nothing compares.
func notNil[V any](list []V) []V {
	if list == nil {
		return []V{}
	}
	return list
}

// move carries plans out, and returns how many schedules it was not too late for,
// and which of them were busy.
func (s *Store) move(ctx context.Context, turn store.FireBatch, skips bool) (moved int, jobs []store.FiredJob, busy []string, err error) {
	news, plans := turn.Jobs(), turn.Plans
	n := len(plans)
	name, revision, after, next := make([]string, n), make([]int64, n), make([]time.Time, n), make([]*time.Time, n)
	ended, passed, skipped, runs := make([]bool, n), make([]int64, n), make([]int64, n), make([]int64, n)
	for i := range plans {
		p := &plans[i]
		name[i], revision[i], after[i], ended[i] = p.Schedule.Name, p.Schedule.Revision, p.After, p.Ended
		passed[i], skipped[i] = int64(p.Passed), int64(p.Skipped)
		next[i] = nilTime(p.Next)
		if skips {
			runs[i] = int64(len(p.Occurrences))
		}
	}
	limits, err := limitsOf(news)
	if err != nil {
		return 0, nil, nil, err
	}
	known, err := s.storePolicies(ctx, stint.Tx{}, news)
	if err != nil {
		return 0, nil, nil, fmt.Errorf("store retry policies: %w", err)
	}
	ring := false
	if len(news) > 0 {
		ring = s.notifier.begin()
		defer s.notifier.end(ring, false)
	}
	schedules, occurrences := turn.Columns()
	args := append(columnsOf(news, limits, known).all(known), name, revision, after, next, ended, passed, skipped, runs, schedules, occurrences, ring)
	seen := map[string]bool{}
	err = runCommitted(ctx, s.work(), []statement{{s.sql.fire, args}}, func(row func(...any) error) error {
		var (
			schedule   string
			full       bool
			id         *stint.ID
			occurrence *time.Time
		)
		if err := row(&schedule, &full, &id, &occurrence, new(any)); err != nil {
			return err
		}
		if full && !seen[schedule] {
			busy = append(busy, schedule)
		}
		seen[schedule] = true
		if id != nil {
			jobs = append(jobs, store.FiredJob{Schedule: schedule, Occurrence: deref(occurrence).UTC(), ID: *id})
		}
		return nil
	})
	return len(seen), jobs, busy, err
}
