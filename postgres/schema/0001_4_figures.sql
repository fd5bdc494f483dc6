-- stint: what the work comes to. All of it is read by statements of one moment,
-- and costs what waits, runs and ended lately; a long history costs nothing.

-- The lanes that have entries, each with its frontier: found by stepping through
-- the index.
create function stint.lanes()
returns table (lane bigint, xid xid8, pos bigint, pending_xid xid8[], pending_pos bigint[])
language plpgsql stable rows 20
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
declare
  at bigint := -1;
  f  record;
begin
  loop
    select e.lane into at from stint.entries e where e.lane > at order by e.lane, e.xid, e.pos limit 1;
    exit when not found;
    f := stint.frontier(at);
    lane := at; xid := f.xid; pos := f.pos; pending_xid := f.pending_xid; pending_pos := f.pending_pos;
    return next;
  end loop;
end
$$;

-- Jobs that no engine has claimed: what is ready, after the frontiers of its lane,
-- and what waits. Due is null while a retry function is to decide. The
-- contents of each are at an entry. Cancellations are read once and hashed: an
-- array whose length is not estimated always is, where a subquery may be thought
-- too large, or looked up once for each job.
create view stint.unclaimed as
select coalesce(e.job, e.pos) as job, coalesce(e.body, e.pos) as contents, e.queue, e.kind, e.priority,
       coalesce(e.due, e.created) as due, e.limits
from stint.lanes() f
cross join lateral (
  select l.* from stint.entries l where l.lane = f.lane and (l.xid, l.pos) > (f.xid, f.pos)
  union all
  select l.* from unnest(f.pending_xid, f.pending_pos) as p(xid, pos)
  cross join lateral (select * from stint.entries l where l.lane = f.lane and l.xid = p.xid and l.pos > p.pos offset 0) l
) e
where (coalesce(e.job, e.pos) in (select unnest(array(select k.job from stint.cancellations k)))) is not true
union all
select w.job, w.body, w.queue, w.kind, w.priority, w.due, w.limits
from stint.waiting w
where (w.job in (select unnest(array(select k.job from stint.cancellations k)))) is not true;

-- What engines have claimed and not recorded. What a busy engine closed since its
-- last beat is left out by what its newest claim says: that may be a second's work,
-- of hundreds of thousands of jobs. Zombies are held by engines that do
-- not beat any more, or that were buried and not yet swept: of those only
-- the newest claims that are to be swept are looked at, for they may be millions.
create view stint.claimed as
select c.token as engine, p.pos, coalesce(e.job, e.pos) as job, e.queue::text, e.kind::text, c.dead as zombie
from (
  select b.token, b.beat < clock_timestamp() - g.ttl * interval '1 millisecond' as dead, k.positions
  from stint.beats b join stint.engines g on g.token = b.token
  cross join lateral (
    select * from stint.claims c
    where c.engine = b.token
      and c.serial >= greatest(b.low, (select n.low from stint.claims n where n.engine = b.token order by n.engine desc, n.serial desc limit 1))
    offset 0) k -- never the other way round: all claims, in search of an engine
  union all
  select h.token, true as dead, k.positions
  from stint.engine_history h
  cross join lateral (select * from stint.claims c where c.engine = h.token and c.serial < h.low order by c.engine desc, c.serial desc limit 100) k
  where not h.swept and h.ended is not null
) c
cross join lateral stint.unfinished(c.positions) p
-- Nor all entries, in search of a kind.
cross join lateral (select * from stint.entries e where e.pos = p.pos offset 0) e;

-- Attempts that began. Those that were lost with their engine have no times of
-- their own, only the moment at which that became known. What a clock that was
-- set makes negative counts as 0. (Version 13 stores an extract as date_part, and
-- what is installed is to read alike on all of them.)
create view stint.timings as
select x.pos, coalesce(x.job, x.pos) as job, e.kind::text, e.queue::text, x.attempt, x.outcome, x.slot > 0 as ran, x.started, x.finished,
       case when x.slot > 0 then (date_part('epoch', x.finished - x.started) * 1000000)::bigint end as took, -- microseconds
       case when x.slot > 0 then greatest(0, (date_part('epoch', x.started - coalesce(e.due, e.created)) * 1000000)::bigint) end as waited
