-- stint: what people do to jobs.

-- Calls that change what becomes of jobs take turns, so that no job is
-- recovered while it is deleted. A key of its own: engines and lanes are locked
-- by single numbers, and two schemas need not wait for each other.
create function stint.take_turn() returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') is distinct from 'read committed' then
    raise exception 'stint works in read committed transactions only' using errcode = 'ST001';
  end if;
  perform pg_advisory_xact_lock('stint.entries'::regclass::oid::integer, 1);
end
$$;

-- Do an ended job again, as a new one. A unique key is taken again; if another job holds it, that is the answer,
-- and nothing is done. Of a job of a flow that has ended this is what did not complete of that flow, as
-- a new flow, with the job and what depends on it. What an open flow does again already is the answer.
create function stint.recover(p_job bigint, p_at timestamptz, p_all boolean, out id bigint, out holder bigint, out before boolean) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  c      stint.entries;
  target bigint := p_job; -- the outermost flow of it that has ended
  parent bigint;          -- in which that is
  into_flow bigint;       -- if that is open
  olds   bigint[] := array[p_job];
  news   bigint[];
begin
  select e.flow into parent from stint.entries e where e.pos = p_job;
  while parent is not null loop
    select w.job into into_flow from stint.waiting w where w.job = parent and exists (select from stint.flows f where f.flow = w.job) for key share;
    exit when found or not exists (select from stint.flows f where f.flow = parent);
    target := parent;
    select e.flow into parent from stint.entries e where e.pos = target;
  end loop;
  select e.pos into id from stint.entries e
    where e.recovered in (p_job, target)
      and (e.recovered = target and e.flow = into_flow
           or exists (select from stint.waiting w where w.job in (e.pos, e.flow) and exists (select from stint.flows f where f.flow = w.job)))
    order by e.recovered = p_job desc, e.pos desc limit 1;
  before := found;
  if before then
    return;
  end if;
  if exists (select from stint.flows f where f.flow = target) then
    olds := stint.to_redo(target, p_job, p_all or target = p_job and stint.ended(target) = 1);
  end if;
  before := array_position(olds, p_job) is null; -- it is not in its flow any more
  if before then
    parent := p_job;
    while id is null and parent is not null loop
      select max(e.pos) into id from stint.entries e where e.recovered = parent;
      select e.flow into parent from stint.entries e where e.pos = parent;
    end loop;
    return;
  end if;
  news := array(select nextval('stint.positions') from unnest(olds));
  id := news[array_position(olds, target)];
  select e.* into c from stint.entries e where e.pos = stint.contents(target);
  if c.uniqueness is not null then
    select nullif(t.job, recover.id) into holder
      from stint.take_unique(array[c.uniqueness], array[c.kind::text], array[c.args], array[null::text], array[recover.id], false, target) as t;
    if holder is not null then
      return;
    end if;
  end if;
  perform stint.copy_jobs(olds, news, into_flow, p_at, into_flow is not null or exists (select from stint.flows f where f.flow = target));
  if into_flow is not null then
    perform stint.take_place(into_flow, target, id);
  end if;
  id := news[array_position(olds, p_job)];
end
$$;

-- Where the contents of a job are.
create function stint.contents(p_job bigint) returns bigint language sql stable
as $$
  select coalesce((select l.body from stint.entries l where l.job = p_job order by l.pos desc limit 1), p_job)
$$;

