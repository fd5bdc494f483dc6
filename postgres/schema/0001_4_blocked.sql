-- stint: jobs that are blocked, and what ends that. Whoever changes something that somebody may
-- wait for leaves a note, and so does who begins to wait. A promotion looks at a note when its
-- transaction has committed, in a later statement than the one that reads it: of two who did not
-- see each other, the later note finds both.

-- Note that something of jobs has changed. A note of many costs less than many notes.
create function stint.note(p_jobs bigint[], p_flow bigint default null) returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_jobs) > 0 then
    insert into stint.notes (jobs, flow)
      select array_agg(j order by j), p_flow from unnest(p_jobs) with ordinality as u(j, i) group by (i - 1) / 200;
  end if;
end
$$;

-- How a job ended: its final outcome, or null while it has not. One that was deleted counts as
-- cancelled: it can no longer do what somebody waits for. A table of one row, without settings of its own, so that it becomes a
-- part of the statement that asks.
create function stint.end_of(p_job bigint) returns table (outcome smallint) language sql stable rows 1
as $$
  select coalesce(
    (select x.outcome from stint.executions x where x.pos = p_job and x.job is null and x.final),
    (select x.outcome from stint.executions x where x.job = p_job and x.final),
    case when not exists (select from stint.entries e where e.pos = p_job) then 6::smallint end)
$$;

-- The same for those that ask about one job.
create function stint.ended(p_job bigint) returns smallint language sql stable
as $$ select o.outcome from stint.end_of(p_job) as o $$;

-- What the end of a parent means to a child that wants something of it, or of a job to its flow
-- (wants is null): 0 it is as it should be, 1 the child is skipped, 2 it is cancelled; the flow failed.
-- Of several the highest counts, so the order in which parents end does not.
create function stint.verdict(wants smallint, outcome smallint) returns smallint language sql immutable parallel safe
as $$
  select case when outcome = 8 then case when wants is null then 0 else 1 end
              when wants = 3 then 0
              when wants = 2 then case when outcome = 1 then 1 else 0 end
              when outcome = 1 then 0 else 2 end::smallint
$$;

-- Look at jobs that wait for others, and whose rows are locked: which of those that each needs
-- has not ended? It watches the newest of these. When there is none it begins, is skipped or
-- cancelled, and a flow ends. The answer is how many began, and the flows that could end but for somebody who
-- may be adding to them. So many parents are looked at in one call that it takes some milliseconds; the watch moves
-- on, and a note has it looked at again.
create function stint.decide(p_jobs bigint[], p_clock timestamptz, out begun bigint, out unsure bigint[]) language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  look   constant integer := 10000;
  closed bigint[]; -- flows to which nobody can add meanwhile
  noted  bigint[];
