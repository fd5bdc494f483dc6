-- stint: the functions. What an engine does many times a second is one call:
-- one message to its commit, and plans that the session keeps: left to itself
-- the planner would plan again for each array's length, which costs an idle
-- engine as much as the work. Where a kind of plan is off, so is JIT: what has
-- no other plan looks as if it cost enough to be compiled. Errors of the class
-- ST are stint's own: ST001 wrong isolation, ST002 buried, ST003 a claim is
-- gone, ST004 a claim after other writes, ST020 a lease is not held.

-- The lane of a queue, priority and part, and of limits if there are any. The program
-- computes the same.
create function stint.lane(queue text, priority integer, part text, kind text default '', limits text default null)
returns bigint language sql stable parallel safe
as $$
  -- decode and no backslash: a session may read backslashes in its own way
  select ('x' || encode(substr(sha256(
      convert_to(queue, 'UTF8') || decode('00', 'hex') || convert_to(priority::text, 'UTF8') || decode('00', 'hex') ||
      convert_to(part, 'UTF8') || decode('00', 'hex') || convert_to(kind, 'UTF8') || decode('00', 'hex') ||
      case when limits is null then '' else convert_to(limits, 'UTF8') || decode('00', 'hex') end), 1, 8), 'hex')
    )::bit(64)::bigint >> 1 & 9223372036854775807
$$;

-- What an engine records is on the disk when it is told so, whatever is set for the
-- session: it forgets what it has recorded, and goes on with what it has in hand. If the
-- server forgot that in a crash, no engine would take up what stands there as held by an
-- engine that lives, and others would get what it runs.
create function stint.durable() returns text language sql volatile
as $$ select case when pg_catalog.current_setting('synchronous_commit') = 'off' then pg_catalog.set_config('synchronous_commit', 'local', true) end $$;

-- The fence. The shared lock comes first and the row is read by the next
-- statement, so that a burial either waits for us or has deleted the row.
-- A row lock would be right too, but overlapping ones make a multixact each.
create function stint.fence(p_engine bigint) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  ok boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'stint works in read committed transactions only' using errcode = 'ST001';
  end if;
  ok := pg_advisory_xact_lock_shared(p_engine) is null;
  perform stint.durable();
  perform from stint.engines where token = p_engine;
  if not found then
    raise exception 'engine % is not in the roster', p_engine using errcode = 'ST002';
  end if;
  return true;
end
$$;

-- The newest frontier of a lane, with what was in progress before it.
create function stint.frontier(p_lane bigint,
  out n bigint, out xid xid8, out pos bigint, out pending_xid xid8[], out pending_pos bigint[])
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  listed bigint; -- the claim that lists that, when it is not this one
begin
  select c.n, c.xid, c.pos, c.pending_n, c.pending_xid, c.pending_pos
    into n, xid, pos, listed, pending_xid, pending_pos
    from stint.claims c where c.lane = p_lane
    order by c.lane desc, c.n desc limit 1; -- both columns: the planner must walk the primary key
  if not found then
    n := 0; xid := '0'; pos := 0;
  elsif listed is not null then
    select c.pending_xid, c.pending_pos into pending_xid, pending_pos
      from stint.claims c where c.lane = p_lane and c.n = listed;
  end if;
end
$$;

-- How many blocks of the log this transaction has asked for. Settling is
-- decided by this count and not by a clock: on a busy machine everything is slow.
create function stint.steps() returns bigint language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select pg_stat_get_xact_blocks_fetched('stint.entries'::regclass)
       + pg_stat_get_xact_blocks_fetched('stint.entries_lane'::regclass)
$$;

-- Whether a lane has something to claim, with its first entry's traits. No row
-- when it has not; settle when finding that out meant stepping over much.
create function stint.sight(p_lane bigint)
returns table (lane bigint, queue text, priority smallint, kind text, limits text, first bigint, settle boolean)
language plpgsql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
declare
  began bigint := stint.steps();
  f     record;
begin
  f := stint.frontier(p_lane);
  return query
    select e.lane, e.queue::text, e.priority::smallint, e.kind::text, e.limits, e.pos, false from stint.entries e
    where e.lane = p_lane and (e.xid, e.pos) > (f.xid, f.pos)
    order by e.xid, e.pos limit 1;
  if found then return; end if;
  if f.pending_xid is not null then
    return query
      select e.lane, e.queue::text, e.priority::smallint, e.kind::text, e.limits, e.pos, false
      from unnest(f.pending_xid, f.pending_pos) as p(xid, pos)
      cross join lateral (
        select * from stint.entries l
        where l.lane = p_lane and l.xid = p.xid and l.pos > p.pos
        order by l.pos limit 1) e
      where pg_visible_in_snapshot(p.xid, (select pg_current_snapshot())) -- made once
      limit 1;
    if found then return; end if;
  end if;
  if stint.steps() - began > 100 then
    return query select p_lane, null::text, null::smallint, null::text, null::text, null::bigint, true;
  end if;
end
$$;

-- The lanes that have something to claim. Known lanes come sorted, with those
-- that the caller does not want marked foreign; lanes between them, and between two
-- others, are found by stepping through the index. Fifty at a time are asked for in one
-- statement: one for each costs eight times as much. What that leaves open, sight
-- answers: lanes with entries that may have become visible late, and those of fifty of
-- which some had to step over much.
create function stint.look(p_lanes bigint[], p_foreign boolean[], p_from bigint default -1, p_upto bigint default 9223372036854775807)
returns table (lane bigint, queue text, priority smallint, kind text, limits text, first bigint, settle boolean)
language plpgsql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
declare
  bounds bigint[] := p_from || p_lanes || p_upto;
  found_ bigint[];
  began  bigint;
  r      record;
begin
  for i in 1 .. cardinality(p_lanes) + 1 by 50 loop
    began := stint.steps();
    for r in
      select k.prev, k.upto, g.lane is not null as between_, f.listed, e.*
      from unnest(bounds[i : i+49], bounds[i+1 : i+50], p_foreign[i : i+49]) as k(prev, upto, away)
      left join lateral (
        select l.lane from stint.entries l
        where l.lane > k.prev and l.lane < k.upto
        order by l.lane, l.xid, l.pos limit 1) g on true
      left join lateral (
        select c.xid, c.pos, coalesce(c.pending_n, cardinality(c.pending_xid)) as listed
        from stint.claims c where c.lane = k.upto and not k.away
        order by c.lane desc, c.n desc limit 1) f on true
      left join lateral (
        select l.lane, l.queue, l.priority, l.kind, l.limits, l.pos from stint.entries l
        where l.lane = k.upto and not k.away and (l.xid, l.pos) > (coalesce(f.xid, '0'), coalesce(f.pos, 0))
        order by l.xid, l.pos limit 1) e on true
      where g.lane is not null or e.lane is not null or f.listed is not null
    loop
      while r.between_ loop
        with recursive step as (
          select r.prev as lane, 0 as n
          union all
          select (select l.lane from stint.entries l
                  where l.lane > step.lane and l.lane < r.upto
                  order by l.lane, l.xid, l.pos limit 1), step.n + 1
          from step where step.lane is not null and step.n < 50)
        select array_agg(step.lane) into found_ from step where step.lane is not null and step.n > 0;
        exit when found_ is null;
        return query select * from stint.look(found_, array_fill(false, array[cardinality(found_)]), r.prev, found_[cardinality(found_)] + 1);
        r.prev := found_[cardinality(found_)];
      end loop;
      if r.lane is not null then
        lane := r.lane; queue := r.queue; priority := r.priority; kind := r.kind; limits := r.limits; first := r.pos; settle := false;
        return next;
      elsif r.listed is not null then
        return query select * from stint.sight(r.upto) s where not s.settle;
      end if;
    end loop;
    if stint.steps() - began > 100 + 10 * least(50, cardinality(bounds) - i) then
      return query
        select s.* from unnest(p_lanes[i : i+49], p_foreign[i : i+49]) as k(lane, away) cross join lateral stint.sight(k.lane) s
        where not k.away and s.settle;
    end if;
  end loop;
end
$$;

