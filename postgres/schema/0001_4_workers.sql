-- stint: workers by SQL alone. A session of psql, of pg_cron or of any driver takes jobs and says how
-- they ended; docs/sql-workers.md says how. A worker is a row of the roster, and the same fence guards what
-- it writes. It takes no jobs with limits, whose permits a program keeps. Errors of its own: ST030 the server was
-- replaced since, ST031 the worker does not hold the job, ST032 that is recorded already.

-- A random number of 63 bits, as the tokens of engines and the nonces of claims are.
create function stint.random_number() returns bigint language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select ('x' || encode(substr(sha256(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 1, 8), 'hex'))::bit(64)::bigint & 9223372036854775807
$$;

-- Join the roster. The answer is the worker's number, for the other calls. A worker without a heartbeat for its
-- time to live counts as dead.
create function stint.worker_join(kinds text[], queues text[] default null, slots integer default 1,
  time_to_live interval default '1 minute', instance text default null)
returns bigint language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
declare
  worker bigint := stint.random_number();
  label  text;
begin
  if worker_join.kinds is null or cardinality(worker_join.kinds) = 0 then
    raise exception 'stint: a worker says which kinds of jobs it performs' using errcode = '22023';
  elsif slots is null or slots not between 1 and 1000 then
    raise exception 'stint: a worker has 1 to 1000 slots' using errcode = '22023';
  elsif time_to_live is null or time_to_live not between '5 seconds' and '15 minutes' then
    raise exception 'stint: the time to live is 5 seconds to 15 minutes' using errcode = '22023';
  end if;
  foreach label in array worker_join.kinds || coalesce(worker_join.queues, '{}') || coalesce(instance, 'x') loop
    if label is null or label = '' or octet_length(label) > 255 or label ~ '[\u0001-\u001f\u007f-\u009f]|^[\s\u00a0]|[\s\u00a0]$' then
      raise exception 'stint: % is no name', coalesce(quote_literal(label), 'null')
        using errcode = '22023', hint = 'It is 1 to 255 bytes without control characters and without space at its ends.';
    end if;
  end loop;
  select format('jobs of the kind %L are sealed, and SQL has no keys', k.kind) into label from stint.kinds k where k.kind = any (worker_join.kinds) and k.sealed is not null;
  if not found then
    select format('jobs of the kind %L have limits, and SQL keeps none', k.kind) into label from stint.kinds k where k.kind = any (worker_join.kinds) and k.limits is not null;
  end if;
  if found then
    raise exception 'stint: %', label using errcode = '22023', hint = 'Workers over HTTP and programs in Go can perform them.';
  end if;
  insert into stint.engines (token, instance, host, boot_id, pid, pid_started, version, queues, kinds, slots, ttl)
    values (worker, coalesce(instance, 'sql-' || pg_backend_pid()), coalesce(host(inet_client_addr()), 'local'), 'worker', pg_backend_pid(), 0, 'SQL',
            coalesce(worker_join.queues, '{}'), worker_join.kinds, worker_join.slots, extract(epoch from time_to_live) * 1000);
  insert into stint.beats (token) values (worker);
  insert into stint.engine_history (token, instance, host, pid, version, queues, kinds, slots, ttl, joined)
    select e.token, e.instance, e.host, e.pid, e.version, e.queues, e.kinds, e.slots, e.ttl, e.joined from stint.engines e where e.token = worker;
  insert into stint.kinds (kind, queue, priority, tags)
    select k, 'default', 0, '{}' from unnest(worker_join.kinds) as k group by k order by k on conflict do nothing;
  return worker;
end
$$;

-- Sessions of one worker take turns, until the end of their transactions, to say what it holds.
create function stint.worker_turn(p_worker bigint) returns void language sql
set search_path = pg_catalog, pg_temp
as $$
  select pg_advisory_xact_lock(hashtext('stint worker'), hashint8(p_worker))
$$;

-- The fence for a worker by SQL. What it held at a server that another one has replaced may never have been there.
create function stint.worker_fence(p_worker bigint) returns stint.engines language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  e    stint.engines;
  line text;
begin
  perform stint.fence(p_worker);
  select * into e from stint.engines where token = p_worker;
  select b.timeline into line from stint.beats b where b.token = p_worker;
  if e.version <> 'SQL' or e.boot_id <> 'worker' then
    raise exception 'stint: % is no worker by SQL', p_worker using errcode = '22023';
  elsif line <> substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) then
    raise exception 'stint: another server took over since worker % joined: end what runs, and join again', p_worker using errcode = 'ST030';
  end if;
  return e;
