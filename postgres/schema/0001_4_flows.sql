-- stint: flows, which are graphs of jobs. What they wait for is in 0001_4_blocked.sql.

-- Mark the jobs of flows that are being cancelled, the newest first, so that none begins because those that it needs have ended: up
-- to p_limit of each. The flows end when these have.
create function stint.cancel_flows(p_limit integer) returns void language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  f    record;
  jobs bigint[];
begin
  for f in select w.job, w.seen, stint.why_with(c.job, c.why) as why, c.down_to from stint.cancellations c
           cross join lateral (
             select v.job, v.seen from stint.waiting v
             where v.job = c.job and (select g.flow from stint.flows g where g.flow = v.job) is not null for no key update skip locked) w
           where c.down_to is distinct from 0 order by w.job loop
    jobs := array(select e.pos from stint.entries e where e.flow = f.job and e.pos >= f.seen and e.pos < coalesce(f.down_to, 9223372036854775807)
                  order by e.flow desc, e.pos desc limit p_limit);
    insert into stint.cancellations (job, why)
      select j, f.why
      from unnest(jobs) as j cross join lateral stint.end_of(j) as o where o.outcome is null
      on conflict do nothing;
    update stint.cancellations c set down_to = case when cardinality(jobs) = p_limit then jobs[p_limit] else 0 end where c.job = f.job;
    if cardinality(jobs) < p_limit then
      perform stint.note(array[f.job]);
    end if;
  end loop;
end
$$;

-- Cancel flows whose time is over: up to p_limit, those first that are late for longest.
create function stint.cancel_late_flows(p_clock timestamptz, p_limit integer) returns void language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
begin
  with late as (
    update stint.flows f set deadline = null
      where f.flow = any (array(select l.flow from stint.flows l where l.deadline <= p_clock order by l.deadline, l.flow limit p_limit for no key update skip locked))
      returning f.flow
  )
  insert into stint.cancellations (job, why)
    select l.flow, 'it took longer than its timeout' from late l where (select o.outcome from stint.end_of(l.flow) as o) is null order by l.flow
    on conflict do nothing;
end
$$;

