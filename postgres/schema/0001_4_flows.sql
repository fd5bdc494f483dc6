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
  for f in select w.job, w.seen, c.why, c.down_to from stint.cancellations c join stint.waiting w on w.job = c.job
           where c.down_to is distinct from 0 and exists (select from stint.flows g where g.flow = w.job)
           order by w.job for no key update of w skip locked loop
    jobs := array(select e.pos from stint.entries e where e.flow = f.job and e.pos >= f.seen and e.pos < coalesce(f.down_to, 9223372036854775807)
                  order by e.flow desc, e.pos desc limit p_limit);
    insert into stint.cancellations (job, why)
      select j, format('its flow %s was cancelled', f.job) || coalesce(': ' || nullif(f.why, ''), '')
      from unnest(jobs) as j cross join lateral stint.end_of(j) as o where o.outcome is null
      on conflict do nothing;
    update stint.cancellations c set down_to = case when cardinality(jobs) = p_limit then jobs[p_limit] else 0 end where c.job = f.job;
    if cardinality(jobs) < p_limit then
      perform stint.note(array[f.job]);
    end if;
  end loop;
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
      select e.pos, format('job %s, which called it, was cancelled', c.job) || coalesce(': ' || nullif(c.why, ''), '')
      from stint.cancellations c join stint.entries e on e.flow = c.job cross join lateral stint.end_of(e.pos) as o
      where c.job = any (callers) and o.outcome is null order by e.pos
      on conflict do nothing;
    update stint.cancellations c set down_to = 0 where c.job = any (callers);
    perform pg_notify('stint', ''); -- who runs them stops them
  end if;
end
$$;

-- Whether a job belongs to a flow that has not ended.
create function stint.in_open_flow(p_job bigint) returns boolean language sql stable
as $$
  select exists (select from stint.entries e join stint.waiting w on w.job = e.flow join stint.flows f on f.flow = w.job where e.pos = p_job)
$$;

-- Whether retention leaves a job: it goes after its flow, and a flow goes after those that retry it.
create function stint.in_kept_flow(p_job bigint) returns boolean language sql stable
as $$
  select exists (select from stint.entries e join stint.flows f on f.flow = e.flow where e.pos = p_job)
      or exists (select from stint.entries r join stint.flows f on f.flow = r.pos where r.recovered = p_job)
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
    insert into stint.flows (flow) select j.id from job j where j.root
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
  select p into u from unnest(k.others) as p where not exists (
    select from stint.entries e where e.pos = p and e.job is null and (e.flow is not null or exists (select from stint.flows f where f.flow = p))) limit 1;
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