from stint.executions x
cross join lateral (select * from stint.entries e where e.pos = x.pos offset 0) e -- as above
where x.slot > 0 or x.outcome = 5;

comment on column stint.unclaimed.contents is 'the entry with the job''s contents';
comment on column stint.claimed.zombie     is 'whether its engine is dead';
comment on column stint.timings.ran        is 'whether it was not lost with its engine';
comment on column stint.timings.took       is 'from its start to its end, in microseconds; null when it was lost';
comment on column stint.timings.waited     is 'from when it was due to its start, in microseconds; null when it was lost';

-- How attempts went that ended in the minute before an instant, or the time that is
-- asked for, those of each kind or all together: how many, how late they started,
-- and how long they took. A percentile is the smallest that so many percent do not
-- exceed. (Tags are asked for by a value and not by exists: as a join that may be
-- planned the wrong way round.)
create function stint.attempt_figures(queue text default null, kind text default null, tag text default null, at timestamptz default null,
  span interval default '1 minute', by_kind boolean default true)
returns table (of_kind text, ended bigint,
  latency_mean interval, latency_p50 interval, latency_p95 interval, latency_p99 interval,
  execution_mean interval, execution_p50 interval, execution_p95 interval, execution_p99 interval)
language plpgsql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  us     constant interval := interval '1 microsecond';
  moment constant timestamptz := coalesce(attempt_figures.at, clock_timestamp());
begin
  return query
    select f.kind, f.n, f.waited * us, f.waits[1] * us, f.waits[2] * us, f.waits[3] * us,
           f.took * us, f.takes[1] * us, f.takes[2] * us, f.takes[3] * us
    from (
      select case when attempt_figures.by_kind then a.kind end as kind,
             count(*) as n, sum(a.waited)::bigint / count(*) as waited, sum(a.took)::bigint / count(*) as took,
             percentile_disc('{0.5,0.95,0.99}'::float8[]) within group (order by a.waited) as waits,
             percentile_disc('{0.5,0.95,0.99}'::float8[]) within group (order by a.took) as takes
      from stint.timings a
      where a.finished > moment - attempt_figures.span and a.finished <= moment and a.ran
        and (attempt_figures.queue is null or a.queue = attempt_figures.queue) and (attempt_figures.kind is null or a.kind = attempt_figures.kind)
        and (attempt_figures.tag is null or (select true from stint.job_tags t where t.tag = attempt_figures.tag and t.job = a.job))
      group by 1) f;
end
$$;
comment on function stint.attempt_figures is 'How the attempts of each kind went that ended in the last minute.';

-- How the work goes, all together or of one queue, kind or tag, now or at an
-- instant: what is due and not claimed, not yet due, running, and held by engines
-- that are dead; and how the attempts went that ended in the minute before, or the
-- time that is asked for.
create function stint.analytics(queue text default null, kind text default null, tag text default null, at timestamptz default null,
  span interval default '1 minute', waiting boolean default true,
  out moment timestamptz, out queued bigint, out postponed bigint, out running bigint, out zombies bigint, out ended bigint,
  out latency_mean interval, out latency_p50 interval, out latency_p95 interval, out latency_p99 interval,
  out execution_mean interval, out execution_p50 interval, out execution_p95 interval, out execution_p99 interval)