-- Mark what jobs have called that are cancelled, once for each: the last time is when such a job ends. There are as many as
-- a job has steps at most.
create function stint.cancel_calls(p_jobs bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  callers bigint[] := array(
    select c.job from stint.cancellations c
    where c.job = any (p_jobs) and c.down_to is null and exists (select from stint.entries e where e.flow = c.job)
      and not exists (select from stint.flows f where f.flow = c.job) order by c.job for no key update skip locked);
begin
  if cardinality(callers) > 0 then
    insert into stint.cancellations (job, why)
      select e.pos, stint.why_with(c.job, c.why)
      from stint.cancellations c join stint.entries e on e.flow = c.job cross join lateral stint.end_of(e.pos) as o
      where c.job = any (callers) and o.outcome is null order by e.pos
      on conflict do nothing;
    update stint.cancellations c set down_to = 0 where c.job = any (callers);
    perform pg_notify('stint', ''); -- who runs them stops them
  end if;
end
$$;

-- Whether a job belongs to a flow, or was called by a job, that has not ended.
create function stint.has_open_parent(p_job bigint) returns boolean language sql stable
as $$
  select exists (
    select from stint.entries e cross join lateral stint.end_of(e.flow) as o where e.pos = p_job and e.flow is not null and o.outcome is null)
$$;

-- Whether retention leaves a job: it goes after its flow, and when the job that called it has ended; and a flow goes after those that retry it.
create function stint.in_kept_flow(p_job bigint) returns boolean language sql stable
as $$
  select exists (select from stint.entries e join stint.flows f on f.flow = e.flow where e.pos = p_job)
      or exists (select from stint.entries r join stint.flows f on f.flow = r.pos where r.recovered = p_job)
      or stint.has_open_parent(p_job)
$$;

-- The jobs of a flow that has ended which a retry does again, in order, and the flow: those that did not complete, one that is named with
-- all that is in it and what depends on it, or all. Those that were skipped only if they need one of these.
create function stint.to_redo(p_flow bigint, p_job bigint, p_all boolean) returns bigint[] language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  named bigint[] := '{}';
  redo  bigint[];
begin
  if p_job <> p_flow then
    named := p_job || stint.jobs_within(p_job);
  end if;
  with recursive member as materialized (
    select e.pos as job, nullif(e.flow, p_flow) as flow, o.outcome
    from unnest(stint.jobs_within(p_flow)) as m(job) join stint.entries e on e.pos = m.job cross join lateral stint.end_of(e.pos) as o
  ), edge as materialized ( -- who is done again if another one is
    select n.parent, m.job, m.outcome <> 1 as always from member m join stint.needs n on n.child = m.job
    union all
    select m.job, m.flow, true from member m where m.flow is not null
  ), again as (
    select m.job, p_all or m.job = any (named) as whatever from member m where p_all or m.job = any (named) or m.outcome not in (1, 8)
    union
    select e.job, a.whatever from again a join edge e on e.parent = a.job where (a.whatever or e.always) and not p_all
  )
  select array_agg(distinct a.job) into redo from again a;
  return p_flow || redo;
end
$$;

-- The jobs of a flow, and of the flows within it, without those that others have taken the place of.
create function stint.jobs_within(p_flow bigint) returns bigint[] language sql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
  with recursive inside as (
    select m.pos, m.flow from stint.entries m
      where m.flow = p_flow and not exists (select from stint.entries r where r.recovered = m.pos and r.flow = m.flow)
    union
    select m.pos, m.flow from inside i join stint.flows f on f.flow = i.pos join stint.entries m on m.flow = f.flow
      where not exists (select from stint.entries r where r.recovered = m.pos and r.flow = m.flow)
  )
  select coalesce(array_agg(i.pos order by i.pos), '{}') from inside i
$$;

-- Have a job that was recovered take the place of the old one in their flow: it has its name, and who
-- needs the old one needs it.
create function stint.take_place(p_flow bigint, p_old bigint, p_new bigint) returns void language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  noted bigint[];
begin
  update stint.nodes n set job = p_new where n.job = p_old and n.flow = p_flow;
  with waits as (
    select w.job from stint.waiting w
    where w.verdict is not null and w.job in (select n.child from stint.needs n where n.parent = p_old) order by w.job for no key update
  ), again as ( -- all that it waits for is looked at anew
    update stint.waiting w set seen = 0, verdict = 0, cause = null from waits o where w.job = o.job returning w.job
  )
  select array_agg(a.job) into noted from again a;
  update stint.needs n set parent = p_new where n.parent = p_old;
  perform stint.note(noted);
  perform stint.note(array[0::bigint], p_flow);
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
  shared text;            -- the correlation id of jobs that have none of their own
  drawn  bigint[] := array(select nextval('stint.positions') from generate_series(1, n));
  there  boolean[] := array_fill(false, array[n]); -- which of them exist
  k      record;
  u      record;
begin
  -- What is in a flow, and what is needed, stands before.
  if exists (select from jsonb_array_elements(p_jobs) with ordinality as e(j, i)
             where (e.j ->> 'within')::bigint not between 0 and i - 2
                or exists (select from jsonb_array_elements(e.j -> 'needs') as x(need) where (x.need ->> 0)::bigint not between 0 and i - 2)) then
    raise exception 'stint: a job of a flow stands before the flow, or before what it needs' using errcode = '22023';
  end if;
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
  if (first ->> 'call')::boolean then
    if not exists (select from stint.entries e where e.pos = into_flow) then
      raise exception 'stint: there is no job %', into_flow using errcode = 'ST009';
    elsif stint.ended(into_flow) is not null or exists (select from stint.cancellations c where c.job = into_flow) then
      raise exception 'stint: job % has ended', into_flow using errcode = 'ST010';
    end if;
  elsif into_flow is not null then
    perform from stint.waiting w where w.job = into_flow and exists (select from stint.flows f where f.flow = w.job) for key share;
    if not found and not exists (select from stint.flows f where f.flow = into_flow) then
      raise exception 'stint: there is no flow %', into_flow using errcode = 'ST009';
    elsif not found or exists (select from stint.cancellations c where c.job = into_flow) then
      raise exception 'stint: the flow % has ended', into_flow using errcode = 'ST010';
    end if;
  end if;
  if into_flow is not null then
    for k in select e.i, d.job from jsonb_array_elements(p_jobs) with ordinality as e(j, i)
             join stint.nodes d on d.flow = into_flow and d.name = e.j ->> 'name' where e.j -> 'within' is null loop
      drawn[k.i] := k.job;
      there[k.i] := true;
    end loop;
    -- What is within a flow that is there is that, or nothing.
    if true = any (there) then
      for k in select e.i, (e.j ->> 'within')::integer + 1 as around, e.j ->> 'name' as name
               from jsonb_array_elements(p_jobs) with ordinality as e(j, i) where e.j ? 'within' order by e.i loop
        if there[k.around] then
          drawn[k.i] := coalesce((select d.job from stint.nodes d where d.flow = drawn[k.around] and d.name = k.name), drawn[k.around]);
          there[k.i] := true;
        end if;
      end loop;
    end if;
  end if;

  select coalesce(e.correlation, into_flow::text) into shared from stint.entries e where e.pos = into_flow;
  if into_flow is null then
    shared := coalesce(first ->> 'correlation', drawn[1]::text);
  end if;
  with dict as materialized (
    select array_agg(p.id order by d.i) as ids, array_agg(case when p.id is null then d.body::jsonb end order by d.i) as bodies
    from unnest(p_known, p_bodies) with ordinality as d(id, body, i) left join stint.policies p on p.id = d.id
  ), job as materialized (
    select drawn[e.i] as id, coalesce(drawn[r.within + 1], into_flow) as member_of, r.*, d.ids[r.policy] as known, d.bodies[r.policy] as retry,
           case when r.at > clock then r.at when r.delay > 0 then clock + r.delay * interval '1 microsecond' end as due
    from dict d cross join jsonb_array_elements(p_jobs) with ordinality as e(j, i)
    cross join lateral jsonb_to_record(e.j) as r(within integer, flow bigint, name text, root boolean, lane bigint, queue text, priority smallint, kind text, args jsonb,
      policy integer, timeout bigint, urn text, source text, metadata jsonb, max_losses smallint, correlation text, limits text, at timestamptz,
      delay bigint, tags text[], start_by timestamptz, start_within bigint, "unique" text, needs jsonb)
    where not there[e.i] order by e.i
  ), edge as materialized (
    select j.id as child, coalesce(drawn[(x.need ->> 0)::integer + 1], (x.need ->> 1)::bigint) as parent, x.need ->> 1 is not null or there[(x.need ->> 0)::integer + 1] as other, (x.need ->> 2)::smallint as wants
    from job j cross join lateral jsonb_array_elements(j.needs) as x(need)
  ), watched as materialized (
    select e.child as job, percentile_disc(0.75) within group (order by e.parent) as watch from edge e group by e.child
    union all
    select f.id, (select max(m.id) from job m where m.member_of = f.id) from job f where f.root
  ), body as (
    insert into stint.entries (pos, created, lane, queue, priority, kind, args, due, policy, retry, timeout, tags, urn, source, metadata, max_losses, correlation, limits, start_by, uniqueness, flow)
    select j.id, clock, case when j.due is null and w.job is null then j.lane else -1 end, j.queue, j.priority, j.kind, j.args, j.due, j.known, j.retry,
           j.timeout, j.tags, j.urn, j.source, j.metadata, j.max_losses, coalesce(j.correlation, case when j.id::text <> shared then shared end), j.limits,
           case when j.start_by is not null then stint.start_by(j.start_by, j.due) else coalesce(j.due, clock) + j.start_within * interval '1 microsecond' end,
           j."unique", j.member_of
    from job j left join watched w on w.job = j.id order by j.id
  ), wait as (
    insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind, limits, watch, verdict, seen)
    select j.id, case when w.job is null then j.due end, j.id, case when w.job is null then 'scheduled' else 'blocked' end, 1, j.priority, j.queue, j.kind, j.limits,
           w.watch, case when w.job is not null then 0 end, case when w.job is not null then 0 end
    from job j left join watched w on w.job = j.id where j.due is not null or w.job is not null
  ), label as (
    insert into stint.job_tags (tag, job) select unnest(j.tags), j.id from job j
  ), flow as (
    insert into stint.flows (flow, deadline) select j.id, clock + j.timeout * interval '1 millisecond' from job j where j.root
  ), named as (
    insert into stint.nodes (flow, name, job) select j.member_of, j.name, j.id from job j where j.name is not null
  ), need as (
    insert into stint.needs (child, parent, wants) select e.child, e.parent, e.wants from edge e on conflict do nothing
  ), noted as materialized (
    -- What is needed of others may have ended meanwhile, and what is empty ends.
    select e.child as job from edge e where e.other
    union
    select w.job from watched w where w.watch is null
  )
  select array(select e.parent from edge e where e.other) as others,
         array(select t.job from noted t order by t.job) as jobs,
         array(select j.id from job j where into_flow is not null and j.member_of = into_flow order by j.id) as added
    into k;
  select p into u from unnest(k.others) as p where (
    select e.pos from stint.entries e where e.pos = p and e.job is null and (e.flow is not null or (select f.flow from stint.flows f where f.flow = p) is not null)) is null limit 1;
  if found then
    raise exception 'stint: no job of a flow has the id %, which is needed', u.p using errcode = 'ST009';
  end if;
  with recursive around(flow) as (
    select into_flow union select e.flow from around a join stint.entries e on e.pos = a.flow
  )
  select a.flow into u from around a where a.flow = any (k.others) limit 1;
  if found then
    raise exception 'stint: a job needs the flow % that it is in, which waits for it', u.flow using errcode = 'ST012';
  end if;
  perform stint.note(k.jobs);
  if (first ->> 'call')::boolean is not true then
    perform stint.note(k.added, into_flow);
  end if;
  return query select drawn[i], there[i], true, false, ''::text, 0::bigint from generate_series(1, n) as i;
