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
-- cancelled: it can no longer do what somebody waits for. Without settings of its own, so that it becomes a part of the
-- statement that asks.
create function stint.ended(p_job bigint) returns smallint language sql stable
as $$
  select coalesce(
    (select x.outcome from stint.executions x where x.pos = p_job and x.job is null and x.final),
    (select x.outcome from stint.executions x where x.job = p_job and x.final),
    case when not exists (select from stint.entries e where e.pos = p_job) then 6::smallint end)
$$;

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
-- cancelled, and a flow ends. The answer is how many began. So many parents are looked at in
-- one call that it takes some milliseconds; the watch moves on, and a note has it looked at again.
create function stint.decide(p_jobs bigint[], p_clock timestamptz) returns bigint language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  look   constant integer := 10000;
  closed bigint[]; -- flows to which nobody can add meanwhile
  noted  bigint[];
  begun  bigint;
begin
  select coalesce(array_agg(l.job), '{}') into closed
    from (select w.job from stint.waiting w where w.job = any (p_jobs) and exists (select from stint.flows f where f.flow = w.job)
          order by w.job for update skip locked) l;
  with looked as materialized (
    select w.job, false as flow, w.watch, p.*
      from stint.waiting w
      cross join lateral (
        select max(l.parent) filter (where l.outcome is null) as next, min(l.parent) as lowest, count(*) as n,
               max(array[stint.verdict(l.wants, l.outcome), l.parent]) filter (where l.outcome is not null) as worst
        from (select n.parent, n.wants, stint.ended(n.parent) as outcome from stint.needs n
              where n.child = w.job and n.parent <= w.watch order by n.child desc, n.parent desc limit look) l) p
      where w.job = any (p_jobs) and not exists (select from stint.flows f where f.flow = w.job)
    union all
    select w.job, true, w.watch, p.*
      from stint.waiting w
      cross join lateral (
        select max(l.pos) filter (where l.outcome is null), min(l.pos), count(*),
               max(array[stint.verdict(null, l.outcome), l.pos]) filter (where l.outcome is not null and stint.verdict(null, l.outcome) > 0
                 and not exists (select from stint.entries r where r.recovered = l.pos and r.flow = w.job))
        from (select e.pos, stint.ended(e.pos) as outcome from stint.entries e
              where e.flow = w.job and e.pos <= w.watch order by e.flow desc, e.pos desc limit look) l) p
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
      select stint.lane(o.queue, o.priority, 'normal', '', o.limits), o.job, o.body, o.attempt, o.priority, o.losses, o.suspect, o.queue, o.kind, o.faulty, o.limits
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
         array(select m.job from moved m where m.anew) || array(select l.job from looked l where l.flow and l.next is null and l.n < look and l.job <> all (closed)) || array(select e.pos from ended e)
    into begun, noted;
  perform stint.note(noted);
  return begun;
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
         or exists (select from stint.steps t where t.job = w.job and t.name = a.step));
  -- Of a job that was deleted before its signal was committed.
  delete from stint.signals s
    where s.job = any (array(select j from unnest(seen) as j where not exists (select from stint.entries e where e.pos = j)));

  -- A flow watches what was added last, and looks at all of its jobs again: what was added may take the place of one that
  -- failed. If it is being cancelled, so is that.
  update stint.waiting w set watch = greatest(w.watch, a.newest), verdict = 0, cause = null
    from unnest(flows, newest) as a(flow, newest) where w.job = a.flow and w.job = any (mine);
  begun := stint.decide(array(select w.job from stint.waiting w where w.job = any (mine) and w.verdict is not null), p_due);
end
$$;

-- Mark the jobs of flows that are being cancelled, the newest first, up to p_limit of each. The
-- flows end when these have.
create function stint.cancel_flows(p_limit integer) returns void language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  f      record;
  marked bigint;
begin
  for f in select w.job, c.why from stint.cancellations c join stint.waiting w on w.job = c.job
           where w.verdict < 3 and exists (select from stint.flows g where g.flow = w.job) order by w.job for no key update of w skip locked loop
    insert into stint.cancellations (job, why)
      select e.pos, format('its flow %s was cancelled', f.job) || coalesce(': ' || nullif(f.why, ''), '') from stint.entries e
      where e.flow = f.job and stint.ended(e.pos) is null and not exists (select from stint.cancellations c where c.job = e.pos)
      order by e.flow desc, e.pos desc limit p_limit
      on conflict do nothing;
    get diagnostics marked = row_count;
    if marked < p_limit then
      update stint.waiting w set verdict = 3 where w.job = f.job;
      perform stint.note(array[f.job]);
    end if;
  end loop;