language plpgsql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  moment := coalesce(analytics.at, clock_timestamp());
  if waiting then
    select count(*) filter (where u.due <= moment), count(*) filter (where u.due <= moment is not true)
      into queued, postponed
      from stint.unclaimed u
      where (analytics.queue is null or u.queue = analytics.queue) and (analytics.kind is null or u.kind = analytics.kind)
        and (analytics.tag is null or (select true from stint.job_tags t where t.tag = analytics.tag and t.job = u.job));
  end if;
  select count(*) filter (where not c.zombie), count(*) filter (where c.zombie)
    into running, zombies
    from stint.claimed c
    where (analytics.queue is null or c.queue = analytics.queue) and (analytics.kind is null or c.kind = analytics.kind)
      and (analytics.tag is null or (select true from stint.job_tags t where t.tag = analytics.tag and t.job = c.job));
  select f.ended, f.latency_mean, f.latency_p50, f.latency_p95, f.latency_p99,
         f.execution_mean, f.execution_p50, f.execution_p95, f.execution_p99
    into ended, latency_mean, latency_p50, latency_p95, latency_p99, execution_mean, execution_p50, execution_p95, execution_p99
    from stint.attempt_figures(analytics.queue, analytics.kind, analytics.tag, moment, analytics.span, by_kind => false) f;
  ended := coalesce(ended, 0);
end
$$;
comment on function stint.analytics is 'What waits, what runs, and how attempts went in the last minute. Without waiting, queued and postponed are null: to count what waits costs as much as waits.';

-- The jobs that are due and not claimed, by what a field of theirs says: one with
-- a name, or a path into args or metadata. Null is for those that say nothing.
create function stint.due_by(field text, path text[] default null, queue text default null, kind text default null,
  tag text default null, at timestamptz default null)
returns table (value text, jobs bigint) language sql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
  select v.value, count(*)
  from stint.unclaimed u
  join stint.entries b on b.pos = u.contents
  cross join lateral (
    select case due_by.field
      when 'queue' then u.queue when 'kind' then u.kind when 'priority' then u.priority::text
      when 'urn' then b.urn when 'source' then b.source when 'correlation' then coalesce(b.correlation, u.job::text)
      when 'args' then b.args #>> due_by.path when 'metadata' then b.metadata #>> due_by.path end as value
    where due_by.field <> 'tag'
    union all
    select t from unnest(coalesce(nullif(b.tags, '{}'), array[null])) as t where due_by.field = 'tag') v
  where u.due <= (select coalesce(due_by.at, clock_timestamp())) -- asked for once, so that an index finds what is due
    and (due_by.queue is null or u.queue = due_by.queue) and (due_by.kind is null or u.kind = due_by.kind)
    and (due_by.tag is null or (select true from stint.job_tags t where t.tag = due_by.tag and t.job = u.job))
  group by v.value
$$;

-- A histogram of durations in microseconds: how many are below the first bound, from each
-- bound to the next, and from the last one on, without the zeros at its end. The bounds are
-- ten in each power of ten.
create function stint.histogram(p_durations bigint[]) returns bigint[] language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(coalesce(c.n, 0) order by i), '{}')
  from (select array_agg(v.bucket) as buckets, array_agg(v.n) as ns, max(v.bucket) as longest from (
    select width_bucket(d, '{
  100, 126, 158, 200, 251, 316, 398, 501, 631, 794,
  1000, 1259, 1585, 1995, 2512, 3162, 3981, 5012, 6310, 7943,
  10000, 12589, 15849, 19953, 25119, 31623, 39811, 50119, 63096, 79433,
  100000, 125893, 158489, 199526, 251189, 316228, 398107, 501187, 630957, 794328,
  1000000, 1258925, 1584893, 1995262, 2511886, 3162278, 3981072, 5011872, 6309573, 7943282,
  10000000, 12589254, 15848932, 19952623, 25118864, 31622777, 39810717, 50118723, 63095734, 79432823,
  100000000, 125892541, 158489319, 199526231, 251188643, 316227766, 398107171, 501187234, 630957344, 794328235,
  1000000000, 1258925412, 1584893192, 1995262315, 2511886432, 3162277660, 3981071706, 5011872336, 6309573445, 7943282347,
  10000000000, 12589254118, 15848931925, 19952623150, 25118864315, 31622776602, 39810717055, 50118723363, 63095734448, 79432823472,
  100000000000}'::bigint[]) as bucket, count(*) as n
    from unnest(p_durations) d group by 1) v) h
  cross join generate_series(0, h.longest) i left join unnest(h.buckets, h.ns) c(bucket, n) on c.bucket = i