end
$$;
revoke execute on function stint.store_flow from public;

-- Enqueue a flow from any language, in the caller's own transaction, or add jobs to one that is open:
--
--   select stint.enqueue_flow('{"kind": "import", "jobs": [
--     {"name": "fetch", "kind": "fetch", "args": {"day": "2026-03-01"}, "retry": "fixed:3:10s"},
--     {"kind": "sum", "needs": ["fetch"]}, {"kind": "alarm", "needs_failure": ["fetch"]}]}');
--
-- A job has the options of the HTTP API, and what it does not say is what an engine declared for its kind. It needs others
-- that stand before it in its flow, or in one around that, by their names, and any job of a flow by its id. What has jobs is a
-- flow. The answer has the id of the flow, and those of the jobs by name: {"id": 41, "jobs": {"fetch": 42}}. If another flow
-- holds the key, that has its id and says duplicate, and nothing is stored. With the owner's rights, as enqueue.
create function stint.enqueue_flow(flow jsonb, quiet boolean default false) returns jsonb language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  return stint.store_said('stint.enqueue_flow', coalesce(enqueue_flow.flow, 'null'), null, enqueue_flow.flow -> 'jobs', enqueue_flow.quiet);
end
$$;
revoke execute on function stint.enqueue_flow from public;
comment on function stint.enqueue_flow is 'Enqueue a flow: a graph of jobs, as JSON; it exists if and when the transaction commits.';