end
$$;

-- What a worker holds: the jobs that it was given, and has not finished.
create function stint.worker_held(p_worker bigint)
returns table (receipt text, pos bigint, nonce bigint, serial bigint, made timestamptz) language sql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
  select format('%s.%s.%s', c.serial, u.pos, c.nonce), u.pos, c.nonce, c.serial, c.made
  from stint.claims c cross join lateral stint.unfinished(c.positions) u
  where c.engine = p_worker and c.serial >= (select b.low from stint.beats b where b.token = p_worker)
    and (select true from stint.entries e where e.pos = u.pos)
  order by c.serial, u.i
$$;

-- Say that a worker lives, and what it holds.
create function stint.worker_announce(p_worker bigint) returns void language sql
set search_path = pg_catalog, pg_temp
as $$
  update stint.beats b
  set beat = clock_timestamp(), up_since = pg_postmaster_start_time(), number = b.number + 1, running = h.running, started = h.started,
      low = coalesce(h.low, (select max(c.serial) + 1 from stint.claims c where c.engine = p_worker), b.low)
  from (select min(w.serial) as low, coalesce(array_agg(w.pos), '{}') as running, coalesce(array_agg(w.made), '{}') as started from stint.worker_held(p_worker) w) h
  where b.token = p_worker
$$;

-- Record how an attempt of a worker ended. What follows is in a lane, or waits and why.
create function stint.worker_record(p_worker bigint, p_pos bigint, p_nonce bigint, p_began timestamptz, p_slot integer, p_outcome integer, p_final boolean,
  p_reason text default null, p_result jsonb default null, p_error jsonb default null,
  p_part text default null, p_why text default null, p_delay interval default null, p_undecided text default null)
returns integer language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  e       record;
  follows bigint[] := case when not p_final then array[p_pos] end;
begin
  select * into e from stint.fetch(array[p_pos]);
  if not found then
    return 0; -- its job was deleted
  end if;
  return stint.record(p_worker,
    array[p_pos], array[e.job], array[p_nonce], array[e.attempt], array[p_slot]::smallint[],
    array[greatest(0, extract(epoch from clock_timestamp() - p_began) * 1000000)]::bigint[], array[0]::bigint[], array[p_outcome]::smallint[], array[p_final],
    array[p_reason], array[p_result::text], array[p_error::text],
    follows, array[stint.lane(e.queue, e.priority, p_part, case p_part when 'kind' then e.kind else '' end)], array[extract(epoch from p_delay) * 1000000]::bigint[], array[p_why],
    array[e.queue], array[e.priority], array[e.kind],
    array[coalesce(e.attempt, 1) + case p_why when 'retrying' then 1 else 0 end], array[coalesce(e.losses, 0)]::smallint[],
    array[case when p_part is null then 0 else coalesce(e.suspect, 0) end]::smallint[], array[p_undecided], x_flow => array[e.flow is not null]);
end
$$;

-- Take jobs, as many as there are slots free, up to max. It counts as a heartbeat. A job counts as
-- running from the moment at which this statement is committed. So it stands in a transaction of its
-- own: while that is open, others wait with the lane that these jobs come from.
create function stint.worker_claim(worker bigint, max integer default null)
returns table (receipt text, job bigint, kind text, queue text, args jsonb, attempt integer, timeout interval, may_have_run boolean,
  tags text[], metadata jsonb, correlation text, created timestamptz)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
#variable_conflict use_column
declare
  me    stint.engines;
  held  bigint[];
  room  integer;
  n     bigint; -- of the claim
  next_ bigint;
  nonce bigint := stint.random_number();
  lane  record;
  c     record;
  e     record;
  alone boolean; -- it holds a job that is to run alone: the last ones died with their engines