-- The next mark, and the lanes that have something to claim among those of entries that
-- were not visible when the last mark was made. Entries behind it are read again, as
-- far as transactions that were in progress then are likely to have drawn their
-- positions. A lane's first entry tells its traits, as in a look. "every" says that
-- more was appended than is read, or that there was no mark.
create function stint.look_since(p_pos bigint, p_seen pg_snapshot)
returns table (pos bigint, seen pg_snapshot, every boolean, lane bigint, queue text, priority smallint, kind text, limits text, first bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
declare
  began bigint := stint.steps();
  n     bigint;
  lanes bigint[];
begin
  if p_pos is not null then
    select count(*), max(e.pos), array_agg(distinct e.lane) filter (where e.lane >= 0 and not pg_visible_in_snapshot(e.xid, p_seen))
      into n, pos, lanes
      from (select l.pos, l.lane, l.xid from stint.entries l
            where l.pos > p_pos - 500
            order by l.pos limit 1500) e;
  end if;
  every := p_pos is null or n = 1500;
  if every then
    select coalesce(max(l.pos), 0) into pos from stint.entries l;
    lanes := null;
  elsif stint.steps() - began > 1500 then
    -- Rows of a transaction in progress, or one that rolled back: not again.
    pos := pg_sequence_last_value('stint.positions'::regclass);
  end if;
  pos := greatest(pos, p_pos); seen := pg_current_snapshot();
  return next;
  return query
    select null::bigint, null::pg_snapshot, null::boolean, s.*
    from unnest(lanes) as k(lane)
    left join lateral (
      select c.xid, c.pos, coalesce(c.pending_n, cardinality(c.pending_xid)) as listed
      from stint.claims c where c.lane = k.lane
      order by c.lane desc, c.n desc limit 1) f on true
    left join lateral (
      select l.lane, l.queue, l.priority, l.kind, l.limits, l.pos from stint.entries l
      where l.lane = k.lane and (l.xid, l.pos) > (coalesce(f.xid, '0'), coalesce(f.pos, 0))
      order by l.xid, l.pos limit 1) e on true
    cross join lateral (
      select e.lane, e.queue::text, e.priority::smallint, e.kind::text, e.limits, e.pos where e.lane is not null
      union all
      select t.lane, t.queue, t.priority, t.kind, t.limits, t.first from stint.sight(k.lane) t
      where e.lane is null and f.listed is not null and not t.settle) s;
end
$$;

-- The nth of the transactions that a snapshot lists as in progress, in the order
-- of their numbers and as xid8send writes them; null when there are fewer.
create function stint.unseen(snap pg_snapshot, nth integer) returns bytea language sql immutable parallel safe
as $$ select nullif(substr(pg_snapshot_send(snap), 13 + 8 * nth, 8), '') $$;

-- Take up to p_max entries of a lane. The answer is the claim's number, 0 when
-- there was nothing to take, null when the lane is busy. (A value that is
-- assigned takes half the time of one that is performed or selected.)
-- p_next: after a claim of another lane in the same transaction, by claim_lanes.
create function stint.claim(p_engine bigint, p_serial bigint, p_low bigint, p_nonce bigint, p_lane bigint,
  p_max integer, p_wait boolean, p_settle boolean, p_next boolean default false, out n bigint, out positions bigint[])
language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  -- Two schemas of one database must not wait for each other's lanes.
  lane_lock bigint := p_lane # ('stint.entries'::regclass::oid::bigint << 24);
  ok       boolean;
  f        record;
  was      record; -- the frontier with its list, read when it matters
  snap     pg_snapshot;
  same     boolean := false; -- all that was pending is still in progress
  late_xid xid8[];   late_pos  bigint[];
  fresh_xid xid8[];  fresh_pos bigint[];
  late     integer;  fresh     integer;
  new_xid  xid8;     new_pos   bigint;
  pend     integer;  pend_n    bigint;
  pend_xid xid8[];   pend_pos  bigint[];
begin
  -- No snapshot lists its own transaction as in progress. What this one
  -- appended behind a frontier past its number would never be claimed.
  if not p_next then
    if pg_current_xact_id_if_assigned() is not null then
      raise exception 'a claim is the first that its transaction writes, and all of it' using errcode = 'ST004';
    end if;
    -- The fence comes before the lane: after it, one burial in progress would
    -- stop the lane for everyone.
    ok := stint.fence(p_engine);
  end if;
  if p_wait then
    ok := pg_advisory_xact_lock(lane_lock) is null;
  elsif not pg_try_advisory_xact_lock(lane_lock) then
    return;
  end if;
  -- A statement of its own: its snapshot is younger than the lock.
  select c.n, c.xid, c.pos, c.pending, case when c.pending_xid is null then c.pending_n else c.n end as listed
    into f from stint.claims c where c.lane = p_lane
    order by c.lane desc, c.n desc limit 1; -- as in frontier, but for the lists
  if not found then
    select 0::bigint as n, xid8 '0' as xid, 0::bigint as pos, null::integer as pending, null::bigint as listed into f;
  end if;

  -- One statement, one snapshot: what was late and is visible now, what is
  -- fresh, and which transactions that snapshot did not see.
  --
  -- All that is in progress at or before the frontier is pending. So when as
  -- many are as the list has, nothing is late, and the list need not be read.
  -- Where the claim before had to write a new one, this one will have to as well.
  if f.listed is null or f.listed < f.n then
    select array_agg(e.xid), array_agg(e.pos), pg_current_snapshot() into fresh_xid, fresh_pos, snap
      from (select r.xid, r.pos from stint.entries r
            where r.lane = p_lane and (r.xid, r.pos) > (f.xid, f.pos)
            order by r.xid, r.pos limit p_max) e;
    same := (f.listed is null or stint.unseen(snap, f.pending) < xid8send(f.xid)) is true;
  end if;
  if not same then
    was := stint.frontier(p_lane);
    with snapshot as materialized (
      select pg_current_snapshot() as s
    ), late as materialized (
      select e.xid, e.pos
      from unnest(was.pending_xid, was.pending_pos) as p(xid, pos)
      cross join lateral (
        select l.xid, l.pos from stint.entries l
        where l.lane = p_lane and l.xid = p.xid and l.pos > p.pos
        order by l.pos limit p_max) e
      -- Without this the uncommitted rows of a bulk load are read by each claim.
      where pg_visible_in_snapshot(p.xid, (select s from snapshot))
      order by e.xid, e.pos limit p_max
    ), fresh as materialized (
      select e.xid, e.pos from stint.entries e
      where e.lane = p_lane and (e.xid, e.pos) > (f.xid, f.pos)
      order by e.xid, e.pos limit p_max - (select count(*) from late)
    )
    select (select s from snapshot),
           (select array_agg(l.xid) from late l),  (select array_agg(l.pos) from late l),
           (select array_agg(r.xid) from fresh r), (select array_agg(r.pos) from fresh r)
      into snap, late_xid, late_pos, fresh_xid, fresh_pos;
  end if;
  late  := coalesce(cardinality(late_pos), 0);
  fresh := coalesce(cardinality(fresh_pos), 0);
  if late + fresh = 0 and not p_settle then
    n := 0;
    return;
  end if;

  if fresh < p_max - late then
    new_xid := pg_snapshot_xmax(snap); new_pos := 0;
  elsif fresh > 0 then
    new_xid := fresh_xid[fresh]; new_pos := fresh_pos[fresh];
  else
    new_xid := f.xid; new_pos := f.pos;
  end if;

  -- Pending is what was pending and is still not visible, or was cut short,
  -- and what the snapshot did not see of the range just passed. Unchanged it is
  -- pointed to: rewriting hundreds of open transactions into every small claim
  -- halved the rate.
  if same and (stint.unseen(snap, coalesce(f.pending, 0) + 1) < xid8send(new_xid)) is not true then
    pend := f.pending; pend_n := f.listed;
  else
    if same then
      was := stint.frontier(p_lane);
    end if;
    select array_agg(p.x order by p.x), array_agg(p.q order by p.x) into pend_xid, pend_pos
    from (
      select o.xid as x,
             case when o.xid = late_xid[p_max] then late_pos[p_max] else o.pos end as q
      from unnest(was.pending_xid, was.pending_pos) as o(xid, pos)
      where not pg_visible_in_snapshot(o.xid, snap) or o.xid >= late_xid[p_max]
      union all
      select x, 0 from pg_snapshot_xip(snap) as x where x >= f.xid and x < new_xid
    ) p;
    pend := cardinality(pend_xid);
    if pend_xid = was.pending_xid and pend_pos = was.pending_pos then
      pend_n := f.listed; pend_xid := null; pend_pos := null;
    end if;
  end if;

  n := f.n + 1;
  positions := coalesce(late_pos || fresh_pos, '{}');
  insert into stint.claims (lane, n, nonce, engine, serial, low, xid, pos, pending, pending_n, pending_xid, pending_pos, positions)
    values (p_lane, n, p_nonce, p_engine, p_serial, p_low, new_xid, new_pos, pend, pend_n, pend_xid, pend_pos, positions);
  -- The disk is waited for outside the lane's lock, by the transaction that
  -- the program sends after this one.
  ok := set_config('synchronous_commit', 'off', true) is null;
end
$$;

-- Take up to p_max entries of several lanes, one after the other, each by a claim
-- of its own, and of each at most p_most of them; the claims' serial
-- numbers count up from p_serial. Of each lane that
-- was come to the answer has what claim answers of it, with how many entries it
-- took; the positions stand one behind the other.
--
-- From the second lane on this transaction has a number, which its own snapshots
-- do not list: it reads as one that has ended. Having appended nothing, and being
-- about to append nothing, it is to every lane as one that has. Lanes are tried and
-- never waited for, since it holds the locks of those before.
create function stint.claim_lanes(p_engine bigint, p_serial bigint, p_low bigint, p_nonce bigint, p_lanes bigint[],
  p_max integer, p_settle boolean[], p_most integer[], out n bigint[], out taken integer[], out positions bigint[])
language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  c    record;
  room integer := p_max;
begin
  for i in 1 .. cardinality(p_lanes) loop
    exit when room <= 0;
    c := stint.claim(p_engine, p_serial + i - 1, p_low, p_nonce, p_lanes[i], least(room, p_most[i]), false, p_settle[i], i > 1);
    n[i] := c.n;
    taken[i] := coalesce(cardinality(c.positions), 0);
    positions := positions || c.positions;
    room := room - taken[i];
  end loop;
end
$$;

-- The positions that a claim took, null when it was not recorded. The little
-- WAL that this writes makes the transaction's commit a synchronous one, which
-- flushes the claim's asynchronous commit as well: outside the lane's lock and
-- grouped with what others flush at the time. Those of several lanes, whose numbers
-- go up to p_last, are of one transaction.
create function stint.barrier(p_engine bigint, p_serial bigint, p_last bigint default null, out positions bigint[]) language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  written pg_lsn;
begin
  if p_last is null then
    select c.positions into positions from stint.claims c where c.engine = p_engine and c.serial = p_serial;
  else
    select array_agg(p.pos) into positions from stint.claims c cross join unnest(c.positions) as p(pos)
      where c.engine = p_engine and c.serial between p_serial and p_last having count(*) > 0;
  end if;
  if found then
    perform stint.durable();
    written := pg_logical_emit_message(true, 'stint', '');
  end if;
end
$$;

-- The entries at some positions, in any order, with their contents. What was
-- appended together stands together, nearly always: then one walk along the
-- index is less than half of so many probes. What is as usual is null, which
-- costs nothing to send: a job whose id is the position, its first attempt, no
-- losses, created and due when it became ready.
-- Nearly always nothing is cancelled; then none of many is asked about it.
create function stint.fetch(p_at bigint[])
returns table (pos bigint, job bigint, queue text, priority smallint, kind text, attempt integer, losses smallint,
  suspect smallint, ready timestamptz, created timestamptz, due timestamptz, timeout bigint, policy bigint,
  retry jsonb, args jsonb, metadata jsonb, tags text[], urn text, source text, correlation text, max_losses smallint,
  start_by timestamptz, recovered bigint, schedule text, nth bigint, occurrence timestamptz, limits text, cancelled boolean, flow bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_nestloop = off set jit = off
as $$
declare
  any_cancelled boolean := true;
  low  bigint;
  high bigint;
begin
  if cardinality(p_at) >= 20 then
    select min(u.at), max(u.at), exists (select from stint.cancellations) into low, high, any_cancelled
      from (select unnest(p_at) as at) u;
  end if;
  -- The same twice, for a plan of each: one for both takes half as long again to begin.
  if high - low < 3 * cardinality(p_at) then
    return query
      select e.pos, e.job, e.queue::text, e.priority::smallint, e.kind::text, nullif(e.attempt, 1)::integer, nullif(e.losses, 0)::smallint, nullif(e.suspect, 0)::smallint,
             coalesce(e.due, e.created), case when b.pos is not null then b.created when e.due is not null then e.created end,
             coalesce(b.due, b.created),
             coalesce(b.timeout, e.timeout)::bigint, coalesce(b.policy, e.policy), coalesce(b.retry, e.retry),
             coalesce(b.args, e.args), coalesce(b.metadata, e.metadata), coalesce(b.tags, e.tags),
             coalesce(b.urn, e.urn), coalesce(b.source, e.source), coalesce(b.correlation, e.correlation), coalesce(b.max_losses, e.max_losses)::smallint,
             coalesce(b.start_by, e.start_by), coalesce(b.recovered, e.recovered),
             coalesce(b.schedule, e.schedule), coalesce(b.nth, e.nth), coalesce(b.occurrence, e.occurrence), e.limits,
             case when any_cancelled then exists (select from stint.cancellations c where c.job in (coalesce(e.job, e.pos), coalesce(b.flow, e.flow))) end,
             coalesce(b.flow, e.flow)
      from (select unnest(p_at) as at) a join stint.entries e on e.pos = a.at and e.pos between low and high -- merged
      left join lateral (select * from stint.entries l where l.pos = e.body offset 0) b on true;
  else
    return query
      select e.pos, e.job, e.queue::text, e.priority::smallint, e.kind::text, nullif(e.attempt, 1)::integer, nullif(e.losses, 0)::smallint, nullif(e.suspect, 0)::smallint,
             coalesce(e.due, e.created), case when b.pos is not null then b.created when e.due is not null then e.created end,
             coalesce(b.due, b.created),
             coalesce(b.timeout, e.timeout)::bigint, coalesce(b.policy, e.policy), coalesce(b.retry, e.retry),
             coalesce(b.args, e.args), coalesce(b.metadata, e.metadata), coalesce(b.tags, e.tags),
             coalesce(b.urn, e.urn), coalesce(b.source, e.source), coalesce(b.correlation, e.correlation), coalesce(b.max_losses, e.max_losses)::smallint,
             coalesce(b.start_by, e.start_by), coalesce(b.recovered, e.recovered),
             coalesce(b.schedule, e.schedule), coalesce(b.nth, e.nth), coalesce(b.occurrence, e.occurrence), e.limits,
             case when any_cancelled then exists (select from stint.cancellations c where c.job in (coalesce(e.job, e.pos), coalesce(b.flow, e.flow))) end,
             coalesce(b.flow, e.flow)
      from unnest(p_at) as a(at) cross join lateral (select * from stint.entries l where l.pos = a.at offset 0) e -- probed
      left join lateral (select * from stint.entries l where l.pos = e.body offset 0) b on true;
  end if;
end
$$;

-- Which of some positions have no execution, with their places among them, in any
-- order. As in fetch they stand together, nearly always.
create function stint.unfinished(p_at bigint[]) returns table (pos bigint, i bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_nestloop = off set jit = off
as $$
declare
  low  bigint;
  high bigint;
begin
  select min(u.at), max(u.at) into low, high from (select unnest(p_at) as at) u;
  if high - low < 3 * cardinality(p_at) then
    return query
      select a.at, a.i from unnest(p_at) with ordinality as a(at, i)
      where not exists (select from stint.executions x where x.pos = a.at and x.pos between low and high); -- merged
  else
    return query
      select a.at, a.i from unnest(p_at) with ordinality as a(at, i)
      where not exists (select from stint.executions x where x.pos = a.at offset 0); -- probed
  end if;
end
$$;

-- Record how attempts ended, with what follows them. Ages are microseconds
-- before now. Columns in which nothing is said may be null as a whole: that is how
-- every first attempt is recorded that completed its job and returned nothing.
-- A program that does not send them again says so: then a unique violation says that some
-- are recorded already, and is the whole answer.
create function stint.finish(p_engine bigint,
  c_lane bigint[], c_n bigint[], c_nonce bigint[],
  x_pos bigint[], x_job bigint[], x_nonce bigint[], x_attempt integer[], x_slot smallint[],
  x_started bigint[], x_ended bigint[], x_outcome smallint[], x_final boolean[],
  x_reason text[], x_result text[], x_error text[],
  s_pos bigint[], s_lane bigint[], s_delay bigint[], s_why text[], s_queue text[], s_priority smallint[],
  s_kind text[], s_attempt integer[], s_losses smallint[], s_suspect smallint[],
  s_undecided text[] default null, s_faulty boolean[] default null, p_again boolean default true, x_limits text[] default null, s_awaits text[] default null, x_flow boolean[] default null)
returns integer language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  ok boolean;
begin
  ok := stint.fence(p_engine);
  -- After a failover to a standby that lagged, positions are handed out
  -- again: an outcome counts for the claim that it came from only.
  -- Looked up by the primary key: what an exists asks would be a join, and that
  -- reads all that the engine ever claimed.
  perform from unnest(c_lane, c_n, c_nonce) as k(lane, n, nonce)
    where (select c.nonce = k.nonce and c.engine = p_engine from stint.claims c where c.lane = k.lane and c.n = k.n) is not true;
  if found then
    raise exception 'a claim of engine % is gone', p_engine using errcode = 'ST003';
  end if;
  return stint.record(p_engine, x_pos, x_job, x_nonce, x_attempt, x_slot, x_started, x_ended, x_outcome, x_final,
    x_reason, x_result, x_error, s_pos, s_lane, s_delay, s_why, s_queue, s_priority, s_kind, s_attempt, s_losses, s_suspect,
    s_undecided, s_faulty, p_again, x_limits, s_awaits, x_flow);
end
$$;

-- What is said of the jobs of a flow that is cancelled, or of what a job has called that is.
create function stint.why_with(p_parent bigint, p_why text) returns text language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select format(case when exists (select from stint.flows f where f.flow = p_parent) then 'its flow %s was cancelled' else 'job %s, which called it, was cancelled' end, p_parent)
      || coalesce(': ' || nullif(p_why, ''), '')
$$;

-- When a job was cancelled, itself or with its flow or what called it, and what was said. This and the two below have no settings
-- of their own, so that they become part of the statement that asks.
create function stint.cancelled(p_job bigint) returns table (at timestamptz, why text) language sql stable rows 1
as $$
  select c.at, c.why from stint.cancellations c where c.job = p_job
  union all
  select c.at, stint.why_with(c.job, c.why) from stint.entries e join stint.cancellations c on c.job = e.flow where e.pos = p_job limit 1
$$;

-- What was said when a job was cancelled.
create function stint.why_cancelled(p_job bigint) returns text language sql stable
as $$ select (select c.why from stint.cancelled(p_job) as c) $$;

-- When an attempt ended that never began: when its job was cancelled, so that the
-- job reads the same before and after an engine records it.
create function stint.when_cancelled(p_job bigint, p_clock timestamptz, p_ended bigint) returns timestamptz language sql stable
as $$ select least(p_clock - p_ended * interval '1 microsecond', (select c.at from stint.cancelled(p_job) as c)) $$;

-- Append executions and, for those that are new, their successors. To insert what
-- may be there takes twice the time of what should not be there, and a third more
-- of WAL: see finish. (Elements by their subscripts are cheaper than unnest,
-- which copies each column first.)
create function stint.record(p_engine bigint,
  x_pos bigint[], x_job bigint[], x_nonce bigint[], x_attempt integer[], x_slot smallint[],
  x_started bigint[], x_ended bigint[], x_outcome smallint[], x_final boolean[],
  x_reason text[], x_result text[], x_error text[],
  s_pos bigint[], s_lane bigint[], s_delay bigint[], s_why text[], s_queue text[], s_priority smallint[],
  s_kind text[], s_attempt integer[], s_losses smallint[], s_suspect smallint[],
  s_undecided text[] default null, s_faulty boolean[] default null, p_again boolean default true, x_limits text[] default null, s_awaits text[] default null, x_flow boolean[] default null)
returns integer language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  -- The number comes before the clock: see sum_up.
  xid     xid8 := pg_current_xact_id();
  clock   timestamptz := clock_timestamp();
  oldest  timestamptz; -- null for the oldest of all
  done    bigint[];
  written integer;
  whole   boolean;
  want    integer;
  waits   integer;
  anew    integer;
  deleted boolean; cancelled boolean; summed boolean;
  ended   bigint[]; -- jobs of flows
  lasts   bigint[]; -- positions whose jobs were cancelled: no attempt follows
begin
  -- A cancelled job is not tried again: this attempt was its last.
  if s_pos is not null and exists (select from stint.cancellations) then
    select array_agg(s.pos) into lasts
      from unnest(s_pos) as s(pos) join stint.entries e on e.pos = s.pos
      join stint.cancellations c on c.job = coalesce(e.job, e.pos);
  end if;
  if p_again then
    with inserted as (
      insert into stint.executions as x
        (pos, job, nonce, engine, attempt, slot, started, finished, outcome, final, reason, result, error)
      select r.pos, r.job, r.nonce, p_engine, coalesce(r.attempt, 1), r.slot,
             case when r.outcome = 6 and r.slot = 0 then stint.when_cancelled(coalesce(r.job, r.pos), clock, r.ended)
                  else clock - r.started * interval '1 microsecond' end,
             case when r.outcome = 6 and r.slot = 0 then stint.when_cancelled(coalesce(r.job, r.pos), clock, r.ended)
                  else clock - r.ended * interval '1 microsecond' end,
             case when lasts is not null and r.pos = any (lasts) then 6 else coalesce(r.outcome, 1) end,
             coalesce(r.final, true) or lasts is not null and r.pos = any (lasts),
             case when lasts is not null and r.pos = any (lasts) then stint.why_cancelled(coalesce(r.job, r.pos))
                  when r.outcome = 6 then coalesce(r.reason, stint.why_cancelled(coalesce(r.job, r.pos))) else r.reason end,
             r.result::jsonb, r.error::jsonb
      from unnest(x_pos, x_job, x_nonce, x_attempt, x_slot, x_started, x_ended, x_outcome, x_final, x_reason, x_result, x_error)
        as r(pos, job, nonce, attempt, slot, started, ended, outcome, final, reason, result, error)
      on conflict do nothing
      returning x.pos, x.finished
    )
    select array_agg(i.pos), count(*), min(i.finished) into done, written, oldest from inserted i;
  else
    insert into stint.executions
      (pos, job, nonce, engine, attempt, slot, started, finished, outcome, final, reason, result, error)
    select x_pos[i], x_job[i], x_nonce[i], p_engine, coalesce(x_attempt[i], 1), x_slot[i],
           case when x_outcome[i] = 6 and x_slot[i] = 0 then stint.when_cancelled(coalesce(x_job[i], x_pos[i]), clock, x_ended[i])
                else clock - x_started[i] * interval '1 microsecond' end,
           case when x_outcome[i] = 6 and x_slot[i] = 0 then stint.when_cancelled(coalesce(x_job[i], x_pos[i]), clock, x_ended[i])
                else clock - x_ended[i] * interval '1 microsecond' end,
           case when lasts is not null and x_pos[i] = any (lasts) then 6 else coalesce(x_outcome[i], 1) end,
           coalesce(x_final[i], true) or lasts is not null and x_pos[i] = any (lasts),
           case when lasts is not null and x_pos[i] = any (lasts) then stint.why_cancelled(coalesce(x_job[i], x_pos[i]))
                when x_outcome[i] = 6 then coalesce(x_reason[i], stint.why_cancelled(coalesce(x_job[i], x_pos[i]))) else x_reason[i] end,
           x_result[i]::jsonb, x_error[i]::jsonb
    from (select generate_series(1, cardinality(x_pos)) as i) g; -- in from itself, its rows would be kept in memory or a file first
    done := x_pos; written := cardinality(x_pos);
  end if;
  -- What is nearly never so, in one question. It comes after the insertion: by
  -- then it can be seen that something was deleted.
  select exists (select from stint.deletions d where d.engine = p_engine), exists (select from stint.cancellations),
         coalesce(oldest, clock - (select max(u.ended) from (select unnest(x_ended) as ended) u) * interval '1 microsecond')
           < greatest(clock - stint.sum_lag(), m.until, m.aim)
    into deleted, cancelled, summed from stint.summed m where m.one;
  -- A repetition of what was deleted meanwhile met no conflict.
  if written > 0 and deleted then
    delete from stint.executions x
      where x.pos = any (done) and not exists (select from stint.entries e where e.pos = x.pos);
    select array_agg(d), count(*) into done, written
      from unnest(done) as d where exists (select from stint.entries e where e.pos = d);
  end if;
  -- What ended long ago may belong to a time that was summed up. So may anything
  -- while the clock is behind where it once was.
  if written > 0 and summed then
    perform stint.sum_late(done);
  end if;
  if written > 0 and cancelled then
    perform stint.cancel_calls(array(select coalesce(x.job, x.pos) from stint.executions x where x.pos = any (done) and x.outcome = 6));
    delete from stint.cancellations c using stint.executions x
      where x.pos = any (done) and x.final and c.job = coalesce(x.job, x.pos);
  end if;
  -- What comes again under a limit that keeps an order holds up the others of its gate.
  if x_limits is not null and written > 0 then
    insert into stint.reruns as o (gate, job, failed)
      select g.gate, coalesce(x.job, x.pos), coalesce(x.final, true)
      from unnest(x_pos, x_job, x_final, x_limits) as x(pos, job, final, limits)
      cross join unnest(string_to_array(x.limits, chr(10))) as l(line)
      cross join stint.gate_of(l.line) as g(gate)
      where x.pos = any (done) and (lasts is null or x.pos <> all (lasts))
        and stint.rule_of(g.gate) like case when coalesce(x.final, true) then '%,halt%' else '%,in-order%' end
      on conflict (gate, job) do update set failed = true where excluded.failed;
  end if;
  whole := written = cardinality(x_pos) and lasts is null;
  -- Who waits for them is looked at after the commit, but for what waits for one alone.
  if x_flow is not null and written > 0 then
    ended := array(
      select coalesce(x.job, x.pos) from unnest(x_pos, x_job, x_final, x_flow) as x(pos, job, final, flow)
      where x.flow and (whole or x.pos = any (done)) and (coalesce(x.final, true) or x.pos = any (lasts)));
    perform stint.note(ended);
    if cardinality(ended) between 1 and 10 then
      perform stint.begin_next(ended, clock);
    end if;
  end if;
  if s_pos is null or written = 0 then
    return written;
  end if;
  if lasts is not null then
    select coalesce(array_agg(d), '{}') into done from unnest(done) as d where d <> all (lasts);
  end if;
  -- Only what was recorded now has a successor: it is written with it.
  insert into stint.waiting (job, due, body, why, attempt, priority, losses, suspect, queue, kind, undecided, faulty, limits, awaits)
    select coalesce(e.job, e.pos), case when s.undecided is null then clock + s.delay * interval '1 microsecond' end, coalesce(e.body, e.pos),
           s.why, s.attempt, s.priority, s.losses, s.suspect, s.queue, s.kind, s.undecided, nullif(s.faulty, false), e.limits, s.awaits::jsonb
    from unnest(s_pos, s_delay, s_why, s_queue, s_priority, s_kind, s_attempt, s_losses, s_suspect, s_undecided, s_faulty, s_awaits)
      as s(pos, delay, why, queue, priority, kind, attempt, losses, suspect, undecided, faulty, awaits)
    join stint.entries e on e.pos = s.pos
    where s.why is not null and (whole or s.pos = any (done));
  get diagnostics waits = row_count;
  -- A signal that came meanwhile did not see the row.
  if s_awaits is not null then
    perform stint.note(array(
      select coalesce(e.job, e.pos) from unnest(s_pos, s_awaits) as s(pos, awaits) join stint.entries e on e.pos = s.pos
      where s.awaits is not null and (whole or s.pos = any (done))));
  end if;
  insert into stint.entries (lane, job, body, attempt, priority, losses, suspect, queue, kind, faulty, limits)
    select s.lane, coalesce(e.job, e.pos), coalesce(e.body, e.pos),
           s.attempt, s.priority, s.losses, s.suspect, s.queue, s.kind, nullif(s.faulty, false), e.limits
    from unnest(s_pos, s_lane, s_why, s_queue, s_priority, s_kind, s_attempt, s_losses, s_suspect, s_faulty)
      with ordinality as s(pos, lane, why, queue, priority, kind, attempt, losses, suspect, faulty, i)
    join stint.entries e on e.pos = s.pos
    where s.why is null and (whole or s.pos = any (done))
    order by s.i;
  get diagnostics anew = row_count;
  select count(*) into want from unnest(s_pos) as s(pos) where whole or s.pos = any (done);
  if waits + anew <> want then
    raise exception '% successors cannot be written: their entries are gone', want - waits - anew using errcode = 'ST003';
  end if;
  -- What waits may be due before anything that engines know of. What is ready again, or undecided, may be for an engine
  -- with its kind, or with its retry function, only.
  perform pg_notify('stint', case when anew > 0 or exists (select from unnest(s_undecided) as u where u is not null) then '' else 'due ' || pg_current_xact_id() end);
  return written;
end
$$;

-- Put jobs that wait for a decision where it can be recorded: each gets an entry
-- in the lane that no engine claims, after its attempts. Jobs that another session is
-- deciding about, or cancelling, are passed over.
create function stint.take_undecided(p_jobs bigint[], p_attempts integer[])
returns table (job bigint, pos bigint) language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
#variable_conflict use_column
begin
  return query
    with mine as materialized (
      select w.job from unnest(p_jobs, p_attempts) as d(job, attempt)
      join stint.waiting w on w.job = d.job and w.attempt = d.attempt and w.undecided is not null
      order by w.job for update of w skip locked
    ), gone as (
      delete from stint.waiting w using mine where w.job = mine.job returning w.*
    )
    insert into stint.entries as e (lane, job, body, attempt, priority, losses, suspect, queue, kind, faulty, limits)
    select -1, g.job, g.body, g.attempt, g.priority, g.losses, g.suspect, g.queue, g.kind, g.faulty, g.limits
    from gone g order by g.job
    returning e.job, e.pos;
end
$$;

-- End cancelled jobs that wait. One that was never ready has its contents in
-- the lane that no engine claims: there its only execution stands. Another gets an
-- entry there of its own, after its earlier attempts.
create function stint.cancel_waiting(p_jobs bigint[]) returns integer language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  clock timestamptz := clock_timestamp();
  waits stint.waiting[];
  jobs  bigint[];
begin
  -- A row that is being promoted is waited for: it is gone then, and its job
  -- in the log, where its claimer sees the marker. A flow ends when its jobs have.
  with gone as (
    delete from stint.waiting d where d.job = any (p_jobs) and (select f.flow from stint.flows f where f.flow = d.job) is null returning d
  )
  select array_agg(g.d), array_agg((g.d).job) into waits, jobs from gone g;
  if jobs is null then
    return 0;
  end if;
  with cut as materialized (
    select w.*, least(clock, c.at) as ended, c.why as reason,
           (select e.pos from stint.entries e where e.pos = w.job and e.lane = -1) is not null
             and (select x.pos from stint.executions x where x.job = w.job limit 1) is null
             and (select x.pos from stint.executions x where x.pos = w.job) is null as untried
    from unnest(waits) as w left join stint.cancellations c on c.job = w.job
  ), added as (
    insert into stint.entries (lane, job, body, attempt, priority, losses, queue, kind, faulty, limits)
      select -1, w.job, w.body, w.attempt, w.priority, w.losses, w.queue, w.kind, w.faulty, w.limits from cut w where not w.untried
      returning pos, job, attempt
  )
  insert into stint.executions (pos, nonce, engine, started, finished, job, attempt, slot, outcome, final, reason)
    select w.job, 0, 0, w.ended, w.ended, null, w.attempt, 0, 6, true, w.reason from cut w where w.untried
    union all
    select a.pos, 0, 0, least(clock, c.at), least(clock, c.at), a.job, a.attempt, 0, 6, true, c.why
      from added a left join stint.cancellations c on c.job = a.job;
  perform stint.note(array(select e.pos from stint.entries e where e.pos = any (jobs) and e.flow is not null));
  delete from stint.cancellations c where c.job = any (jobs);
  return cardinality(jobs);
end
$$;

-- Where cancelled jobs are ready that no engine has claimed: after the frontier of
-- the lane, or in progress when that passed.
create view stint.cancelled_ready as
select c.job, e.pos, e.lane, e.attempt, c.at, c.why
from stint.cancellations c
cross join lateral (
  select l.pos, l.lane, l.xid, l.attempt from stint.entries l where l.pos = c.job
  union all
  select l.pos, l.lane, l.xid, l.attempt from stint.entries l where l.job = c.job
) e
cross join lateral stint.frontier(e.lane) f
where e.lane >= 0
  and ((e.xid, e.pos) > (f.xid, f.pos)
    or exists (select from unnest(f.pending_xid, f.pending_pos) as p(xid, pos) where p.xid = e.xid and p.pos < e.pos));
comment on column stint.cancelled_ready.job is 'the job''s id';
comment on column stint.cancelled_ready.at  is 'when it was cancelled';

-- End cancelled jobs that are ready: their entries go to the lane that no engine
-- claims, so no claim finds them, and their final executions stand there. While
-- the locks of their lanes are held no claim is under way. Lanes that are busy are
-- passed over, unless it is to wait.
create function stint.cancel_ready(p_jobs bigint[], p_wait boolean) returns integer language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  held  bigint[] := '{}';
  at    bigint;
  key   bigint;
  clock timestamptz;
  ended integer;
  noted bigint[];
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'stint works in read committed transactions only' using errcode = 'ST001';
  end if;
  -- In the order of the lanes: in any other, two of these would wait for each other.
  for at in select distinct r.lane from stint.cancelled_ready r where r.job = any (p_jobs) order by 1 loop
    key := at # ('stint.entries'::regclass::oid::bigint << 24); -- as in claim
    if not p_wait then
      continue when not pg_try_advisory_xact_lock(key);
    else
      perform pg_advisory_xact_lock(key);
    end if;
    held := held || at;
  end loop;
  if held = '{}' then
    return 0;
  end if;
  clock := clock_timestamp();
  -- A statement of its own: its snapshot is younger than the locks.
  with ready as materialized (
    select r.* from stint.cancelled_ready r where r.job = any (p_jobs) and r.lane = any (held)
  ), moved as (
    update stint.entries e set lane = -1 from ready r where e.pos = r.pos
  ), done as (
    insert into stint.executions (pos, nonce, engine, started, finished, job, attempt, slot, outcome, final, reason)
      select r.pos, 0, 0, least(clock, r.at), least(clock, r.at), nullif(r.job, r.pos), r.attempt, 0, 6, true, r.why from ready r
  )
  , gone as (
    delete from stint.cancellations c using ready r where c.job = r.job returning c.job
  )
  select count(*), array_agg(g.job) filter (where exists (select from stint.entries e where e.pos = g.job and e.flow is not null))
    into ended, noted from gone g;
  perform stint.note(noted);
  return ended;
end
$$;

-- See what became of jobs whose markers are committed, and end those that no engine
-- has. Null is one that was on its way from one place to another.
create function stint.settle(p_jobs bigint[]) returns text[] language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  answers text[];
begin
  -- What a crash takes back here the markers bring about again, so that no lane
  -- is locked for as long as the disk takes.
  perform set_config('synchronous_commit', 'off', true);
  perform stint.cancel_calls(p_jobs);
  perform stint.cancel_waiting(p_jobs);
  perform stint.cancel_ready(p_jobs, true);
  -- A statement of its own: it sees what those before waited for. And one
  -- statement: between two a job could end.
  select array_agg(case
      when not exists (select from stint.entries e where e.pos = u.job and e.job is null) then 'not found'
      when x.outcome in (6, 8) then 'cancelled'
      when x.outcome is not null then 'too late'
      when exists (select from stint.flows f where f.flow = u.job) then 'asked'
      when exists (select from stint.waiting w where w.job = u.job)
        or exists (select from stint.cancelled_ready r where r.job = u.job) then null
      else 'asked' end order by u.i)
    into answers
    from unnest(p_jobs) with ordinality as u(job, i)
    left join lateral (
      select y.outcome from stint.executions y where y.pos = u.job and y.job is null and y.final
      union all
      select y.outcome from stint.executions y where y.job = u.job and y.final) x on true;
  delete from stint.cancellations c using unnest(p_jobs, answers) as a(job, answer)
    where c.job = a.job and a.answer in ('not found', 'cancelled', 'too late');
  -- A promotion cancels the jobs of a flow, and looks at who waits for one.
  if exists (select from stint.entries e where e.pos = any (p_jobs) and (e.flow is not null or (select f.flow from stint.flows f where f.flow = e.pos) is not null)) then
    perform pg_notify('stint', '');
  end if;
  return answers;
end
$$;

-- Record the success of one attempt, as the last act of the handler's own
-- transaction.
create function stint.complete(p_engine bigint, p_lane bigint, p_n bigint, p_nonce bigint, p_pos bigint, p_job bigint,
  p_attempt integer, p_slot integer, p_started bigint, p_result text, p_flow boolean default null)
returns integer language sql
set search_path = pg_catalog, pg_temp
as $$
  select stint.finish(p_engine, array[p_lane], array[p_n], array[p_nonce],
    array[p_pos], array[nullif(p_job, p_pos)], array[p_nonce], array[p_attempt], array[p_slot::smallint],
    array[p_started], array[0::bigint], array[1::smallint], array[true], null, array[p_result], null,
    null, null, null, null, null, null, null, null, null, null, x_flow => case when p_flow then array[true] end)
$$;

-- What steps come to that take signals: the first of its name that no step has, or that
-- none came if the time is over; null while one may come. Other steps have their results. Whether
-- a signal is taken is decided by the row of the step, which is unique.
create function stint.signals_for(p_job bigint[], p_name text[], p_result text[], p_signal text[], p_until timestamptz[], p_clock timestamptz,
  out results text[], out taken bigint[]) language plpgsql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  r record;
  f record;
begin
  select array_agg(case when s.signal is null then s.result end order by s.i), array_agg(null::bigint) into results, taken
    from unnest(p_result, p_signal) with ordinality as s(result, signal, i);
  for r in
    select distinct on (s.job, s.name collate "C") s.i, s.job, s.signal, s.until
    from unnest(p_job, p_name, p_signal, p_until) with ordinality as s(job, name, signal, until, i)
    where s.signal is not null and not exists (select from stint.steps t where t.job = s.job and t.name = s.name)
    order by s.job, s.name collate "C", s.i
  loop
    select s.n, json_build_object('signal', s.n, 'value', s.value)::text as result into f from stint.signals s
      where s.job = r.job and s.name = r.signal and not exists (select from stint.steps t where t.signal = s.n) and (s.n = any (taken)) is not true
      order by s.job, s.name, s.n limit 1;
    if found then
      taken[r.i] := f.n; results[r.i] := f.result;
    else
      results[r.i] := case when r.until <= p_clock then '{"timeout": true}' end;
    end if;
  end loop;
end
$$;

-- Record steps of attempts, unless they are recorded already. For each there is what is recorded: nothing
-- where the attempt cannot record it, since its claim is gone or it has an outcome, also one that was
-- deleted since.
create function stint.record_steps(p_engine bigint, p_lane bigint[], p_n bigint[], p_nonce bigint[], p_pos bigint[],
  p_job bigint[], p_name text[], p_began bigint[], p_ended bigint[], p_result text[], p_signal text[] default null, p_until timestamptz[] default null,
  p_question text[] default null, out fresh boolean[], out results text[], out questions text[], out untils timestamptz[]) language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  ok    boolean := stint.fence(p_engine);
  clock timestamptz := clock_timestamp();
  taken bigint[];  -- the signals
  may   bigint[];  -- if there are any, or questions, the steps that their attempt can record
begin
  if p_signal is not null then
    select t.results, t.taken into p_result, taken from stint.signals_for(p_job, p_name, p_result, p_signal, p_until, clock) as t;
  end if;
  with able as materialized (
    select s.* from unnest(p_lane, p_n, p_nonce, p_pos, p_job, p_name, p_began, p_ended, p_result, taken, p_question, p_until)
      with ordinality as s(lane, n, nonce, pos, job, name, began, ended, result, signal, question, until, i)
    where (select c.nonce = s.nonce and c.engine = p_engine from stint.claims c where c.lane = s.lane and c.n = s.n)
      and exists (select from stint.entries e where e.pos = s.pos)
      and not exists (select from stint.executions x where x.pos = s.pos)
  ), added as (
    insert into stint.steps (job, name, pos, began, ended, result, signal, question, until)
      select s.job, s.name, s.pos, clock - s.began * interval '1 microsecond', clock - s.ended * interval '1 microsecond', nullif(s.result, '')::jsonb, s.signal,
             s.question::jsonb, case when s.question is not null then s.until end
      from able s
      where case when s.question is null then s.result <> ''
                 else not exists (select from stint.steps t where t.job = s.job and t.name = s.name) end -- it would wait for who answers
      order by s.job, s.name collate "C" -- as every call does, so that none waits for another crosswise
      on conflict do nothing
      returning job, name)
  select array_agg(a.job is not null order by s.i), (select array_agg(b.i) from able b where p_signal is not null or p_question is not null) into fresh, may
    from unnest(p_job, p_name) with ordinality as s(job, name, i) left join added a on a.job = s.job and a.name = s.name;
  if p_question is not null then
    -- The time of a question is over, unless somebody has it in hand, who is answering. So an answer that was
    -- accepted counts, and no engine waits for a transaction of a program's.
    update stint.steps t set result = '{"timeout": true}', ended = clock
      from (select t.job, t.name from unnest(p_job, p_name, p_question) with ordinality as s(job, name, question, i)
            join stint.steps t on t.job = s.job and t.name = s.name and t.job = any (p_job) -- or it begins with all that are open
            where s.question is not null and s.i = any (may) and t.result is null and t.until <= clock
            order by t.job, t.name collate "C" for no key update of t skip locked) l
      where t.job = l.job and t.name = l.name;
    select array_agg(t.question::text order by s.i), array_agg(t.until order by s.i) into questions, untils
      from unnest(p_job, p_name, p_question) with ordinality as s(job, name, question, i)
      left join stint.steps t on s.question is not null and t.job = s.job and t.name = s.name and t.job = any (p_job) and t.result is null;
  end if;
  if p_question is not null then
    -- What was called may have ended meanwhile.
    perform stint.note(array(select distinct (q::jsonb->>'job')::bigint from unnest(p_question) as q where q::jsonb ? 'job'));
  end if;
  -- A statement of its own: it sees what the one before waited for. What waits for a signal that is not
  -- there, or that another step got meanwhile, or for an answer, is answered with nothing.
  select array_agg(coalesce(t.result::text, case when (p_signal[s.i] is not null or p_question[s.i] is not null) and s.i = any (may) then '' end) order by s.i) into results
    from unnest(p_job, p_name) with ordinality as s(job, name, i) left join stint.steps t on t.job = s.job and t.name = s.name;
end
$$;

-- Keep what attempts say, of those that the engine has and that have no outcome, and answer how many these are.
-- Both are in the order of positions, so that none waits for another crosswise. Of each: the lines of it that
-- are left out from now on, if the last one is not 0, and how far it is, if the number of that is not 0; of each line
-- also which attempt it is of, from 1.
create function stint.keep_logs(p_engine bigint, p_lane bigint[], p_n bigint[], p_nonce bigint[], p_pos bigint[], p_job bigint[],
  p_from integer[], p_to integer[], p_said integer[], p_age bigint[], p_fraction double precision[], p_text text[],
  l_of integer[], l_n integer[], l_age bigint[], l_level integer[], l_text text[])
returns integer language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  ok    boolean := stint.fence(p_engine);
  clock timestamptz := clock_timestamp();
  mine  integer[]; -- of which attempts the engine has the entry
begin
  -- A job that is being removed is left alone: its entry goes before its lines do, so that no line stays
  -- behind that is written meanwhile.
  select array_agg(s.i::integer order by s.i) into mine
    from (select u.i from unnest(p_lane, p_n, p_nonce, p_pos) with ordinality as u(lane, n, nonce, pos, i)
          cross join lateral (select from stint.entries e where e.pos = u.pos for key share skip locked) e
          where (select c.nonce = u.nonce and c.engine = p_engine from stint.claims c where c.lane = u.lane and c.n = u.n)) s;
  -- A statement of its own: it sees what ended before the lock.
  select array_agg(m.i) into mine from unnest(mine) as m(i) where not exists (select from stint.executions x where x.pos = p_pos[m.i]);
  insert into stint.lines (job, pos, n, at, level, text)
    select p_job[l.of], p_pos[l.of], l.n, clock - l.age * interval '1 microsecond', l.level, l.text
    from unnest(l_of, l_n, l_age, l_level, l_text) with ordinality as l(of, n, age, level, text, i)
    where l.of = any (mine) order by l.i
    on conflict do nothing;
  delete from stint.lines l using unnest(mine) as m(i)
    where p_to[m.i] > 0 and l.job = p_job[m.i] and l.pos = p_pos[m.i] and l.n between p_from[m.i] and p_to[m.i];
  -- The later one stays: a request may be held up.
  insert into stint.progress as p (job, pos, n, at, fraction, text)
    select p_job[m.i], p_pos[m.i], p_said[m.i], clock - p_age[m.i] * interval '1 microsecond', p_fraction[m.i], nullif(p_text[m.i], '')
    from unnest(mine) with ordinality as m(i, o) where p_said[m.i] > 0 order by m.o
    on conflict (job, pos) do update set n = excluded.n, at = excluded.at, fraction = excluded.fraction, text = excluded.text
      where p.n < excluded.n;
  return coalesce(cardinality(mine), 0);
end
$$;

-- Arguments as they are compared: of what is sealed in them there is only what is the same for
-- equal values. No text in them can look like that, since its quotes are escaped.
create function stint.comparable(args jsonb) returns jsonb language sql immutable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case when strpos(comparable.args::text, '{"$sealed": {"c": "') = 0 then comparable.args
    else regexp_replace(comparable.args::text, '\{"\$sealed": \{"c": "[\w-]*", "k": "(?:[^"\\]|\\.)*", "m": ("(?:[^"\\]|\\.)*")\}\}', '{"$sealed": {"m": \1}}', 'g')::jsonb end
$$;

-- What an idempotency key stands for: a hash of a kind and its arguments. The
-- text of jsonb is the same for equal values.
create function stint.fingerprint(kind text, args jsonb) returns bytea language sql stable strict parallel safe
set search_path = pg_catalog, pg_temp
as $$ select sha256(convert_to(fingerprint.kind || chr(10) || stint.comparable(fingerprint.args)::text, 'UTF8')) $$;

-- Take idempotency keys for jobs that are about to be stored, the first of
-- each key in a batch. Of every key the answer is the job that has it now,
-- whether that is one of these, and whether all that was asked for under it is
-- the same in kind and arguments. If anything is not, none is taken. With the
-- owner's rights: to give back a key is to delete a row, and a role that may only
-- enqueue deletes no other.
create function stint.take_keys(p_keys text[], p_fingerprints bytea[], p_jobs bigint[])
returns table (key text, job bigint, fresh boolean, same boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
#variable_conflict use_column
declare
  taken   text[] := '{}';
  more    text[];
  asked   text[]; holders bigint[]; alike boolean[]; -- what was asked for under each key, with the job that has it
  missing boolean;
begin
  loop
    -- In the order of the keys: in any other, two batches would take each
    -- other's. A key that another transaction is taking is waited for.
    with added as (
      insert into stint.idempotency (key, job, fingerprint, expires)
        select distinct on (a.key) a.key, a.job, a.fingerprint, clock_timestamp() + interval '24 hours'
        from (select k collate "C" as key, f as fingerprint, j as job, i
              from unnest(p_keys, p_fingerprints, p_jobs) with ordinality as u(k, f, j, i)) a
        order by a.key, a.i
        on conflict do nothing returning key)
      select array_agg(n.key) into more from added n;
    taken := taken || more;
    -- In a statement of its own: what committed while that one waited is not
    -- in its snapshot. A key that was forgotten meanwhile is in neither. One that
    -- was forgotten after the snapshot of a caller's transaction, and that this
    -- transaction took since, has two rows: the old one says which transaction deleted it.
    select array_agg(a.key), array_agg(k.job), array_agg(k.fingerprint = a.fingerprint), coalesce(bool_or(k.job is null), false)
      into asked, holders, alike, missing
      from unnest(p_keys, p_fingerprints) as a(key, fingerprint)
      left join lateral (
        select i.job, i.fingerprint from stint.idempotency i
        where i.key = a.key order by i.xmax = 0 desc limit 1) k on true;
    exit when not missing;
  end loop;
  return query
    select u.key, u.job, u.key = any (taken), bool_and(u.same)
    from unnest(asked, holders, alike) as u(key, job, same)
    group by u.key, u.job;
  if false = any (alike) then
    -- Not the old row of such a key: it cannot be deleted twice.
    delete from stint.idempotency k where k.key = any (taken) and k.job = any (p_jobs);
  end if;
end
$$;
revoke execute on function stint.take_keys from public;

-- The instant by which a job is to begin, refused where the job is due only after it.
create function stint.start_by(p_at timestamptz, p_due timestamptz) returns timestamptz language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
begin
  if p_at < p_due then
    raise exception 'the job is due at %, only after the time to begin by, %', p_due, p_at
      using errcode = 'check_violation', constraint = 'entries_start_by';
  end if;
  return p_at;
end
$$;

-- The microseconds of a period such as 1h30m; null if it is none.
create function stint.unique_period(p_text text) returns bigint language sql immutable
set search_path = pg_catalog, pg_temp
as $$
  select p from round(case when p_text ~ '^([0-9]+([.][0-9]+)?(w|d|h|m|s|ms|us))+$'
    then extract(epoch from regexp_replace(p_text, '([a-z])([0-9])', '\1 \2', 'g')::interval) * 1000000 end) as p where p between 1000 and 3153600000000000
$$;

-- What a text such as until-ended,by=/tenant|/id,replace makes of a job: its
-- unique key, how long it holds that (microseconds from its enqueue, or the length
-- of a calendar slot), what becomes of the job that has it, and for how long jobs that
-- replace one another are put off at most; and when either of these is over, if it is enqueued
-- now. Values are compared as jsonb.
create function stint.unique_key(p_unique text, p_kind text, p_args jsonb,
  out key text, out scope text, out period bigint, out mode text, out latest bigint, out until timestamptz)
language plpgsql stable
set search_path = pg_catalog, pg_temp
as $$
declare
  clock    timestamptz := clock_timestamp();
  parts    text[] := string_to_array(p_unique, ',');
  part     text;
  pointers text[];
  across   text;
  path     text[];
  at       jsonb;
  selected jsonb := '{}';
begin
  scope := split_part(parts[1], ':', 1);
  if parts[1] is null or parts[1] !~ '^(until-ended|until-started|(within|slot):.*)$' then
    raise exception 'stint: % is not until-ended, until-started, within:1h or slot:24h', quote_nullable(parts[1]) using errcode = '22023';
  elsif scope in ('within', 'slot') then
    period := stint.unique_period(substr(parts[1], length(scope) + 2));
    if period is null then
      raise exception 'stint: % is no period for unique jobs', quote_literal(parts[1]) using errcode = '22023';
    end if;
  end if;
  foreach part in array parts[2:] loop
    if part like 'by=_%' and pointers is null then
      pointers := string_to_array(substr(part, 4), '|');
      if cardinality(pointers) > 1 then
        pointers := array(select distinct p collate "C" from unnest(pointers) as p order by 1);
      end if;
    elsif part ~ '^across=[^[:cntrl:]]+$' and across is null then
      across := substr(part, 8);
    elsif part in ('keep', 'replace', 'replace-keep-time', 'cancel-old') and mode is null and (part <> 'cancel-old' or scope = 'until-ended') then
      mode := part;
    elsif part like 'debounce:%' and mode is null and period is null then
      mode := 'debounce';
      latest := stint.unique_period(substr(part, 10));
      if latest is null then
        raise exception 'stint: % is no period for unique jobs', quote_literal(part) using errcode = '22023';
      end if;
    else
      raise exception 'stint: % is not by=/id|/tenant, by=none, across=name, keep, replace, replace-keep-time or, without a period, debounce:1m or, for until-ended, cancel-old, each once', quote_literal(part)
        using errcode = '22023';
    end if;
  end loop;
  mode := coalesce(mode, 'keep');
  p_args := stint.comparable(p_args);
  foreach part in array coalesce(nullif(pointers, '{none}'), '{}') loop
    if part !~ '^(/([^~]|~[01])*)+$' then
      raise exception 'stint: % is no JSON pointer, such as /id', quote_literal(part) using errcode = '22023';
    end if;
    path := (string_to_array(part, '/'))[2:];
    if part like '%~%' then
      path := array(select replace(replace(t, '~1', '/'), '~0', '~') from unnest(path) with ordinality as u(t, i) order by i);
    end if;
    at := p_args #> path;
    if at is null then
      raise exception 'stint: the arguments have nothing at %', part using errcode = '22023';
    end if;
    selected := selected || jsonb_build_object(part, at);
  end loop;
  until := case scope when 'within' then clock + period * interval '1 microsecond'
    when 'slot' then timestamptz 'epoch' + (floor(extract(epoch from clock) * 1000000 / period) + 1) * period * interval '1 microsecond'
    else clock + latest * interval '1 microsecond' end;
  key := chr(1) || encode(sha256(convert_to(concat_ws(chr(10), scope, coalesce('across ' || across, 'kind ' || p_kind),
    coalesce(array_to_string(pointers, '|'), ''), case when pointers is null then p_args else selected end::text), 'UTF8')), 'hex');
end
$$;

-- What a job does, as the view of jobs tells it, but found by keys alone, since producers
-- ask: of one that is gone nothing. Whether any engine has had it, and when it is due.
create function stint.unique_holder(p_job bigint, out state text, out ended boolean, out begun boolean, out due timestamptz) language sql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
  select case when x.outcome is not null then case when x.outcome = 1 then 'completed' when x.outcome in (6, 8) then 'cancelled' else 'failed' end
              when w.job is not null then case when k.job is null or exists (select from stint.flows f where f.flow = w.job) then w.why else 'cancelled' end
              when (v.xid, v.pos) <= (f.xid, f.pos)
               and not exists (select from unnest(f.pending_xid, f.pending_pos) p(xid, pos) where p.xid = v.xid and p.pos < v.pos) then 'running'
              when k.job is null then 'available' else 'cancelled' end,
         x.outcome is not null, exists (select from stint.executions y where y.pos = b.pos) or exists (select from stint.executions y where y.job = b.pos), w.due
  from stint.entries b
  left join lateral (
    select y.outcome from stint.executions y where y.pos = b.pos and y.job is null and y.final
    union all
    select y.outcome from stint.executions y where y.job = b.pos and y.final) x on true
  left join stint.waiting w on w.job = b.pos
  left join stint.cancellations k on k.job = b.pos
  left join lateral (select e.pos, e.xid, e.lane from stint.entries e where e.job = b.pos order by e.pos desc limit 1) l on true
  cross join lateral (select coalesce(l.pos, b.pos), coalesce(l.xid, b.xid), coalesce(l.lane, b.lane)) v(pos, xid, lane)
  left join lateral stint.frontier(v.lane) f on true
  where b.pos = p_job and b.job is null
$$;

-- Take the unique keys of jobs that are about to be stored. Of each the answer is the
-- job that stands for it: itself, or the one that is kept, with its state ('new' if it is
-- of the batch); the old one that was cancelled for it; and when it is to be due, if it has
-- that from the old one, or when at the latest, if it is debounced. Keys are never released: whoever finds one taken looks at its holder,
-- and takes the key over if that has ended. A duplicate locks and writes nothing, but that its
-- idempotency key stands for the job that is kept. What is ready is ended under the lock of its
-- lane, which a caller's transaction must not hold; so p_own says whose this one is. A
-- job that is to run again (p_again) does not stand in its own way. With the owner's
-- rights: to take a key over is to update a row.
-- A job that is kept until-started begins after the commit. One that waits for its time is
-- locked so that no promotion moves it, but not when it is due: with a producer
-- at any moment it would wait for ever. One that is ready is kept under the lock of its lane, and so
-- only by the store's own transaction.
create function stint.take_unique(p_unique text[], p_kinds text[], p_args jsonb[], p_keys text[], p_jobs bigint[], p_own boolean, p_again bigint default null)
returns table (id bigint, job bigint, state text, old bigint, due timestamptz) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
#variable_conflict use_column
declare
  clock  timestamptz := clock_timestamp();
  keys   text[]; modes text[]; untils timestamptz[]; -- of each job
  starts boolean[]; timed boolean[]; -- whether it is unique until-started, or for a period
  firsts integer[]; -- the first of the batch with the same key
  fresh  text[];
  r      record;
  h      record;
  s      record;
  locked bigint; -- the holder as it stands in the locked row
  here   boolean;
  held   boolean;
  doomed bigint[] := '{}'; -- the holders that are to make room,
  marked bigint[] := '{}'; -- those with a marker of this transaction,
  places integer[] := '{}'; -- and which jobs they are to make room for; or who is to be kept, if it does not begin
  lane   bigint;
  stands bigint[]; states text[]; olds bigint[]; dues timestamptz[]; -- the answers
begin
  select array_agg(k.key order by i), array_agg(case when p_again is null then k.mode else 'keep' end order by i), array_agg(k.scope = 'until-started' order by i),
         array_agg(k.period is not null order by i),
         array_agg(k.until order by i), array_agg(case when k.mode = 'debounce' then k.until end order by i)
    into keys, modes, starts, timed, untils, dues
    from unnest(p_unique, p_kinds, p_args) with ordinality as u(spec, kind, args, i), stint.unique_key(u.spec, u.kind, u.args) as k;
  if keys is null then
    return;
  end if;
  stands := p_jobs; states := array_fill(null::text, array[cardinality(keys)]);
  olds := array_fill(null::bigint, array[cardinality(keys)]); firsts := array_fill(0, array[cardinality(keys)]);
  -- In the order of the keys, and before any other row is locked: in any other order
  -- two batches would take each other's. A key that another transaction takes is waited for.
  with added as (
    insert into stint.idempotency (key, job, fingerprint, until, expires)
      select distinct on (n.key) n.key, n.job, '', n.until, greatest(n.until, clock + interval '24 hours')
      from (select k collate "C" as key, j as job, u as until, i from unnest(keys, p_jobs, untils) with ordinality as t(k, j, u, i)) n
      order by n.key, n.i
      on conflict (key) do nothing returning key)
    select coalesce(array_agg(n.key), '{}') into fresh from added n;
  if cardinality(fresh) = cardinality(keys) then
    return query select j, j, null::text, null::bigint, d from unnest(p_jobs, dues) as u(j, d);
    return;
  end if;
  for r in
    select * from (
      select a.key, a.i::integer, row_number() over of_key as n, (first_value(a.i) over of_key)::integer as first, bool_or(a.i is null) over (partition by a.key) as fresh
      from (select k collate "C" as key, i from unnest(keys) with ordinality as u(k, i)
            union all select k collate "C", null from unnest(fresh) as f(k)) a
      window of_key as (partition by a.key order by a.i)) b
    where b.i is not null order by b.key, b.i
  loop
    firsts[r.i] := r.first;
    if r.n > 1 then
      if modes[r.i] <> 'keep' then
        raise exception 'stint: job % of the batch has the unique key of one before it, and cannot % it', r.i - 1, modes[r.i] using errcode = 'ST007';
      end if;
      continue; -- answered below, when it is known what became of the first
    end if;
    continue when r.fresh;
    locked := null;
    loop
      -- In statements of their own: what committed while this one waited is not in an
      -- earlier snapshot. Of a forgotten row see take_keys.
      select i.job, i.until into h from stint.idempotency i where i.key = r.key order by (i.xmax = 0) desc limit 1;
      here := found;
      if not here then
        insert into stint.idempotency (key, job, fingerprint, until, expires)
          values (r.key, p_jobs[r.i], '', untils[r.i], greatest(untils[r.i], clock + interval '24 hours')) on conflict do nothing;
        exit when found;
        continue;
      end if;
      select * into s from stint.unique_holder(h.job);
      held := h.job is distinct from p_again and case when starts[r.i]
        then not s.begun and (s.state = 'scheduled' and (s.due > clock or modes[r.i] <> 'keep') or s.state = 'available' and p_own)
        when not timed[r.i] then s.state in ('scheduled', 'retrying', 'blocked', 'available', 'running') else h.until > clock_timestamp() end;
      if held is true and starts[r.i] and modes[r.i] = 'keep' and s.state = 'scheduled' then
        perform from stint.waiting w where w.job = h.job for key share; -- not promoted before the commit
        if found then
          select * into s from stint.unique_holder(h.job);
          if s.state = 'scheduled' and not s.begun then
            stands[r.i] := h.job; states[r.i] := s.state;
            exit;
          end if;
        end if;
        continue;
      end if;
      if held is true and not starts[r.i] and (modes[r.i] = 'keep' or modes[r.i] <> 'cancel-old'
          and (s.begun or not (s.state = 'scheduled' or s.state = 'available' and p_own))) is not false then
        stands[r.i] := h.job; states[r.i] := s.state;
        exit;
      end if;
      if locked is distinct from h.job then
        select i.job into locked from stint.idempotency i where i.key = r.key for update;
        continue; -- looked at again, now that nobody else takes it over
      end if;
      if held is true then
        doomed := doomed || h.job; places := places || r.i;
        if modes[r.i] = 'replace-keep-time' then
          dues[r.i] := coalesce(s.due, '-infinity');
        elsif modes[r.i] = 'debounce' then
          untils[r.i] := least(untils[r.i], h.until); dues[r.i] := untils[r.i]; -- as for the first of them
        end if;
        exit when modes[r.i] = 'keep';
        insert into stint.cancellations (job, why) values (h.job, case modes[r.i] when 'cancel-old'
          then 'another job took its unique key' else 'replaced by a newer job with its unique key' end) on conflict do nothing;
        if found then
          marked := marked || h.job;
        end if;
        if starts[r.i] then
          perform from stint.waiting w where w.job = h.job for update; -- in the order of the keys, as by who keeps
        end if;
      else
        update stint.idempotency i set job = p_jobs[r.i], until = untils[r.i], expires = greatest(untils[r.i], clock + interval '24 hours')
          where i.key = r.key;
      end if;
      exit;
    end loop;
  end loop;
  if doomed <> '{}' then
    perform stint.cancel_waiting(array(select doomed[p] from generate_subscripts(places, 1) as p where modes[places[p]] <> 'keep'));
    if p_own then
      -- Of those that are kept too, in the order of the lanes.
      if 'keep' = any (array(select modes[p] from unnest(places) as p)) then
        for lane in select distinct l.lane from unnest(doomed) as d(job), lateral (
            select e.lane from stint.entries e where e.pos = coalesce((select max(n.pos) from stint.entries n where n.job = d.job), d.job)) l
          where l.lane >= 0 order by 1 loop
          perform pg_advisory_xact_lock(lane # ('stint.entries'::regclass::oid::bigint << 24)); -- as in claim
        end loop;
      end if;
      perform stint.cancel_ready(doomed, true);
    end if;
    for spot in 1 .. cardinality(doomed) loop
      select * into s from stint.unique_holder(doomed[spot]);
      -- Ended by this call; or by its own, after the first look; or told to end.
      if doomed[spot] = any (marked) and not exists (select from stint.cancellations c where c.job = doomed[spot])
         or modes[places[spot]] = 'cancel-old' and not s.ended then
        olds[places[spot]] := doomed[spot];
      else
        delete from stint.cancellations c where c.job = doomed[spot] and c.job = any (marked);
        dues[places[spot]] := case when modes[places[spot]] = 'debounce' then dues[places[spot]] end;
        if not s.ended then
          select * into s from stint.unique_holder(doomed[spot]); -- without the marker
        end if;
        if not s.ended and (not starts[places[spot]] or modes[places[spot]] = 'keep' and s.state = 'available' and not s.begun) then -- it became ready or began meanwhile, and is kept
          stands[places[spot]] := doomed[spot]; states[places[spot]] := s.state;
          continue;
        end if;
      end if;
      update stint.idempotency i set job = p_jobs[places[spot]], until = untils[places[spot]], expires = greatest(untils[places[spot]], clock + interval '24 hours')
        where i.key = keys[places[spot]];
    end loop;
  end if;
  for spot in 1 .. cardinality(keys) loop
    if firsts[spot] < spot then
      stands[spot] := stands[firsts[spot]];
      states[spot] := case when stands[spot] = p_jobs[firsts[spot]] then 'new' else states[firsts[spot]] end;
    end if;
    if stands[spot] <> p_jobs[spot] and p_keys[spot] is not null then
      update stint.idempotency i set job = stands[spot] where i.key = p_keys[spot] and i.job = p_jobs[spot];
    end if;
    id := p_jobs[spot]; job := stands[spot]; state := states[spot]; old := olds[spot]; due := dues[spot];
    return next;
  end loop;
end
$$;
revoke execute on function stint.take_unique from public;

-- Store one job of which more is asked than that it runs soon, in far less time than a batch of
-- one: what it does not ask for, the server does not plan or look for. The answer is its id; the
-- job that stands for it, itself or the one that has a key of it (nothing is stored then), with
-- its state if that is a unique key; whether that has the same kind and arguments, if it is an idempotency
-- key; and the job that made room. A job that is not yet due has its contents in the lane that no
-- engine claims, and a waiting row. Where policies do not have p_policy, p_retry goes with the job.
create function stint.store_job(p_lane bigint, p_queue text, p_priority smallint, p_kind text, p_args jsonb, p_policy bigint, p_retry jsonb,
  p_timeout bigint, p_urn text, p_source text, p_metadata jsonb, p_max_losses smallint, p_correlation text, p_limits text,
  p_at timestamptz, p_delay bigint, p_tags text[], p_start_by timestamptz, p_start_within bigint, p_key text, p_unique text, p_own boolean,
  out id bigint, out job bigint, out state text, out same boolean, out old bigint) language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off
as $$
declare
  clock  timestamptz := clock_timestamp();
  due    timestamptz := case when p_at > clock then p_at when p_delay > 0 then clock + p_delay * interval '1 microsecond' end;
  latest timestamptz; -- when a debounced job is to be due, or the job has another's time
  policy bigint;
  holder bigint;
  k      record;
begin
  id := nextval('stint.positions'); job := id;
  if p_key is not null then
    select t.job, t.same into job, same from stint.take_keys(array[p_key], array[stint.fingerprint(p_kind, p_args)], array[id]) as t;
    if job <> id or not same then
      return;
    end if;
    same := null;
  end if;
  if p_unique is not null then
    k := stint.unique_key(p_unique, p_kind, p_args);
    insert into stint.idempotency (key, job, fingerprint, until, expires)
      values (k.key, id, '', k.until, greatest(k.until, clock + interval '24 hours')) on conflict (key) do nothing;
    if found then
      latest := case when k.mode = 'debounce' then k.until end;
    else
      if k.scope = 'until-ended' and k.mode = 'keep' and p_key is null then -- as take_unique, which is slower
        select i.job, h.state into holder, state
          from (select i.job from stint.idempotency i where i.key = k.key order by (i.xmax = 0) desc limit 1) i, stint.unique_holder(i.job) as h;
        if state in ('scheduled', 'retrying', 'blocked', 'available', 'running') then
          job := holder;
          return;
        end if;
      end if;
      select t.job, t.state, t.old, t.due into job, state, old, latest
        from stint.take_unique(array[p_unique], array[p_kind], array[p_args], array[p_key], array[id], p_own) as t;
    end if;
    if job is distinct from id then
      return;
    elsif latest is not null then
      due := nullif(greatest(case when p_unique like '%,debounce:%' then least(coalesce(due, clock), latest) else latest end, clock), clock);
    end if;
  end if;
  if p_policy is not null then
    select p.id into policy from stint.policies p where p.id = p_policy;
  end if;
  insert into stint.entries (pos, created, lane, queue, priority, kind, args, due, policy, retry, timeout, tags, urn, source, metadata, max_losses, correlation, limits, start_by, uniqueness)
    values (id, clock, case when due is null then p_lane else -1 end, p_queue, p_priority, p_kind, p_args, due, policy, case when policy is null then p_retry end,
      p_timeout, p_tags, p_urn, p_source, p_metadata, p_max_losses, p_correlation, p_limits,
      case when p_start_by is not null then stint.start_by(p_start_by, due) else coalesce(due, clock) + p_start_within * interval '1 microsecond' end, p_unique);
  if due is not null then
    insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind, limits)
      values (id, due, id, 'scheduled', 1, p_priority, p_queue, p_kind, p_limits);
  end if;
  if p_tags is not null then
    insert into stint.job_tags (tag, job) select t, id from unnest(p_tags) as t;
  end if;
end
$$;
revoke execute on function stint.store_job from public;

-- Take the keys of one job that is to be claimed as it is appended, or fail: the
-- detail of the error is the job that has one of them.
create function stint.take_key(p_key text, p_kind text, p_args jsonb, p_job bigint, p_unique text) returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  k record;
begin
  if p_key is not null then
    select t.job, t.same into k
      from stint.take_keys(array[p_key], array[stint.fingerprint(p_kind, p_args)], array[p_job]) as t;
    if not k.same then
      raise exception 'job % has the idempotency key %, with another kind or other arguments', k.job, quote_literal(p_key)
        using errcode = 'ST005', detail = k.job::text;
    elsif k.job <> p_job then
      raise exception 'job % was enqueued under the idempotency key % before', k.job, quote_literal(p_key)
        using errcode = 'ST006', detail = k.job::text;
    end if;
  end if;
  if p_unique is not null then
    select t.job into k from stint.take_unique(array[p_unique], array[p_kind], array[p_args], array[p_key], array[p_job], false) as t;
    if k.job <> p_job then
      raise exception 'job % holds the unique key', k.job using errcode = 'ST008', detail = k.job::text;
    end if;
  end if;
end
$$;

-- Move due jobs to the log in order of their due times, each with a fresh
-- position: reusing the id as position ran a job due at 11 before one due at
-- 10. Rows that another session is moving are passed over.
-- Notes are looked at first, those after p_note; the answer says how far it came.
create function stint.promote(p_from timestamptz, p_limit integer, p_note bigint default 0,
  out moved integer, out until timestamptz, out next_in bigint, out noted bigint, out more boolean)
language plpgsql
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  clock  timestamptz := clock_timestamp();
  late   boolean := exists (select from stint.flows f where f.deadline <= clock);
  marked boolean := late or exists (select from stint.cancellations);
  begun  bigint := 0; -- jobs that waited for others
begin
  -- What a crash takes back is done again, as the notes and the due times are there again; and who claims what is
  -- moved here has it on the disk first.
  perform set_config('synchronous_commit', 'off', true);
  -- First, so that it looks at no note of its own: others may not see yet what that is about.
  noted := p_note;
  more := false;
  if exists (select from stint.notes t where t.n > p_note) then
    select l.noted, l.begun, l.more into noted, begun, more from stint.look_at_notes(p_note, p_limit, clock) as l;
  end if;
  if late then
    perform stint.cancel_late_flows(clock, p_limit);
    perform pg_notify('stint', ''); -- who runs their jobs stops them
  end if;
  -- Jobs that were put to wait, or that ended, in the moment that a person
  -- cancelled them: neither of the two saw what the other was about to commit. And
  -- those of which somebody committed a marker and no more.
  if marked then
    perform stint.cancel_flows(p_limit);
    perform stint.cancel_calls(array(select c.job from stint.cancellations c where c.down_to is null));
    perform stint.cancel_waiting(array(
      select w.job from stint.cancellations c
      cross join lateral (
        select v.job from stint.waiting v where v.job = c.job and (select f.flow from stint.flows f where f.flow = v.job) is null for update skip locked) w limit p_limit));
    delete from stint.cancellations c where (select o.outcome from stint.end_of(c.job) as o) is not null;
  end if;
  moved := begun;
  if exists (select from stint.waiting w where w.due >= p_from and w.due <= clock) then
    with due as materialized (
      select w.ctid as place from stint.waiting w
      where w.due >= p_from and w.due <= clock
      order by w.due, w.job + 0 limit p_limit
      for update skip locked
    ), gone as (
      delete from stint.waiting w where w.ctid = any (array(select d.place from due d)) returning w.* -- a join may begin with all that waits
    ), added as (
      insert into stint.entries (lane, job, body, due, attempt, priority, losses, suspect, queue, kind, faulty, limits)
      select stint.lane(g.queue, g.priority, case when g.limits is null then 'normal' else stint.part_of(g.job) end, '', g.limits), g.job, g.body, g.due, g.attempt, g.priority, g.losses, g.suspect, g.queue, g.kind, g.faulty, g.limits
      from gone g order by g.due, g.job
      returning due
    )
    select count(*) + begun, max(a.due), more or count(*) = p_limit into moved, until, more from added a;
  end if;
  if moved > 0 then
    perform pg_notify('stint', 'work ' || pg_current_xact_id());
  end if;
  select greatest(0, extract(epoch from n.time - clock_timestamp()) * 1000000)::bigint into next_in
    from (select least(
      (select w.due from stint.waiting w where w.due >= coalesce(until, p_from) order by w.due, w.job + 0 limit 1),
      (select f.deadline from stint.flows f where f.deadline is not null order by f.deadline, f.flow limit 1)) as time) n
    where n.time is not null;
  -- Last, so that no lane is locked for long; and a claim is not waited for.
  if marked then
    perform stint.cancel_ready(array(select r.job from stint.cancelled_ready r limit p_limit), false);
  end if;
  if exists (select from stint.notes t where t.n > noted) then
    next_in := 0;
  end if;
end
$$;