-- Add jobs to a flow while it is open, as enqueue_flow does: a name that it has already is left as it is. Its jobs are needed by their ids.
create function stint.add_to_flow(flow bigint, jobs jsonb, quiet boolean default false) returns jsonb language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
begin
  if add_to_flow.flow is null then
    raise exception 'stint.add_to_flow: which flow?' using errcode = '22023';
  end if;
  return stint.store_said('stint.add_to_flow', null, add_to_flow.flow, add_to_flow.jobs, add_to_flow.quiet);
end
$$;
revoke execute on function stint.add_to_flow from public;
comment on function stint.add_to_flow is 'Add jobs to a flow while it is open; a name that it has already is left as it is.';

-- Read a flow, or jobs for one, in the order in which they stand there. What is a flow stands before its jobs.
create function stint.read_flow(p_caller text, p_flow jsonb, p_jobs jsonb)
returns table (i bigint, prefix text, said jsonb, list jsonb, unknown text, within bigint, top boolean, root boolean, place text, twice boolean) language sql
set search_path = pg_catalog, pg_temp set enable_nestloop = off set jit = off
as $$
  with recursive nested(path, prefix, said) as (
    select '{}'::bigint[], '', p_flow - 'jobs' where p_flow is not null
    union all
    select array[e.i], '', e.said from jsonb_array_elements(p_jobs) with ordinality as e(said, i)
    union all
    select n.path || e.i, n.prefix || coalesce(n.said ->> 'name', '') || '/', e.said
    from nested n cross join lateral jsonb_array_elements(case jsonb_typeof(n.said -> 'jobs') when 'array' then n.said -> 'jobs' end) with ordinality as e(said, i)
  ), job as materialized (
    select n.*, n.path[:cardinality(n.path) - 1] as scope, row_number() over (order by n.path) as i from nested n
  ), named as materialized (
    select j.scope, j.path, j.i, j.said ->> 'name' as name from job j where j.said ->> 'name' <> ''
  ), want as (
    select j.i as child, j.path, w.wants, x.need, x.i
    from job j cross join (values (1, 'needs'), (2, 'needs_failure'), (3, 'needs_end')) as w(wants, field)
    cross join lateral jsonb_array_elements(case jsonb_typeof(j.said -> w.field) when 'array' then j.said -> w.field end) with ordinality as x(need, i)
  ), need as (
    -- The nearest that has the name: in the same flow, or in one around that.
    select distinct on (w.child, w.wants, w.i) w.child, w.wants, w.need, n.i as parent
    from want w cross join lateral generate_series(0, cardinality(w.path) - 1) as d
    left join named n on n.name = w.need #>> '{}' and jsonb_typeof(w.need) = 'string' and n.scope = w.path[:d] and n.i < w.child and n.path <> w.path[:d + 1]
    order by w.child, w.wants, w.i, cardinality(n.scope) desc nulls last
  ), needs as (
    select n.child, jsonb_agg(jsonb_build_array(n.parent - 1, case when jsonb_typeof(n.need) = 'number' then n.need end, n.wants) order by n.wants, n.parent) as list,
           min(n.need::text) filter (where n.parent is null and jsonb_typeof(n.need) <> 'number') as unknown
    from need n group by n.child
  )
  select j.i, j.prefix, j.said, n.list, n.unknown, o.i - 1 as within, j.path = '{}' as top, j.path = '{}' or j.said ? 'jobs' as root,
         array_to_string(p_caller || array(select 'jobs[' || p - 1 || ']' from unnest(j.path) as p), ': ') as place,
         j.said ->> 'name' <> '' and lag(j.i) over (partition by j.scope, j.said ->> 'name' order by j.i) > 0 as twice
  from job j left join needs n on n.child = j.i left join job o on o.path = j.scope and j.path <> '{}'
  order by j.i