$$;

-- The sum of histograms, which are an array in JSON.
create function stint.add_histograms(p_histograms jsonb) returns bigint[] language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(s.n order by s.bucket), '{}')
  from (
    select c.bucket, sum(c.n::bigint)::bigint as n
    from jsonb_array_elements(p_histograms) h cross join jsonb_array_elements_text(h) with ordinality c(n, bucket)
    group by 1) s
$$;

-- Sum attempts up by the minute: those that ended in a time, or those at some
-- positions that ended in it. Which one ended last is found by the greatest pair
-- of two numbers: an aggregate with an order would hold all of them in memory.
create function stint.sums(p_from timestamptz, p_to timestamptz, p_pos bigint[] default null)
returns setof stint.stats language plpgsql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  -- Two texts: with one, a plan that is kept would fit one of the two only.
  if p_pos is null then
    return query
      select 1::smallint, date_trunc('minute', a.finished at time zone 'UTC') at time zone 'UTC', a.kind, a.queue, a.outcome,
             count(*), count(a.took), coalesce(sum(a.took), 0)::bigint, min(a.took), max(a.took),
             (max(array[(extract(epoch from a.finished) * 1000000)::bigint, a.took]) filter (where a.ran))[2], max(a.finished) filter (where a.ran),
             coalesce(sum(a.waited), 0)::bigint,
             stint.histogram(array_agg(a.took) filter (where a.ran)), stint.histogram(array_agg(a.waited) filter (where a.ran))
      from stint.timings a where a.finished >= p_from and a.finished < p_to
      group by 2, 3, 4, 5;
  else
    return query
      select 1::smallint, date_trunc('minute', a.finished at time zone 'UTC') at time zone 'UTC', a.kind, a.queue, a.outcome,
             count(*), count(a.took), coalesce(sum(a.took), 0)::bigint, min(a.took), max(a.took),
             (max(array[(extract(epoch from a.finished) * 1000000)::bigint, a.took]) filter (where a.ran))[2], max(a.finished) filter (where a.ran),
             coalesce(sum(a.waited), 0)::bigint,
             stint.histogram(array_agg(a.took) filter (where a.ran)), stint.histogram(array_agg(a.waited) filter (where a.ran))
      from stint.timings a where a.pos = any (p_pos) and a.finished >= p_from and a.finished < p_to
      group by 2, 3, 4, 5;
  end if;
end
$$;

-- The first minute that is told by itself: the one that holds the instant two days
-- ago. A reader has a snapshot before it reads the clock, so that what is gone
-- from it is not told either.
create function stint.first_minute() returns timestamptz language sql
set search_path = pg_catalog, pg_temp
as $$ select date_trunc('minute', clock_timestamp() - interval '2 days') $$;

-- Add sums to those that are there, in the order of their key. The executions are
-- read once, for the minutes and for the hours.
create function stint.add_sums(p_from timestamptz, p_to timestamptz, p_pos bigint[] default null) returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  fresh  stint.stats[] := array(select m from stint.sums(p_from, p_to, p_pos) m);
  oldest timestamptz := stint.first_minute();
begin
  insert into stint.stats as s
    select * from unnest(fresh) m where m.start >= oldest
    union all
    select 60, date_trunc('hour', m.start at time zone 'UTC') at time zone 'UTC', m.kind, m.queue, m.outcome,
           sum(m.n), sum(m.ran), sum(m.total), min(m.fastest), max(m.longest),
           (array_agg(m.last order by m.last_at desc nulls last, m.last desc))[1], max(m.last_at), sum(m.waited),
           stint.add_histograms(jsonb_agg(m.took_by)), stint.add_histograms(jsonb_agg(m.waited_by))
    from unnest(fresh) m group by 2, 3, 4, 5
    order by 1, 2, 3, 4, 5
  on conflict (minutes, start, kind, queue, outcome) do update set
    n = s.n + excluded.n, ran = s.ran + excluded.ran, total = s.total + excluded.total, waited = s.waited + excluded.waited,
    fastest = least(s.fastest, excluded.fastest), longest = greatest(s.longest, excluded.longest),
    last = case when s.last_at is null or (excluded.last_at, excluded.last) > (s.last_at, s.last) then excluded.last else s.last end,
    last_at = greatest(s.last_at, excluded.last_at),
    took_by = stint.add_histograms(jsonb_build_array(s.took_by, excluded.took_by)),
    waited_by = stint.add_histograms(jsonb_build_array(s.waited_by, excluded.waited_by));
