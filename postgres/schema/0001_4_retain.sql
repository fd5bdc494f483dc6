-- stint: retention. Each function does one step of a pass through the store,
-- and reads and deletes about as much as its limit says.

-- Begin a step. It takes its turn with calls that change what becomes of jobs;
-- then, if it is done under a lease, no other engine gets that before it has ended.
-- Its commit does not wait for the disk: what a crash brings back is deleted again.
create function stint.begin_step(p_lease text, p_engine bigint) returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform set_config('synchronous_commit', 'off', true);
  perform stint.take_turn();
  if p_lease <> '' then
    perform stint.under(p_lease, p_engine);
  end if;
end
$$;

-- How long an ended job is kept: the rule of its queue, or else the rule of all.
-- Null is for ever. Rules are {queue: {state: microseconds}}, "" for all queues;
-- one expression, so that it is planned into the statement that asks.
create function stint.age_of(p_queue text, p_outcome smallint, p_keep jsonb) returns interval language sql immutable parallel safe
as $$
  select (coalesce(p_keep -> p_queue, p_keep -> '') ->> case p_outcome when 1 then 'completed' when 6 then 'cancelled' when 8 then 'cancelled' else 'failed' end)::bigint * interval '1 microsecond'
$$;

-- Delete jobs that ended long ago: those that are kept for p_only, or all.
-- Executions are gone through by position, which is about the order of time, up
-- to the first of an entry that was appended too lately for anything after it
-- to be old. Young is in front of the first job that is to go later, null if there is
-- none. An execution that is recorded when its position was passed is found by a
-- later pass from the beginning.
create function stint.retain_jobs(p_lease text, p_engine bigint, p_from bigint, p_limit integer, p_shortest bigint, p_only bigint,
  p_keep jsonb, out deleted integer, out next bigint, out more boolean, out young bigint)
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  clock  timestamptz;
  ahead  timestamptz; -- what was appended after this came while the clock was ahead: it says nothing of what follows it
  wanted interval := p_only * interval '1 microsecond';
  recent timestamptz; -- nothing is old that follows what was appended after this
  gone   bigint[];
begin
  -- It may have to wait for a session that sums up. Nobody is to wait for this one
  -- meanwhile, least of all who renews the lease.
  perform from stint.summed for share;
  perform stint.begin_step(p_lease, p_engine);
  clock := clock_timestamp();
  ahead := clock + interval '1 minute';
  recent := clock - coalesce(wanted, p_shortest * interval '1 microsecond');
  -- One statement for all: a loop cost more than the deletions.
  select array_agg(p.job) filter (where p.finished <= clock - p.age),
         min(p.pos) filter (where p.finished > clock - p.age and p.created < ahead) - 1,
         coalesce(max(p.pos), p_from), count(*) = p_limit
    into gone, young, next, more
    from (select l.pos, l.job, l.finished, l.created, l.past, case when wanted is null or l.age = wanted then l.age end as age
          from (select x.pos, coalesce(x.job, x.pos) as job, x.finished, e.created,
                       bool_or(e.created > recent and e.created < ahead) over (order by x.pos rows unbounded preceding) as past,
                       case when x.final and e.pos is not null and (x.job is null and e.flow is null and x.slot > 0 or not stint.in_kept_flow(coalesce(x.job, x.pos))) then stint.age_of(e.queue, x.outcome, p_keep) end as age
                from (select * from stint.executions y where y.pos > p_from order by y.pos limit p_limit) x
                left join stint.entries e on e.pos = x.pos -- what has no entry counts too, or it would end every pass
               ) l) p
    where p.past is not true;
  deleted := coalesce(cardinality(gone), 0);
  if deleted > 0 then
    perform stint.remove(gone);
  end if;
end
$$;

-- Delete claims of whose entries none is left. Those stay that are a lane's
-- newest, or hold what was in progress for a later one, or that an engine of the
-- roster may still name.
create function stint.retain_claims(p_lease text, p_engine bigint, p_lane bigint, p_n bigint, p_limit integer, p_shortest bigint,
  out deleted integer, out lane bigint, out n bigint, out more boolean)
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
#variable_conflict use_variable
declare
  clock timestamptz;
  budget integer := p_limit; -- a claim of many entries takes more of it
  c     record;
  later bigint; -- what the next claim points to
  dead  bigint[];