begin
  select coalesce(array_agg(l.job), '{}') into closed
    from (select w.job from stint.waiting w where w.job = any (p_jobs) and exists (select from stint.flows f where f.flow = w.job)
          order by w.job for update skip locked) l;
  with looked as materialized (
    -- Of each only those are looked at that are not older than the next one.
    select w.job, false as flow, w.watch, x.next, p.*
      from stint.waiting w
      left join lateral (
        select l.parent as next
        from (select n.parent from stint.needs n where n.child = w.job and n.parent <= w.watch order by n.child desc, n.parent desc limit look) l
        cross join lateral stint.end_of(l.parent) as o where o.outcome is null limit 1) x on true
      cross join lateral (
        select min(l.parent) as lowest, count(*) as n, max(array[stint.verdict(l.wants, o.outcome), l.parent]) as worst
        from (select n.parent, n.wants from stint.needs n
              where n.child = w.job and n.parent <= w.watch and n.parent > coalesce(x.next, 0) order by n.child desc, n.parent desc limit look) l
        cross join lateral stint.end_of(l.parent) as o) p
      where w.job = any (p_jobs) and not exists (select from stint.flows f where f.flow = w.job)
    union all
    select w.job, true, w.watch, x.next, p.*
      from stint.waiting w
      left join lateral (
        select l.pos as next
        from (select e.pos from stint.entries e where e.flow = w.job and e.pos <= w.watch order by e.flow desc, e.pos desc limit look) l
        cross join lateral stint.end_of(l.pos) as o where o.outcome is null limit 1) x on true
      cross join lateral (
        select min(l.pos), count(*), max(array[stint.verdict(null, o.outcome), l.pos]) filter (where stint.verdict(null, o.outcome) > 0
                 and not exists (select from stint.entries r where r.recovered = l.pos and r.flow = w.job))
        from (select e.pos from stint.entries e
              where e.flow = w.job and e.pos <= w.watch and e.pos > coalesce(x.next, 0) order by e.flow desc, e.pos desc limit look) l
        cross join lateral stint.end_of(l.pos) as o) p
      where w.job = any (p_jobs) and exists (select from stint.flows f where f.flow = w.job)
  ), judged as materialized (
    select l.job, l.flow, l.watch,
           case when l.next is not null then l.next when l.n = look then l.lowest - 1 end as next,
           greatest(w.verdict, coalesce(l.worst[1], 0)) as verdict,
           case when l.worst[1] > w.verdict then l.worst[2] else w.cause end as cause
    from looked l join stint.waiting w on w.job = l.job
    -- A flow does not end while somebody adds to it, or before what was added was looked at.
    where not (l.flow and l.next is null and l.n < look
               and (l.job <> all (closed) or exists (select from stint.notes t where t.flow = l.job)))
  ), moved as (
    update stint.waiting w set watch = j.next, verdict = j.verdict, cause = j.cause
      from judged j where w.job = j.job and j.next is not null returning w.job, j.watch is distinct from j.next as anew
  ), later as ( -- its time has not come
    update stint.waiting w set why = 'scheduled', due = e.due, watch = null, verdict = null, cause = null
      from judged j join stint.entries e on e.pos = j.job
      where w.job = j.job and j.next is null and not j.flow and j.verdict = 0 and e.due > p_clock returning w.job
  ), over as (
    delete from stint.waiting w using judged j join stint.entries e on e.pos = j.job
      where w.job = j.job and j.next is null and (j.flow or j.verdict > 0 or e.due is null or e.due <= p_clock)
      returning w.*, j.flow as is_flow, j.verdict as decided, j.cause as why_so
  ), begun as (
    insert into stint.entries (lane, job, body, attempt, priority, losses, suspect, queue, kind, faulty, limits)
      select stint.lane(o.queue, o.priority, case when o.limits is null then 'normal' else stint.part_of(o.job) end, '', o.limits), o.job, o.body, o.attempt, o.priority, o.losses, o.suspect, o.queue, o.kind, o.faulty, o.limits
      from over o where not o.is_flow and o.decided = 0 order by o.job returning job
  ), ended as (
    insert into stint.executions (pos, nonce, engine, started, finished, job, attempt, slot, outcome, final, reason)
      select o.job, 0, 0, p_clock, p_clock, null, 1, 0, f.outcome, true, stint.reason_of(o.job, f.outcome, o.why_so)
      from over o cross join lateral (
        select case when o.is_flow and exists (select from stint.cancellations c where c.job = o.job) then 6
                    when o.is_flow then case o.decided when 0 then 1 else 2 end
                    when o.decided = 1 then 8 else 6 end::smallint as outcome) f
      where o.is_flow or o.decided > 0 returning pos
  ), unmarked as (
    delete from stint.cancellations c using ended e where c.job = e.pos
  )
  select (select count(*) from begun) + (select count(*) from later),
         array(select m.job from moved m where m.anew) || array(select e.pos from ended e),
         array(select l.job from looked l where l.flow and l.next is null and l.n < look and l.job <> all (closed))
    into begun, noted, unsure;
  perform stint.note(noted);
end
$$;

-- Why a job of a flow did not begin, or a flow did not complete.
create function stint.reason_of(p_job bigint, p_outcome smallint, p_cause bigint) returns text language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when p_outcome = 1 then null
              when exists (select from stint.cancellations c where c.job = p_job) then stint.why_cancelled(p_job)
              else format(case when exists (select from stint.flows f where f.flow = p_job) then 'job %s (%s) %s' else 'needs job %s (%s), which %s' end,
                p_cause, coalesce((select e.kind::text from stint.entries e where e.pos = p_cause), 'deleted'),
                case stint.ended(p_cause) when 1 then 'completed' when 8 then 'was skipped' when 6 then 'was cancelled' else 'failed' end) end
$$;