begin
  perform stint.worker_turn(worker); -- each claim has a number
  me := stint.worker_fence(worker);
  if current_setting('idle_in_transaction_session_timeout') = '0' then
    perform set_config('idle_in_transaction_session_timeout', '10s', true);
  end if;
  select coalesce(array_agg(h.pos), '{}') into held from stint.worker_held(worker) h;
  room := least(me.slots - cardinality(held), worker_claim.max, 100);
  if room <= 0 or (select b.drain from stint.beats b where b.token = worker) then
    perform stint.worker_announce(worker);
    return;
  end if;
  select coalesce(max(x.serial), 0) + 1 into next_ from stint.claims x where x.engine = worker;
  -- Nothing is written before the claim, and so nothing by a claim that finds a lane busy or empty.
  -- Lanes of jobs with limits are none of these three.
  for lane in
    select l.lane from stint.look('{}', '{}') l
    cross join lateral (values ('front', 0, ''), ('kind', 1, l.kind), ('normal', 2, '')) as part(name, rank, kind)
    where l.queue is not null and l.lane = stint.lane(l.queue, l.priority, part.name, part.kind)
      and (me.queues = '{}' or l.queue = any (me.queues)) and (part.name <> 'kind' or l.kind = any (me.kinds))
      and not exists (select from stint.queues q where q.queue = l.queue) and stint.rule_of('queue=' || l.queue) is null
    order by l.priority, part.rank, l.first
  loop
    c := stint.claim(worker, next_, (select b.low from stint.beats b where b.token = worker), nonce, lane.lane, room, false, false);
    n := c.n;
    exit when n > 0;
  end loop;
  if n is null or n = 0 then
    perform stint.worker_announce(worker);
    return;
  end if;
  -- A claim of several lanes may append nothing; this one of a single lane may, for its snapshot was
  -- made before the transaction had a number: what is appended now is after the frontier that it left.
  perform set_config('synchronous_commit', 'on', true);
  alone := exists (select from stint.fetch(held) f where f.suspect >= 2);
  for e in select * from stint.fetch(c.positions) f order by array_position(c.positions, f.pos) loop
    if e.cancelled then
      perform stint.worker_record(worker, e.pos, nonce, clock_timestamp(), 0, 6, true);
    elsif e.start_by <= clock_timestamp() then
      perform stint.worker_record(worker, e.pos, nonce, clock_timestamp(), 0, 7, true, 'expired');
    elsif e.kind <> all (me.kinds) then
      perform stint.worker_record(worker, e.pos, nonce, clock_timestamp(), 0, 4, false, p_part => 'kind');
    elsif e.suspect >= 2 and alone then
      perform stint.worker_record(worker, e.pos, nonce, clock_timestamp(), 0, 4, false, p_part => 'front');
    else
      alone := alone or e.suspect >= 2 is true;
      receipt := format('%s.%s.%s', next_, e.pos, nonce);
      job := coalesce(e.job, e.pos); kind := e.kind; queue := e.queue; args := e.args; attempt := coalesce(e.attempt, 1);
      timeout := e.timeout * interval '1 millisecond'; may_have_run := coalesce(e.suspect, 0) > 0 or coalesce(e.losses, 0) > 0;
      tags := e.tags; metadata := e.metadata; correlation := e.correlation; created := coalesce(e.created, e.ready);
      return next;
    end if;
  end loop;
  perform stint.worker_announce(worker);
end
$$;

-- Say how a job ended, in the transaction of what it did if you like: both are committed, or neither.
-- One of error, snooze, cancel and hand_back says that it did not succeed. Whoever has lost the job
-- gets an error, so that the transaction is undone. The answer is how the attempt ended.
create function stint.worker_finish(worker bigint, receipt text, result jsonb default null,
  error text default null, class text default null, retry boolean default true,
  snooze interval default null, cancel text default null, hand_back boolean default false)
returns text language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  part  text[] := regexp_match(receipt, '^([0-9]{1,18})\.([0-9]{1,18})\.([0-9]{1,19})$');
  claim record;
  at    bigint := part[2];
  failure jsonb := jsonb_build_object('class', coalesce(class, 'error'), 'message', left(error, 16000), 'recoverable', true);
  recorded integer;