begin
  perform stint.begin_step(p_lease, p_engine);
  clock := clock_timestamp();
  deleted := 0; lane := p_lane; n := p_n; more := true;
  loop
    dead := '{}';
    for c in
      select k.n, k.made, k.serial, k.engine, k.positions, k.pending_xid is not null as pending
      from stint.claims k
      where k.lane = retain_claims.lane and k.n > retain_claims.n
      order by k.lane, k.n limit budget
    loop
      exit when c.made > clock - p_shortest * interval '1 microsecond' and c.made < clock + interval '1 minute'; -- as above
      exit when budget <= 0;
      n := c.n; budget := budget - 1 - cardinality(c.positions) / 10;
      select o.pending_n into later from stint.claims o
        where o.lane = retain_claims.lane and o.n > retain_claims.n order by o.lane, o.n limit 1;
      -- Claims that point to one follow it without a gap.
      if found and not (c.pending and coalesce(later = c.n, false))
         and not exists (select from unnest(c.positions) as p(pos) join stint.entries e on e.pos = p.pos)
         and not exists (select from stint.engines g join stint.beats b on b.token = g.token where g.token = c.engine and b.low <= c.serial) then
        dead := dead || c.n;
      end if;
    end loop;
    -- With bounds: an early plan may read all claims of the lane for those.
    delete from stint.claims k
      where k.lane = retain_claims.lane and k.n = any (dead) and k.n between dead[1] and dead[cardinality(dead)];
    deleted := deleted + cardinality(dead);
    exit when budget <= 0;
    budget := budget - 1;
    n := 0;
    select k.lane into lane from stint.claims k where k.lane > retain_claims.lane order by k.lane limit 1;
    if not found then
      lane := 0; more := false;
      exit;
    end if;
  end loop;
end
$$;

-- Forget idempotency keys: of jobs that ended as long ago as they are kept, and
-- of jobs that are gone. And unique keys, whose jobs have ended or are gone, and whose
-- periods are over. Others are looked at again when that can be so. Rows
-- that another session looks at are passed over.
create function stint.retain_keys(p_lease text, p_engine bigint, p_limit integer, p_shortest bigint,
  p_keep jsonb, out deleted integer, out more boolean)
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  clock timestamptz;
  soon  interval := least(p_shortest, 86400000000) * interval '1 microsecond'; -- a day, in case the rules change meanwhile
  old   text[];
begin
  perform stint.begin_step(p_lease, p_engine);
  clock := clock_timestamp();
  old := array(select k.key from stint.idempotency k where k.expires <= clock order by k.expires limit p_limit for update skip locked);
  with kept as materialized (
    select k.key, case when e.pos is not null then
             case when x.pos is null then clock + soon
                  when k.fingerprint = '' then clock
                  else coalesce(x.finished + x.age, clock + soon) end end as until
    from stint.idempotency k
    left join stint.entries e on e.pos = k.job
    left join lateral (
      select f.pos, f.finished, stint.age_of(l.queue, f.outcome, p_keep) as age
      from (select * from stint.executions a where a.pos = k.job and a.job is null and a.final
            union all select * from stint.executions a where a.job = k.job and a.final) f
      join stint.entries l on l.pos = f.pos limit 1) x on true
    where k.key = any (old)
  ), gone as (
    delete from stint.idempotency k using kept t where k.key = t.key and coalesce(t.until <= clock, true) returning 1
  ), later as (
    update stint.idempotency k set expires = t.until from kept t where k.key = t.key and t.until > clock
  )
  select count(*) into deleted from gone;
  more := cardinality(old) = p_limit;
end
$$;

-- Forget engines that ended before any job that is left: of the claims that they
-- made none is left, and of what they decided about neither.
create function stint.retain_engines(p_lease text, p_engine bigint, p_from bigint, p_limit integer, p_shortest bigint,
  out deleted integer, out next bigint, out more boolean)
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  clock timestamptz;
  page  bigint[];
begin
  perform stint.begin_step(p_lease, p_engine);
  clock := clock_timestamp();
  delete from stint.deletions d where not exists (select from stint.engines e where e.token = d.engine);
  page := array(select h.token from stint.engine_history h where h.token > p_from order by h.token limit p_limit);
  delete from stint.engine_history h
    where h.token > p_from and h.token <= page[cardinality(page)] and h.swept and h.ended <= clock - p_shortest * interval '1 microsecond'
      and not exists (select from stint.engines e where e.token = h.token)
      and not exists (select from stint.claims c where c.engine = h.token)
      and not exists (select from stint.executions x where x.nonce = 0 and x.engine = h.token);
  get diagnostics deleted = row_count;
  more := cardinality(page) = p_limit;
  next := case when more then page[p_limit] else 0 end;
end
$$;

-- Forget changes that were made long ago. Their numbers are about in the order of
-- time, so that those at the beginning tell.
create function stint.retain_changes(p_lease text, p_engine bigint, p_limit integer, out deleted integer, out more boolean)
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  perform stint.begin_step(p_lease, p_engine);
  delete from stint.changes c
    where c.n = any (array(select o.n from stint.changes o order by o.n limit p_limit)) and c.at < clock_timestamp() - interval '90 days';
  get diagnostics deleted = row_count;
  more := deleted = p_limit;
end
$$;