end
$$;

-- How far the sums stay behind the clock: what is older when it is recorded is
-- added by the call that records it.
create function stint.sum_lag() returns interval language sql immutable parallel safe
as $$ select interval '1 minute' $$;

-- Take the sums a step further; the answer is whether there is more to do.
--
-- A time may be summed up when nothing can be recorded in it any more, and when
-- that is must not depend on how long a transaction takes. So first it is said how
-- far to go: to a while ago. A call that records draws a transaction number and
-- then reads the clock, and what ended longer before that is added by itself
-- (sum_late). Here it is the other way round, the clock and then a
-- number: so a call with a higher number records nothing before the aim that
-- is not its own to add. And when all with a lower number have ended, which is
-- seen at a later call, what they recorded is seen too.
--
-- A call that deletes, or records late, waits for a step. How much there is to read of
-- a time is not known before it was read, so a step is done in slices, which grow
-- while they are quick, and ends with the first that took it beyond a second.
-- Minutes that are not told any more go with it, so many at a time.
create function stint.sum_up(p_step interval default '10 minutes') returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  clock timestamptz := clock_timestamp();
  m     stint.summed;
  goal  timestamptz;
  upto  timestamptz;
  slice interval := interval '10 seconds';
  began timestamptz;
  first timestamptz := stint.first_minute();
  many  constant integer := 10000; -- sums of minutes that go at a time
  gone  integer;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'stint works in read committed transactions only' using errcode = 'ST001';
  end if;
  select * into m from stint.summed for update skip locked; -- draws a number
  if not found then
    return false; -- another session does it
  end if;
  -- No session changes a sum without this lock, so rows stay where they are found.
  delete from stint.stats s where s.ctid = any (array(
    select o.ctid from stint.stats o where o.minutes = 1 and o.start < first order by o.minutes, o.start limit many));
  get diagnostics gone = row_count;
  -- A number that is not below this one's comes from another cluster, whose dump
  -- this is: none of those is left.
  if m.aim > m.until and (pg_snapshot_xmin(pg_current_snapshot()) > m.xid or m.xid >= pg_current_xact_id()) then
    goal := least(m.aim, m.until + p_step);
    loop
      began := clock_timestamp();
      upto := least(goal, m.until + slice);
      perform stint.add_sums(m.until, upto); -- a statement of its own: its snapshot sees what those recorded
      m.until := upto;
      exit when upto = goal or clock_timestamp() > clock + interval '1 second';
      if clock_timestamp() < began + interval '200 milliseconds' then
        slice := 2 * slice;
      end if;
    end loop;
    update stint.summed set until = upto;
  end if;
  if m.aim > m.until then
    -- Asked again at once only if something was done.
    return upto is not null or gone = many;
  end if;
  if clock - stint.sum_lag() > m.until then
    update stint.summed set aim = clock - stint.sum_lag(), xid = pg_current_xact_id();
  end if;
  return gone = many;
end
$$;