$$;

-- Store what is read of a flow, for enqueue_flow and add_to_flow, whose answer it is.
create function stint.store_said(p_caller text, p_flow jsonb, p_into bigint, p_jobs jsonb, p_quiet boolean) returns jsonb language plpgsql
set search_path = pg_catalog, pg_temp set jit = off
as $$
#variable_conflict use_column
declare
  about  constant text[] := array['kind', 'tags', 'urn', 'source', 'description', 'metadata', 'correlation']; -- what a flow says of itself, as a job does
  r      record;
  k      record;
  wrong  text;
  place  text := p_caller; -- where the job is, for errors
  jobs   jsonb; -- as store_flow takes them
  bodies text[] := '{}'; -- the retry policies,
  known  bigint[] := '{}'; -- and those of them that are stored
begin
  if jsonb_typeof(p_jobs) is distinct from 'array' then
    raise exception '%: the jobs are no array', p_caller using errcode = '22023';
  end if;
  declare
    part  jsonb;
    parts jsonb[] := '{}'; -- appended to like this, and of this block, or the server copies all of it each time
  begin
    for r in select * from stint.read_flow(p_caller, p_flow, p_jobs) loop
      place := r.place;
      wrong := case
        when jsonb_typeof(r.said) <> 'object' then 'it is no JSON object'
        when not r.top and r.root and jsonb_typeof(r.said -> 'jobs') <> 'array' then 'its jobs are no array'
        when r.root and r.said ?| array['needs', 'needs_failure', 'needs_end'] then 'a flow needs nothing: its jobs do'
        when exists (select from unnest(array['needs', 'needs_failure', 'needs_end']) as f where jsonb_typeof(r.said -> f) not in ('array', 'null')) then 'what it needs is no array'
        when r.unknown is not null then 'no job before it is called ' || r.unknown
        when r.twice then quote_literal(r.said ->> 'name') || ' is there twice' end;
      if wrong is null then
        select quote_literal(f) || ' is no option of a ' || case when r.root then 'flow' else 'job in a flow' end into wrong from jsonb_object_keys(r.said) as f
        where f <> all (about || case when r.top then array['idempotency_key', 'unique', 'timeout'] when r.root then array['name', 'jobs', 'timeout']
          else array['name', 'needs', 'needs_failure', 'needs_end', 'args', 'queue', 'priority', 'run_at', 'delay', 'retry', 'timeout', 'start_by', 'start_within',
                     'max_losses', 'limits', 'unique'] end) limit 1;
      end if;
      if wrong is not null then
        raise exception '%: %', place, wrong using errcode = '22023';
      end if;
      select * into k from stint.resolve_job(place, not r.root, r.said ->> 'kind', r.said -> 'args', nullif(r.said ->> 'queue', ''), (r.said ->> 'priority')::integer,
        nullif(r.said ->> 'run_at', '')::timestamptz, nullif(r.said ->> 'delay', '')::interval, nullif(r.said ->> 'retry', ''), nullif(r.said ->> 'timeout', '')::interval,
        array(select jsonb_array_elements_text(nullif(r.said -> 'tags', 'null'))), nullif(r.said ->> 'urn', ''), nullif(r.said ->> 'source', ''), r.said -> 'metadata',
        nullif(r.said ->> 'idempotency_key', ''), nullif(r.said ->> 'correlation', ''), nullif(r.said ->> 'start_by', '')::timestamptz, nullif(r.said ->> 'start_within', '')::interval,
        nullif(r.said ->> 'description', ''), nullif(r.said ->> 'unique', ''),
        case when jsonb_typeof(r.said -> 'limits') <> 'null' then array(select jsonb_array_elements_text(r.said -> 'limits')) end, (r.said ->> 'max_losses')::integer,
        nullif(r.said ->> 'name', ''));
      if k.is_unique is not null and not r.top then
        raise exception '%: only the flow as a whole is unique: jobs of the kind % need "unique": "none" here', place, r.said ->> 'kind' using errcode = '22023';
      end if;
      if k.policy is not null and array_position(bodies, k.policy::text) is null then
        bodies := bodies || k.policy::text;
        known := known || k.known;
      end if;
      part := jsonb_build_object('args', k.arguments, 'tags', k.labels, 'metadata', k.about, 'needs', coalesce(r.list, '[]'), 'called', r.prefix || nullif(r.said ->> 'name', '')) || jsonb_strip_nulls(jsonb_build_object(
        'within', r.within, 'flow', p_into, 'name', nullif(r.said ->> 'name', ''), 'root', r.root, 'lane', stint.lane(k.q, k.p, 'normal', '', k.gates), 'queue', k.q, 'priority', k.p,
        'kind', r.said ->> 'kind', 'policy', array_position(bodies, k.policy::text), 'timeout', k.t, 'urn', nullif(r.said ->> 'urn', ''), 'source', nullif(r.said ->> 'source', ''),
        'max_losses', k.losses, 'correlation', nullif(r.said ->> 'correlation', ''), 'limits', k.gates, 'at', k.due, 'start_by', nullif(r.said ->> 'start_by', '')::timestamptz,
        'start_within', k.span, 'key', nullif(r.said ->> 'idempotency_key', ''), 'unique', k.is_unique));
      parts := parts || part;
    end loop;
    jobs := to_jsonb(parts);
  exception when data_exception then
    if starts_with(sqlerrm, place) then
      raise;
    end if;
    raise exception '%: %', place, sqlerrm using errcode = sqlstate;
  end;
  if jobs = '[]' then
    return jsonb_build_object('id', p_into, 'jobs', '{}'::jsonb);
  end if;
  select array_agg(s.id order by s.i) as ids, bool_or(s.duplicate) filter (where s.i = 1) as duplicate, bool_and(s.same) as same, max(s.old) as old
    into k from stint.store_flow(jobs, known, bodies, false) with ordinality as s(id, duplicate, same, fresh, state, old, i);
  if not k.same then
    raise exception '%: job % has the idempotency key %, with another kind or other arguments', p_caller, k.ids[1], quote_literal(p_flow ->> 'idempotency_key') using errcode = 'ST005';
  elsif p_flow is not null and k.duplicate then
    return jsonb_build_object('id', k.ids[1], 'duplicate', true);
  elsif k.old > 0 then
    raise notice '%: flow % is cancelled for this one, which has its unique key', p_caller, k.old;
  end if;
  if not p_quiet then
    if k.old > 0 then -- handlers are to stop
      perform pg_notify('stint', '');
    end if;
    perform pg_notify('stint', 'work ' || pg_current_xact_id());
    perform pg_notify('stint', 'due ' || pg_current_xact_id());
  end if;
  return jsonb_build_object('id', coalesce(p_into, k.ids[1]), 'jobs',
    coalesce((select jsonb_object_agg(p.job ->> 'called', k.ids[p.i]) from jsonb_array_elements(jobs) with ordinality as p(job, i) where p.job ->> 'called' is not null), '{}'));
end
$$;