-- Copy jobs that have ended, with their contents: a reference would keep the old ones from being deleted. The old and the
-- new come from each other, so they share a correlation id; an idempotency key stays the old one's, and so does
-- the instant to begin by, which is over. Of flows the new jobs need what the old ones needed: of two that are
-- copied the new one needs the new. They are blocked, and looked at.
create function stint.copy_jobs(p_olds bigint[], p_news bigint[], p_flow bigint, p_at timestamptz, p_blocked boolean) returns void language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_custom_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
begin
  -- One takes the place of another that its gates wait for since that failed.
  update stint.reruns r set job = o.new, failed = false from unnest(p_olds, p_news) as o(old, new) where r.job = o.old and r.failed;
  if p_blocked then
    insert into stint.flows (flow, deadline)
      select o.new, clock_timestamp() + e.timeout * interval '1 millisecond'
      from unnest(p_olds, p_news) as o(old, new) join stint.flows f on f.flow = o.old join stint.entries e on e.pos = f.flow;
    insert into stint.nodes (flow, name, job)
      select o.new, n.name, coalesce(m.new, n.job) from unnest(p_olds, p_news) as o(old, new) join stint.nodes n on n.flow = o.old
      join stint.flows f on f.flow = n.flow
      left join unnest(p_olds, p_news) as m(old, new) on m.old = n.job;
    insert into stint.needs (child, parent, wants)
      select o.new, coalesce(m.new, n.parent), n.wants from unnest(p_olds, p_news) as o(old, new) join stint.needs n on n.child = o.old
      left join unnest(p_olds, p_news) as m(old, new) on m.old = n.parent;
  end if;
  insert into stint.entries (pos, lane, due, policy, retry, timeout, max_losses, priority, queue, kind, args, tags, urn, source, metadata, recovered, correlation, uniqueness, limits, flow)
    select o.new, case when p_blocked or p_at is not null then -1 else stint.lane(c.queue, c.priority, case when c.limits is null then 'normal' else stint.part_of(o.new) end, '', c.limits) end,
           p_at, c.policy, c.retry, c.timeout, c.max_losses, c.priority, c.queue, c.kind, c.args, c.tags, c.urn, c.source, c.metadata, o.old,
           coalesce(c.correlation, o.old::text), c.uniqueness, c.limits, coalesce(m.new, case when p_blocked then p_flow end)
    from unnest(p_olds, p_news) as o(old, new) join stint.entries c on c.pos = coalesce((select l.body from stint.entries l where l.job = o.old order by l.pos desc limit 1), o.old)
    left join unnest(p_olds, p_news) as m(old, new) on m.old = c.flow order by o.new;
  insert into stint.job_tags (tag, job)
    select unnest(e.tags), e.pos from unnest(p_news) as o(new) join stint.entries e on e.pos = o.new;
  if p_blocked or p_at is not null then
    insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind, limits, watch, verdict, seen)
      select e.pos, case when not p_blocked then p_at end, e.pos, case when p_blocked then 'blocked' else 'scheduled' end, 1, e.priority, e.queue, e.kind, e.limits,
             case when p_blocked then greatest((select max(n.parent) from stint.needs n where n.child = e.pos), (select max(m.pos) from stint.entries m where m.flow = e.pos)) end,
             case when p_blocked then 0 end, case when p_blocked then 0 end
      from unnest(p_news) as o(new) join stint.entries e on e.pos = o.new;
  end if;
  -- Each goes on where the one before it was, unless that had come to its end.
  insert into stint.steps (job, name, pos, began, ended, result, question, until)
    select o.new, s.name, s.pos, s.began, s.ended, s.result, s.question, s.until
    from unnest(p_olds, p_news) as o(old, new) join stint.steps s on s.job = o.old where stint.ended(o.old) <> 1
      and (s.question ? 'job' and s.result->>'state' <> 'completed') is not true;
  insert into stint.signals (job, name, sent, key, value)
    select o.new, s.name, s.sent, s.key, s.value
    from unnest(p_olds, p_news) as o(old, new) join stint.signals s on s.job = o.old
    where stint.ended(o.old) <> 1 and not exists (select from stint.steps t where t.signal = s.n) order by s.n;
  if p_blocked then
    perform stint.note(p_news);
  end if;
end
$$;

-- Have jobs run again, at a time or after so many microseconds, or now. For
-- each there is an answer, and the job that runs. Of flows all is done again, or else what did not complete.
create function stint.again(p_jobs bigint[], p_at timestamptz, p_delay bigint, p_once boolean, p_all boolean,
  out answers text[], out ids bigint[])
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  at     timestamptz;
  this   bigint;
  w      stint.waiting;
  shown  text;
  answer text;
  runs   bigint;
  holder bigint;
begin
  perform stint.take_turn();
  at := coalesce(p_at, clock_timestamp() + p_delay * interval '1 microsecond');
  if at <= clock_timestamp() then
    at := null;
  end if;
  foreach this in array p_jobs loop
    answer := null;
    for try in 1 .. 100 loop
      runs := this;
      -- A row that is being promoted is waited for: it is gone then, and its
      -- job in the log. One that is marked is about to end. What waits for a
      -- retry function has its time now, and is not judged any more.
      if exists (select from stint.waiting b where b.job = this and b.verdict is not null) then
        answer := 'blocked';
        exit;
      elsif at is null then
        delete from stint.waiting d where d.job = this and d.verdict is null
          and not exists (select from stint.cancellations c where c.job = this) returning d.* into w;
      else
        update stint.waiting u set due = at, undecided = null where u.job = this and u.verdict is null
          and not exists (select from stint.cancellations c where c.job = this) returning u.* into w;
      end if;
      if found and at is null then
        insert into stint.entries (lane, job, body, attempt, priority, losses, suspect, queue, kind, faulty, limits)
          values (stint.lane(w.queue, w.priority, case when w.limits is null then 'normal' else stint.part_of(w.job) end, '', w.limits), w.job, w.body, w.attempt, w.priority, w.losses, w.suspect, w.queue, w.kind, w.faulty, w.limits);
      end if;
      if found then
        answer := case when at is null then 'ready' else 'scheduled' end;
        exit;
      end if;
      -- A statement of its own: it sees what the one before waited for.
      select j.state into shown from stint.jobs j where j.id = this;
      case
        when shown is null then
          answer := 'not found'; runs := 0;
        when shown in ('available', 'running') then
          answer := shown;
        when shown in ('completed', 'failed', 'cancelled') then
          answer := 'recovered'; runs := null;
          if p_once then
            select e.pos into runs from stint.entries e where e.recovered = this order by e.pos desc limit 1;
          end if;
          if runs is null then
            select r.id, r.holder, case when r.before then 'recovered before' end into runs, holder, shown from stint.recover(this, at, p_all) as r;
            if holder is not null then
              answer := 'not unique'; runs := holder;
            end if;
            answer := coalesce(shown, answer);
          else
            answer := 'recovered before';
          end if;
        else
          -- It was put to wait between the two statements.
          continue;
      end case;
      exit;
    end loop;
    if answer is null then
      raise exception 'job % cannot be run again: it stays %', this, shown;
    end if;
    answers := answers || answer;
    ids := ids || runs;
  end loop;
  perform pg_notify('stint', '');