end
$$;

-- Whether a job belongs to a flow that has not ended.
create function stint.in_open_flow(p_job bigint) returns boolean language sql stable
as $$
  select exists (select from stint.entries e join stint.waiting w on w.job = e.flow where e.pos = p_job)
$$;

-- Have a job that was recovered take the place of the old one in their flow: it has its name, and
-- who still waits for the old one waits for it.
create function stint.take_place(p_flow bigint, p_old bigint, p_new bigint) returns void language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
begin
  update stint.nodes n set job = p_new where n.job = p_old;
  insert into stint.needs (child, parent, wants) select p_new, n.parent, n.wants from stint.needs n where n.child = p_old;
  with children as (
    select w.job from stint.entries e join stint.waiting w on w.job = e.pos
    where e.flow = p_flow and w.verdict is not null and exists (select from stint.needs n where n.child = w.job and n.parent = p_old)
    order by w.job for update of w
  ), bent as (
    update stint.needs n set parent = p_new from children c where n.child = c.job and n.parent = p_old
  )
  update stint.waiting w set watch = greatest(w.watch, p_new), verdict = 0, cause = null from children c where w.job = c.job;
  perform stint.note(array[p_new], p_flow);
end
$$;

-- Store jobs of flows, all or none: a flow with its jobs, or jobs that are added to one. Each
-- comes as stint writes it: with its lane, and with the places in the batch, from 0, of its flow and of
-- what it needs, or their ids. The flow that comes first may have an idempotency key or a unique key; a job that
-- is added under a name which the flow has is that job. There is an answer for each, in order.
create function stint.store_flow(p_jobs jsonb, p_known bigint[], p_bodies text[], p_own boolean)
returns table (id bigint, duplicate boolean, same boolean, fresh boolean, state text, old bigint) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
#variable_conflict use_column
declare
  clock  timestamptz := clock_timestamp();
  n      integer := jsonb_array_length(p_jobs);
  first  jsonb := p_jobs -> 0;
  into_flow bigint := (p_jobs -> 0 ->> 'flow')::bigint; -- to which the jobs are added; null for a new one
  drawn  bigint[] := array(select nextval('stint.positions') from generate_series(1, n));
  there  integer[] := '{}'; -- places of those that are there
  k      record;
  u      record;