begin
  if part is null then
    raise exception 'stint: % is no receipt', coalesce(quote_literal(left(receipt, 100)), 'null') using errcode = '22023';
  elsif num_nonnulls(error, snooze, cancel) + hand_back::integer > 1 or result is not null and (error is not null or hand_back) then
    raise exception 'stint: an attempt has one ending: a result, error, snooze, cancel or hand_back' using errcode = '22023';
  elsif octet_length(result::text) > 2097152 then
    raise exception 'stint: a result has at most 2 MiB as PostgreSQL writes it' using errcode = '22023';
  elsif snooze not between '0' and '100 years' then
    raise exception 'stint: a snooze is 0 to 100 years' using errcode = '22023';
  elsif class is not null and (error is null or stint.class_problem(to_jsonb(class)) is not null) then
    raise exception 'stint: %', coalesce(stint.class_problem(to_jsonb(class)), 'a class is of an error') using errcode = '22023';
  end if;
  perform stint.worker_fence(worker);
  select c.nonce, c.made into claim from stint.claims c
    where c.engine = worker and c.serial = part[1]::bigint and c.nonce = part[3]::numeric and at = any (c.positions);
  if not found then
    raise exception 'stint: worker % does not hold this job', worker using errcode = 'ST031';
  end if;
  recorded := case
    when hand_back then stint.worker_record(worker, at, claim.nonce, claim.made, 1, 4, false, 'handed back', p_part => 'front')
    when cancel is not null then stint.worker_record(worker, at, claim.nonce, claim.made, 1, 6, true, cancel, result)
    when snooze is not null then stint.worker_record(worker, at, claim.nonce, claim.made, 1, 3, false, null, result, p_why => 'scheduled', p_delay => snooze)
    when error is not null and not retry then stint.worker_record(worker, at, claim.nonce, claim.made, 1, 2, true, 'error not retriable', p_error => failure || '{"recoverable": false}')
    when error is not null then stint.worker_record(worker, at, claim.nonce, claim.made, 1, 2, false, p_error => failure, p_why => 'retrying', p_undecided => 'any engine')
    else stint.worker_record(worker, at, claim.nonce, claim.made, 1, 1, true, null, result)
  end;
  if recorded = 0 then
    raise exception 'stint: how this attempt ended is recorded already, or its job was deleted' using errcode = 'ST032';
  end if;
  return (select stint.outcome_name(x.outcome) from stint.executions x where x.pos = at);
end
$$;

-- Say that a worker lives, at least four times in its time to live. The answer says whether it is to
-- take no more jobs and leave, and has the receipts of jobs that were cancelled, or have run for
-- longer than they may. If running lists the receipts of all that runs, what the worker was given
-- more than 25 seconds ago and does not list goes back to its queue: the answer to that claim was lost.
create function stint.worker_beat(worker bigint, running text[] default null, out drain boolean, out cancel text[])
language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  h record;
begin
  -- A claim that is under way says what the worker runs: what is said here must not be older than that.
  perform stint.worker_turn(worker);
  perform stint.worker_fence(worker);
  if running is not null then
    for h in select * from stint.worker_held(worker) w where w.receipt <> all (running) and w.made < clock_timestamp() - interval '25 seconds' order by w.pos loop
      perform stint.worker_record(worker, h.pos, h.nonce, h.made, 0, 4, false, 'its worker did not get it', p_part => 'front');
    end loop;
  end if;
  perform stint.worker_announce(worker);
  drain := (select b.drain from stint.beats b where b.token = worker);
  cancel := array(
    select w.receipt from stint.worker_held(worker) w cross join lateral stint.fetch(array[w.pos]) e
    where e.cancelled or w.made + e.timeout * interval '1 millisecond' < clock_timestamp() order by w.pos);
end
$$;

-- Leave the roster. What the worker still holds goes back to its queue, uncharged.
create function stint.worker_leave(worker bigint) returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_variable
declare
  h record;
  n integer := 0;
begin
  perform stint.worker_turn(worker); -- no claim is under way
  perform stint.worker_fence(worker);
  for h in select * from stint.worker_held(worker) w order by w.pos loop
    perform stint.worker_record(worker, h.pos, h.nonce, h.made, 1, 4, false, 'its worker left', p_part => 'front');
    n := n + 1;
  end loop;
  -- What others write in its name waits or is refused: this is a burial.
  perform pg_advisory_xact_lock(worker);
  delete from stint.engines where token = worker;
  update stint.engine_history set ended = clock_timestamp(), why = 'left', low = 0, swept = true, freed = n,
    beat = (select b.beat from stint.beats b where b.token = worker) where token = worker;
  delete from stint.beats where token = worker;
end
$$;