end
$$;

-- Take jobs that have ended out of the store. Claims stay: the newest of a lane
-- is its frontier, and an outcome names the claim that it comes from. What is
-- behind a frontier is never looked at again.
create function stint.remove(gone bigint[]) returns void language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  clock timestamptz := clock_timestamp();
begin
  -- It may wait for a session that sums up, so that nothing is locked before.
  perform stint.sum_gone(gone);
  -- Engines that may repeat what they recorded of these. Below its bound of
  -- open claims an engine has been told that everything is recorded; so of what
  -- ended long ago only those are noted that hold a claim for as long. A request
  -- that was cut off may go on at the server for a moment, whatever the bound.
  delete from stint.deletions d where not exists (select from stint.engines e where e.token = d.engine);
  insert into stint.deletions (engine, serial)
    select o.engine, coalesce((select c.serial from stint.claims c where c.engine = o.engine order by c.engine desc, c.serial desc limit 1), 0)
    from (select x.engine, max(x.finished) as finished
          from (select y.engine, y.finished from stint.executions y where y.pos = any (gone)
                union all select y.engine, y.finished from stint.executions y where y.job = any (gone)) x group by x.engine) o
    join stint.engines e on e.token = o.engine
    join stint.beats b on b.token = o.engine
    where o.finished > clock - interval '10 minutes'
       or (select c.made from stint.claims c where c.engine = o.engine and c.serial >= b.low order by c.serial limit 1) < o.finished + interval '10 minutes'
    order by o.engine
    on conflict (engine) do update set serial = excluded.serial, at = excluded.at;
  delete from stint.job_tags t
    using (select e.pos, unnest(e.tags) as tag from stint.entries e where e.pos = any (gone)) l
    where t.tag = l.tag and t.job = l.pos;
  delete from stint.executions x where x.pos = any (gone);
  delete from stint.executions x where x.job = any (gone);
  delete from stint.steps s where s.job = any (gone);
  -- Before PostgreSQL 17 each of the jobs is looked for by itself: not where nobody uses a feature.
  if exists (select from stint.signals) then
    delete from stint.signals s where s.job = any (gone);
  end if;
  if exists (select from stint.needs) then
    delete from stint.needs n where n.child = any (gone);
  end if;
  if exists (select from stint.nodes) then
    delete from stint.nodes n where n.job = any (gone);
  end if;
  if exists (select from stint.flows) then
    delete from stint.flows f where f.flow = any (gone);
  end if;
  delete from stint.cancellations c where c.job = any (gone);
  delete from stint.entries e where e.job = any (gone);
  delete from stint.entries e where e.pos = any (gone);
  -- After the entries, which a beat locks whose lines are not to be seen yet.
  delete from stint.lines l where l.job = any (gone);
  delete from stint.progress p where p.job = any (gone);
end
$$;

-- Delete jobs that have ended; for each there is an answer.
create function stint.erase(p_jobs bigint[]) returns text[] language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  gone bigint[];
begin
  perform stint.take_turn();
  select coalesce(array_agg(j order by j), '{}') into gone from unnest(p_jobs) as j
    where not stint.has_open_parent(j) and ((select x.pos from stint.executions x where x.pos = j and x.job is null and x.final) is not null
       or (select x.pos from stint.executions x where x.job = j and x.final) is not null);
  perform stint.remove(gone);
  return (
    select array_agg(case when j = any (gone) then 'deleted'
                          when exists (select from stint.entries e where e.pos = j and e.job is null) then 'too early'
                          else 'not found' end order by i)
    from unnest(p_jobs) with ordinality as a(j, i));
end
$$;