begin
  if first ->> 'key' is not null then
    select * into k from stint.take_keys(array[first ->> 'key'], array[stint.fingerprint(first ->> 'kind', first -> 'args')], array[drawn[1]]);
    if k.job <> drawn[1] then
      return query select k.job, true, k.same, k.fresh, ''::text, 0::bigint union all select 0, true, true, false, '', 0 from generate_series(2, n);
      return;
    end if;
  end if;
  if first ->> 'unique' is not null then
    select * into u from stint.take_unique(array[first ->> 'unique'], array[first ->> 'kind'], array[first -> 'args'], array[first ->> 'key'], array[drawn[1]], p_own);
    if u.job <> drawn[1] then
      return query select u.job, true, true, false, coalesce(u.state, ''), coalesce(u.old, 0) union all select 0, true, true, false, '', 0 from generate_series(2, n);
      return;
    end if;
  end if;
  if into_flow is not null then
    perform from stint.waiting w where w.job = into_flow and exists (select from stint.flows f where f.flow = w.job) for key share;
    if not found and not exists (select from stint.flows f where f.flow = into_flow) then
      raise exception 'stint: there is no flow %', into_flow using errcode = 'ST009';
    elsif not found or exists (select from stint.cancellations c where c.job = into_flow) then
      raise exception 'stint: the flow % has ended', into_flow using errcode = 'ST010';
    end if;
    for k in select e.i, d.job from jsonb_array_elements(p_jobs) with ordinality as e(j, i)
             join stint.nodes d on d.flow = into_flow and d.name = e.j ->> 'name' where e.j -> 'within' is null loop
      drawn[k.i] := k.job;
      there := there || k.i::integer;
    end loop;
  end if;

  with dict as materialized (
    select array_agg(p.id order by d.i) as ids, array_agg(case when p.id is null then d.body::jsonb end order by d.i) as bodies
    from unnest(p_known, p_bodies) with ordinality as d(id, body, i) left join stint.policies p on p.id = d.id
  ), job as materialized (
    select drawn[e.i] as id, coalesce(drawn[r.within + 1], r.flow) as member_of, r.*, d.ids[r.policy] as known, d.bodies[r.policy] as retry,
           case when r.at > clock then r.at when r.delay > 0 then clock + r.delay * interval '1 microsecond' end as due
    from dict d cross join jsonb_array_elements(p_jobs) with ordinality as e(j, i)
    cross join lateral jsonb_to_record(e.j) as r(within integer, flow bigint, name text, root boolean, lane bigint, queue text, priority smallint, kind text, args jsonb,
      policy integer, timeout bigint, urn text, source text, metadata jsonb, max_losses smallint, correlation text, limits text, at timestamptz,
      delay bigint, tags text[], start_by timestamptz, start_within bigint, "unique" text, needs jsonb)
    where e.i <> all (there) order by e.i
  ), edge as materialized (
    select j.id as child, coalesce(drawn[(x.need ->> 0)::integer + 1], (x.need ->> 1)::bigint) as parent, x.need ->> 1 is not null as other, (x.need ->> 2)::smallint as wants
    from job j cross join lateral jsonb_array_elements(j.needs) as x(need)
  ), newest as materialized (
    select e.child as job, max(e.parent) as watch from edge e group by e.child
    union all
    select f.id, (select max(m.id) from job m where m.member_of = f.id) from job f where f.root
  ), body as (
    insert into stint.entries (pos, created, lane, queue, priority, kind, args, due, policy, retry, timeout, tags, urn, source, metadata, max_losses, correlation, limits, start_by, uniqueness, flow)
    select j.id, clock, case when j.due is null and w.job is null then j.lane else -1 end, j.queue, j.priority, j.kind, j.args, j.due, j.known, j.retry,
           j.timeout, j.tags, j.urn, j.source, j.metadata, j.max_losses, j.correlation, j.limits,
           case when j.start_by is not null then stint.start_by(j.start_by, j.due) else coalesce(j.due, clock) + j.start_within * interval '1 microsecond' end,
           j."unique", j.member_of
    from job j left join newest w on w.job = j.id order by j.id
  ), wait as (
    insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind, limits, watch, verdict)
    select j.id, case when w.job is null then j.due end, j.id, case when w.job is null then 'scheduled' else 'blocked' end, 1, j.priority, j.queue, j.kind, j.limits,
           w.watch, case when w.job is not null then 0 end
    from job j left join newest w on w.job = j.id where j.due is not null or w.job is not null
  ), label as (
    insert into stint.job_tags (tag, job) select unnest(j.tags), j.id from job j
  ), flow as (
    insert into stint.flows (flow) select j.id from job j where j.root
  ), named as (
    insert into stint.nodes (flow, name, job) select j.member_of, j.name, j.id from job j where j.name is not null
  ), need as (
    insert into stint.needs (child, parent, wants) select e.child, e.parent, e.wants from edge e on conflict do nothing
  ), noted as materialized (
    -- What is needed of others may have ended meanwhile, and what is empty ends.
    select e.child as job from edge e where e.other
    union
    select w.job from newest w where w.watch is null
  )
  select array(select e.parent from edge e where e.other) as others,
         array(select t.job from noted t order by t.job) as jobs,
         array(select j.id from job j where into_flow is not null and j.member_of = into_flow order by j.id) as added
    into k;
  select p into u from unnest(k.others) as p where not exists (
    select from stint.entries e where e.pos = p and e.job is null and (e.flow is not null or exists (select from stint.flows f where f.flow = p))) limit 1;
  if found then
    raise exception 'stint: no job of a flow has the id %, which is needed', u.p using errcode = 'ST009';
  end if;
  perform stint.note(k.jobs);
  perform stint.note(k.added, into_flow);
  return query select drawn[i], i = any (there), true, false, ''::text, 0::bigint from generate_series(1, n) as i;
end
$$;
revoke execute on function stint.store_flow from public;