-- Look at notes above p_note, of about p_limit jobs: wake those that wait for a signal which is
-- there, and decide about those that wait for jobs. A row that somebody else has in hand is
-- noted again. The answer is the last note, and how many jobs began.
create function stint.look_at_notes(p_note bigint, p_limit integer, p_due timestamptz, out noted bigint, out begun bigint) language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  notes   bigint[];
  seen    bigint[]; -- the jobs that were noted
  afters  bigint[]; -- who watches one is looked at above this
  flows   bigint[]; -- to which jobs were added
  newest  bigint[]; -- of each of these, the last that was added
  watched bigint[]; -- of who watches one of them, whom
  others  bigint[]; -- and who
  mine    bigint[];
  unsure  bigint[]; -- flows to which somebody may be adding
begin
  begun := 0;
  select array_agg(l.n), max(l.n) into notes, noted
    from (select t.n, sum(cardinality(t.jobs)) over (order by t.n) - cardinality(t.jobs) as before
          from (select o.n, o.jobs from stint.notes o where o.n > p_note order by o.n limit p_limit for update skip locked) t) l
    where l.before < p_limit;
  if notes is null then
    noted := p_note;
    return;
  end if;
  select array_agg(j.job order by j.job), array_agg(j.after order by j.job) into seen, afters
    from (select u.job, min(case when u.i = 1 then t.after else 0 end) as after
          from stint.notes t cross join lateral unnest(t.jobs) with ordinality as u(job, i) where t.n = any (notes) group by u.job) j;
  select array_agg(a.flow), array_agg(a.newest) into flows, newest
    from (select t.flow, max(t.jobs[cardinality(t.jobs)]) as newest from stint.notes t
          where t.n = any (notes) and t.flow is not null group by t.flow) a;
  delete from stint.notes t where t.n = any (notes);
  select array_agg(c.parent), array_agg(c.job) into watched, others
    from (select s.job as parent, w.job from unnest(seen, afters) as s(job, after)
          cross join lateral (select v.job from stint.waiting v where v.watch = s.job and v.job > s.after order by v.watch, v.job limit p_limit) w
          order by s.job, w.job limit p_limit) c;
  select coalesce(array_agg(l.job), '{}') into mine
    from (select w.job from stint.waiting w where w.job = any (seen || others || flows) order by w.job for no key update skip locked) l;
  -- Others have these in hand, and perhaps have not seen what was noted.
  perform stint.note(array(
    select w.job from stint.waiting w where w.job = any (seen || others) and w.why = 'blocked' and w.job <> all (mine)));
  insert into stint.notes (jobs, flow)
    select array[a.newest], a.flow from unnest(flows, newest) as a(flow, newest)
    where a.flow <> all (mine) and exists (select from stint.waiting w where w.job = a.flow);
  if cardinality(others) = p_limit then
    insert into stint.notes (jobs, after)
      select array_agg(s order by s), others[p_limit] from unnest(seen) as s where s >= watched[p_limit];
  end if;

  update stint.waiting w set due = p_due
    where w.due > p_due and w.job = any (mine) and w.awaits is not null and exists (
      select from jsonb_each_text(w.awaits) as a(step, name)
      where exists (select from stint.signals s where s.job = w.job and s.name = a.name and not exists (select from stint.steps t where t.signal = s.n))
         or exists (select from stint.steps t where t.job = w.job and t.name = a.step and t.result is not null));
  -- Of a job that was deleted before its signal was committed.
  delete from stint.signals s
    where s.job = any (array(select j from unnest(seen) as j where not exists (select from stint.entries e where e.pos = j)));

  -- A flow watches what was added last, and looks at all of its jobs again: what was added may take the place of one that
  -- failed. If it is being cancelled, so is that.
  update stint.waiting w set watch = greatest(w.watch, a.newest), verdict = 0, cause = null
    from unnest(flows, newest) as a(flow, newest) where w.job = a.flow and w.job = any (mine);
  select d.begun, d.unsure into begun, unsure
    from stint.decide(array(select w.job from stint.waiting w where w.job = any (mine) and w.verdict is not null), p_due) as d;
  -- Who adds leaves a note as well, so these wait for the next look from the beginning: no number is above noted.
  if cardinality(unsure) > 0 then
    insert into stint.notes (n, jobs) values (noted, unsure);
  end if;
end
$$;