-- Add attempts of a time that is summed up already. It waits for the session that is
-- summing up: then it is known how far that goes.
create function stint.sum_late(p_pos bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  upto timestamptz;
begin
  select m.until into upto from stint.summed m for share;
  perform stint.add_sums('-infinity', upto, p_pos);
end
$$;

-- Add the attempts of jobs that are about to be deleted, where they are not in the
-- sums yet. It is called before executions are deleted, in the same transaction.
create function stint.sum_gone(p_jobs bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  upto timestamptz;
begin
  select m.until into upto from stint.summed m for share;
  perform stint.add_sums(upto, 'infinity', array(
    select x.pos from stint.executions x where x.pos = any (p_jobs) and x.finished >= upto
    union
    select x.pos from stint.executions x where x.job = any (p_jobs) and x.finished >= upto));
end
$$;

-- How many attempts are not in the sums yet, up to so many.
create function stint.unsummed(most integer) returns integer language sql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_indexscan = off set enable_indexonlyscan = off set jit = off
as $$
  select count(*)::integer from (
    select from stint.executions x
    where x.finished >= (select m.until from stint.summed m) and (x.slot > 0 or x.outcome = 5) limit unsummed.most) x
$$;

-- How attempts went, by the hour: the sums, and what is not in them yet, which
-- comes by the minute. So an hour may come several times.
create view stint.stats_hours as
select s.start as hour, s.kind, s.queue, s.outcome, s.n, s.ran, s.total, s.fastest, s.longest, s.last, s.last_at, s.waited
from stint.stats s where s.minutes = 60
union all
select timezone('UTC', date_trunc('hour', timezone('UTC', s.start))), s.kind, s.queue, s.outcome,
       s.n, s.ran, s.total, s.fastest, s.longest, s.last, s.last_at, s.waited
from stint.summed m cross join lateral stint.sums(m.until, 'infinity') s;

-- How attempts went, of each kind: what people look at. Durations are
-- microseconds.
create view stint.kind_stats as
select kind, sum(n)::bigint as attempts, coalesce(sum(n) filter (where outcome = 1), 0)::bigint as succeeded,
       coalesce(sum(n) filter (where outcome = 2), 0)::bigint as failed, coalesce(sum(n) filter (where outcome = 5), 0)::bigint as lost,
       (array_agg(last order by last_at desc nulls last, last desc))[1] as last, (sum(total) / nullif(sum(ran), 0))::bigint as mean,
       min(fastest) as fastest, max(longest) as longest, sum(total)::bigint as total, (sum(waited) / nullif(sum(ran), 0))::bigint as latency,
       max(last_at) as last_at
from stint.stats_hours
group by kind;

comment on column stint.stats_hours.hour       is 'its beginning';
comment on column stint.stats_hours.kind       is 'what was done';
comment on column stint.stats_hours.queue      is 'where it was';
comment on column stint.stats_hours.outcome    is 'how the attempts ended: see executions';
comment on column stint.stats_hours.n          is 'attempts that began';
comment on column stint.stats_hours.ran        is 'those of them that were not lost; the following is about these';
comment on column stint.stats_hours.total      is 'how long they took, all together, in microseconds';
comment on column stint.stats_hours.fastest    is 'how long the fastest took';
comment on column stint.stats_hours.longest    is 'how long the longest took';
comment on column stint.stats_hours.last       is 'how long the one took that ended last';
comment on column stint.stats_hours.last_at    is 'when that one ended';
comment on column stint.stats_hours.waited     is 'from when they were due to their starts, all together';
comment on column stint.kind_stats.kind        is 'what was done';
comment on column stint.kind_stats.attempts    is 'how many began';
comment on column stint.kind_stats.succeeded   is 'how many completed their job';
comment on column stint.kind_stats.failed      is 'how many failed, whether the job was tried again or not';
comment on column stint.kind_stats.lost        is 'how many were lost with their engine';
comment on column stint.kind_stats.last        is 'how long the one took that ended last, in microseconds';
comment on column stint.kind_stats.mean        is 'how long they took on average';
comment on column stint.kind_stats.fastest     is 'how long the fastest took';
comment on column stint.kind_stats.longest     is 'how long the longest took';
comment on column stint.kind_stats.total       is 'how long they took, all together';
comment on column stint.kind_stats.latency     is 'how long they were due before they started, on average';
comment on column stint.kind_stats.last_at     is 'when the last one ended';
