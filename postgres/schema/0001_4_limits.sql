-- stint: limits. A gate is a limit, or one of its keys: smtp, tenant=acme. Engines hold
-- permits of gates, which a function of the program grants.

-- What limits allow, as text: 10,100/1m,burst=5.
create table stint.limits (
  name        text   collate "C" primary key check (name <> '' and octet_length(name) <= 400), -- what it is known by, or one of its keys: tenant=acme
  declared    text,        -- the rule that a program declared last; null for none
  declared_at timestamptz, -- when
  fixed       text,        -- what people set over it; null for nothing
  set_at      timestamptz, -- when
  set_by      text,        -- by whom
  set_why     text         -- as they said
);

-- Limits, and keys of them, of which no job starts for a time.
create table stint.limit_pauses (
  gate  text        collate "C" primary key check (gate <> '' and octet_length(gate) <= 400), -- smtp, tenant=acme
  until timestamptz not null, -- when it ends
  trial boolean     not null, -- whether one job starts alone after that, and the others when it has completed
  by    text,                 -- who paused it
  why   text                  -- and why
);

-- Who holds permits of which gate. The newest row of a gate is all of its state. The key
-- makes a state that was computed from an old one a unique violation, and never a permit
-- that two engines hold.
create table stint.permits (
  gate       text     collate "C" not null, -- whose state this is
  n          bigint   not null check (n >= 1), -- one more than the state before
  engine     bigint   not null, -- the token of the engine that wrote it
  made       timestamptz not null default clock_timestamp(), -- when
  next_start timestamptz, -- the theoretical arrival time of the next start; null if none was given out
  next_cost  integer not null default 0, -- how many starts the dearest counts as that was asked for since the rate was at rest, 0 for 1
  engines    bigint[] not null, -- those that hold permits or ask for some, in the order in which they asked
  held       integer[] not null, -- how many permits each of them holds,
  asked      integer[] not null, -- how many more it asks for,
  since      timestamptz[] not null, -- and when it asked; null for one that does not
  primary key (gate, n),
  check (cardinality(engines) = cardinality(held) and cardinality(engines) = cardinality(asked) and cardinality(engines) = cardinality(since))
);

-- How often gates were forgotten.
create sequence stint.forgotten as bigint;

-- Which jobs come again under limits whose rules say in-order: they go before all of the
-- gate that have not begun. Rows of jobs that have ended count no more, unless the job
-- failed under a rule that says halt.
create table stint.reruns (
  gate   text    collate "C" not null, -- its name
  job    bigint  not null, -- the job's id
  failed boolean not null, -- for good, and nobody has retried it
  primary key (gate, job)
);
-- for what becomes ready after a wait
create index reruns_job on stint.reruns (job);

-- The part of the lane where a job with limits goes that waited.
create function stint.part_of(p_job bigint) returns text language sql stable
set search_path = pg_catalog, pg_temp
as $$ select case when exists (select from stint.reruns r where r.job = p_job) then 'front' else 'normal' end $$;

-- Whether a job has neither ended nor been deleted.
create function stint.is_open(p_job bigint) returns boolean language sql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
  select exists (select from stint.entries e where e.pos = p_job and e.job is null)
     and not exists (select from stint.executions x where x.pos = p_job and x.job is null and x.final)
     and not exists (select from stint.executions x where x.job = p_job and x.final)
$$;

-- What holds up the jobs of gates that keep an order: a job that comes again, and one
-- that failed and that nobody retried. No row for a gate that nothing holds up.
create function stint.order_of(p_from text, p_upto text) returns table (gate text, again bigint, failed bigint) language sql stable strict
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
  select r.gate, min(r.job) filter (where not r.failed), min(r.job) filter (where r.failed)
  from stint.reruns r
  where r.gate >= p_from collate "C" and r.gate <= p_upto collate "C" and (r.failed or stint.is_open(r.job))
  group by r.gate
$$;

-- What a JSON pointer selects, null for nothing. It chooses an element of an array by its
-- number only, as that is written.
create function stint.pointed(p_of jsonb, p_pointer text) returns jsonb language plpgsql immutable
set search_path = pg_catalog, pg_temp
as $$
declare
  token text;
begin
  foreach token in array (string_to_array(p_pointer, '/'))[2:] loop
    if jsonb_typeof(p_of) = 'array' and token !~ '^(0|[1-9][0-9]{0,8})$' then
      return null;
    end if;
    p_of := p_of #> array[replace(replace(token, '~1', '/'), '~0', '~')];
  end loop;
  return p_of;
end
$$;

-- Refuse what is neither the name of a limit nor, with a key that is not null, one of its keys.
create function stint.check_gate(p_name text, p_key text) returns void language plpgsql immutable
set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $$
declare
  part text;
begin
  foreach part in array array[p_name, coalesce(p_key, 'key')] loop
    if part is null or part = '' or octet_length(part) > 255 or part ~ '[\u0001-\u001f\u007f-\u009f]|^[\s\u00a0]|[\s\u00a0]$' then
      raise exception 'stint: % is no name or key of a limit', quote_nullable(part)
        using errcode = '22023', hint = 'A name is 1 to 255 bytes without control characters and without space at its ends.';
    end if;
  end loop;
  if octet_length(p_name) > 100 or p_name ~ '[ =*]' then
    raise exception 'stint: % is not the name of a limit, of up to 100 bytes without a space, = and *', quote_literal(p_name) using errcode = '22023';
  end if;
end
$$;

-- How many starts a job counts as under a limit that it names, where that stands there: 3*smtp.
-- The program reads the same.
create function stint.cost_of(p_limit text) returns integer language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$ select n from (select substring(p_limit from '^([1-9][0-9]{0,3})[*]')::integer as n) c where n <= 1000 $$;

-- The gate of a limit that a job names: without what it counts as.
create function stint.gate_of(p_limit text) returns text language sql immutable strict
set search_path = pg_catalog, pg_temp
as $$ select case when stint.cost_of(p_limit) is null then p_limit else substr(p_limit, strpos(p_limit, '*') + 1) end $$;

-- The limits that a job names, with the keys that its arguments give, as entries keep
-- them: sorted, one on each line; null if there is none in the array. The program computes the
-- same.
create function stint.limit_keys(p_limits text[], p_args jsonb) returns text language plpgsql stable
set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $$
declare
  this    text;
  cost    integer;
  name    text;
  key     text;
  pointer text;
  at      jsonb;
  names   text[] := '{}';
  lines   text[] := '{}';
begin
  if cardinality(p_limits) > 8 then
    raise exception 'stint: % limits are more than 8', cardinality(p_limits) using errcode = '22023';
  end if;
  foreach this in array p_limits loop
    cost := stint.cost_of(this);
    this := stint.gate_of(this);
    name := this; key := null;
    if strpos(this, ' by ') > 0 then
      name := split_part(this, ' by ', 1);
      pointer := substr(this, strpos(this, ' by ') + 4);
      if pointer !~ '^(/([^~]|~[01])*)+$' then
        raise exception 'stint: % is no JSON pointer, such as /id', quote_literal(pointer) using errcode = '22023';
      end if;
      at := stint.pointed(p_args, pointer);
      if at is null then
        raise exception 'stint: the arguments have nothing at %', pointer using errcode = '22023';
      end if;
      key := at #>> '{}';
      if (case jsonb_typeof(at) when 'string' then false when 'boolean' then false
            when 'number' then key !~ '^-?[0-9]+$' or key::numeric not between -9223372036854775808 and 9223372036854775807
            else true end) then
        raise exception 'stint: what the arguments have at % is not a string, whole number or boolean', pointer using errcode = '22023';
      end if;
    elsif strpos(this, '=') > 0 then
      name := split_part(this, '=', 1);
      key := substr(this, strpos(this, '=') + 1);
    end if;
    perform stint.check_gate(name, key);
    if name = 'queue' then
      raise exception 'stint: all jobs count under queue=NAME of their queue; none names it' using errcode = '22023';
    elsif name = any (names) then
      raise exception 'stint: the limit % is there twice', quote_literal(name) using errcode = '22023';
    end if;
    names := names || name;
    lines := lines || (coalesce(nullif(cost, 1) || '*', '') || name || coalesce('=' || key, ''));
  end loop;
  return (select string_agg(l, chr(10) order by l collate "C") from unnest(lines) as l);
end
$$;

-- The rule of a gate that counts: its own, or that of its limit; null for none.
create function stint.rule_of(p_gate text) returns text language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select coalesce(l.fixed, l.declared) from stint.limits l
  where l.name = any (array[p_gate, split_part(p_gate, '=', 1)]) and coalesce(l.fixed, l.declared) is not null
  order by l.name desc limit 1 -- the name of a limit comes before those of its keys
$$;

-- The pause of a gate: its own, or that of its limit, of which nobody is tried.
create function stint.pause_of(p_gate text, out until timestamptz, out trial boolean, out by text, out why text) language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select p.until, p.trial and p.gate = p_gate, p.by, p.why from stint.limit_pauses p
  where p.gate = any (array[p_gate, split_part(p_gate, '=', 1)])
    and (p.until > clock_timestamp() or p.trial and p.gate = p_gate)
  order by p.until desc limit 1
$$;

-- What stands for the time when the state of a gate was made that has none: another one
-- whenever gates were forgotten, since what was computed from none before that may be on
-- its way still.
create function stint.never_made() returns timestamptz language sql volatile
set search_path = pg_catalog, pg_temp
as $$ select timestamptz 'epoch' + coalesce(pg_sequence_last_value('stint.forgotten'::regclass), 0) * interval '1 microsecond' $$;

-- The newest states of gates, with the engines of the roster only: whoever is not in it
-- holds nothing. Of a gate that nobody used n is null. The rule is the one that counts,
-- null for any: a key has its own, or that of its limit. A pause of a limit is one of its keys too.
create function stint.gates(p_gates text[])
returns table (gate text, n bigint, made timestamptz, next_start timestamptz, next_cost integer, rule text, paused_until timestamptz, trial boolean,
  engines bigint[], held integer[], asked integer[], since timestamptz[], again bigint, failed bigint)
language plpgsql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  return query
    select g.gate, p.n, coalesce(p.made, stint.never_made()), p.next_start, p.next_cost, a.rule, s.until, s.trial,
           u.engines, u.held, u.asked, u.since, o.again, o.failed
    from unnest(p_gates) with ordinality as g(gate, i)
    left join lateral (select stint.rule_of(g.gate) as rule) a on true
    left join lateral stint.order_of(g.gate, case when a.rule like '%,in-order%' then g.gate end) o on true -- strict: not called without an order
    left join lateral (
      select * from stint.permits l where l.gate = g.gate
      order by l.gate desc, l.n desc limit 1) p on true -- both columns: the planner must walk the primary key
    left join lateral (
      select array_agg(k.engine order by k.i) as engines, array_agg(k.held order by k.i) as held,
             array_agg(k.asked order by k.i) as asked, array_agg(k.since order by k.i) as since
      from unnest(p.engines, p.held, p.asked, p.since) with ordinality as k(engine, held, asked, since, i)
      where exists (select from stint.engines e where e.token = k.engine)) u on true
    left join lateral stint.pause_of(g.gate) s on true
    order by g.i;
end
$$;

-- Write the next states of gates, those of the newest ones that the caller has read, told by
-- n and made: a gate that was forgotten begins again at 1. The answer is the gates
-- that were written; of the others somebody else has written a state meanwhile. The
-- engines of a state are p_used[i] elements of the arrays after it. Engines are woken for
-- what was written only.
create function stint.put_permits(p_engine bigint, p_gates text[], p_n bigint[], p_made timestamptz[], p_next timestamptz[], p_cost integer[],
  p_used integer[], p_engines bigint[], p_held integer[], p_asked integer[], p_since timestamptz[],
  p_wake_gates text[], p_wake_engines bigint[])
returns text[] language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  ok        boolean;
  at        integer := 0;
  written   text[] := '{}';
  written_n bigint[] := '{}';
  hidden    text[];
begin
  ok := stint.fence(p_engine);
  -- What is newest is not deleted before this is committed. So the statements after this,
  -- whose snapshots are younger than the lock, see the newest state that is committed, or
  -- meet the one that comes after it as a conflict.
  ok := pg_advisory_xact_lock_shared('stint.permits'::regclass::oid::integer, 1) is null;
  -- The gates come in the order of their names: in any other, two calls would wait for
  -- each other.
  for i in 1 .. cardinality(p_gates) loop
    insert into stint.permits (gate, n, engine, next_start, next_cost, engines, held, asked, since)
      select p_gates[i], p_n[i], p_engine, p_next[i], p_cost[i],
             p_engines[at+1 : at+p_used[i]], p_held[at+1 : at+p_used[i]], p_asked[at+1 : at+p_used[i]], p_since[at+1 : at+p_used[i]]
      from (select 1) one
      left join lateral (
        select l.n, l.made from stint.permits l where l.gate = p_gates[i]
        order by l.gate desc, l.n desc limit 1) was on true
      where (coalesce(was.n, 0), coalesce(was.made, stint.never_made())) = (p_n[i] - 1, p_made[i])
      on conflict do nothing;
    if found then
      written := written || p_gates[i]; written_n := written_n || p_n[i];
    end if;
    at := at + p_used[i];
  end loop;
  -- If an insertion came long after its comparison, others may have written the state
  -- with its number and newer ones, and the one of that number may have been forgotten.
  with gone as (
    delete from stint.permits p using unnest(written, written_n) as w(gate, n)
    where (p.gate, p.n) = (w.gate, w.n) and exists (select from stint.permits l where l.gate = p.gate and l.n > p.n)
    returning p.gate)
  select array_agg(g.gate) into hidden from gone g;
  if hidden is not null then
    written := array(select w.gate from unnest(written) as w(gate) where w.gate <> all (hidden));
  end if;
  perform pg_notify('stint', 'permits ' || w.engine || ' ' || w.gate)
    from unnest(p_wake_gates, p_wake_engines) as w(gate, engine) where w.gate = any (written);
  return written;
end
$$;

-- The newest state of every gate between two names, with each engine of the roster that
-- holds permits or asks for some, or with none if the next start may have to wait. Gates
-- are found by stepping through the primary key.
-- What was asked for three seconds ago does not count any more, as in the program.
create function stint.permits_held(p_from text default '', p_upto text default null)
returns table (gate text, engine bigint, instance text, held integer, asked integer, since timestamptz, i bigint, next_start timestamptz, next_cost integer)
language sql stable
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
  with recursive newest as (
    (select p.* from stint.permits p where p.gate >= p_from collate "C" and (p_upto is null or p.gate < p_upto collate "C")
     order by p.gate desc, p.n desc limit 1)
    union all
    select p.* from newest l cross join lateral (
      select * from stint.permits o where o.gate < l.gate and o.gate >= p_from collate "C"
      order by o.gate desc, o.n desc limit 1) p
  )
  select l.gate, u.token, u.instance, u.held, u.asked, case when u.asked > 0 then u.since end, u.i, l.next_start, l.next_cost
  from newest l
  left join lateral (
    select e.token, e.instance, k.held, a.asked, k.since, k.i
    from unnest(l.engines, l.held, l.asked, l.since) with ordinality as k(engine, held, asked, since, i)
    cross join lateral (select case when k.since > clock_timestamp() - interval '3 seconds' then k.asked else 0 end as asked) a
    join stint.engines e on e.token = k.engine
    where k.held > 0 or a.asked > 0) u on true
  where u.token is not null or l.next_start > clock_timestamp()
$$;

-- Forget states that are not the newest ones of their gates, and gates of which no engine of
-- the roster holds or asks for anything, if a start may be given out at once. The newest
-- state that an engine of the roster wrote stays: after a failover it proves what the
-- engine holds. Limits without a rule are forgotten as well.
--
-- Gates are looked for first, and forgotten while no state is being written, which is
-- for a moment only: whoever read a gate's state before would otherwise write the
-- next one beside that of another who found none, and hide it.
create function stint.tidy_permits(p_limit integer) returns integer language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  forgotten   integer;
  old_gates   text[];
  old_n       bigint[];
  old_made    timestamptz[];
  idle_gates  text[];
  idle_n      bigint[];
  idle_made   timestamptz[];
  superseded  integer;
  idle        integer;
  ok          boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'stint works in read committed transactions only' using errcode = 'ST001';
  end if;
  select array_agg(o.gate), array_agg(o.n), array_agg(o.made) into old_gates, old_n, old_made from (
    select p.gate, p.n, p.made from stint.permits p
    where exists (select from stint.permits l where l.gate = p.gate and l.n > p.n)
      and (not exists (select from stint.engines e where e.token = p.engine)
        or exists (select from stint.permits l where l.gate = p.gate and l.n > p.n and l.engine = p.engine))
    limit p_limit) o;
  select array_agg(o.gate), array_agg(o.n), array_agg(o.made) into idle_gates, idle_n, idle_made from (
    select p.gate, p.n, p.made from stint.permits p
    where not exists (select from stint.permits l where l.gate = p.gate and l.n > p.n)
      and (p.next_start is null or p.next_start < clock_timestamp())
      and not exists (
        select from unnest(p.engines, p.held, p.since) as k(engine, held, since) join stint.engines e on e.token = k.engine
        where k.held > 0 or k.since > clock_timestamp() - interval '1 minute')
    limit p_limit) o;
  delete from stint.limits l where l.declared is null and l.fixed is null;
  -- A trial that nobody ended for a day is over.
  delete from stint.limit_pauses p where p.until < clock_timestamp() - case when p.trial then interval '1 day' else interval '0' end;
  delete from stint.reruns r
    where not r.failed and (r.gate, r.job) in (
      select d.gate, d.job from stint.reruns d where not d.failed and not stint.is_open(d.job) limit p_limit);
  get diagnostics forgotten = row_count;
  -- Told by made as well: a gate may have been forgotten, and have begun again, meanwhile.
  delete from stint.permits p using unnest(old_gates, old_n, old_made) as o(gate, n, made) where (p.gate, p.n, p.made) = (o.gate, o.n, o.made);
  get diagnostics superseded = row_count;
  if idle_gates is null then
    return forgotten + superseded;
  end if;
  ok := pg_advisory_xact_lock('stint.permits'::regclass::oid::integer, 1) is null;
  perform nextval('stint.forgotten');
  delete from stint.permits p using unnest(idle_gates, idle_n, idle_made) as o(gate, n, made)
    where p.gate = o.gate
      and (o.n, o.made) = (select l.n, l.made from stint.permits l where l.gate = o.gate order by l.gate desc, l.n desc limit 1);
  get diagnostics idle = row_count;
  return forgotten + superseded + idle;
end
$$;

-- Set what a limit allows, from any language: 10, 100/1m, 10,100/1m,burst=5, any. It counts
-- when the transaction commits, and stands over what programs declare until it is
-- reset. A rule that programs cannot read lets nothing start.
create function stint.set_limit(name text, rule text, by text default session_user, why text default null) returns void language plpgsql
set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $$
begin
  perform stint.check_gate(split_part(set_limit.name, '=', 1), substr(set_limit.name, nullif(strpos(set_limit.name, '='), 0) + 1));
  if set_limit.rule is null or set_limit.rule !~ '^(any|[0-9]{1,7}|([0-9]{1,7},)?[0-9]{1,7}/[0-9][0-9a-z.]*)(,[a-z-]+(=[0-9]{1,7}(%?/[0-9][0-9a-z.]*)?)?)*$' then
    raise exception 'stint.set_limit: % is not such as 10, 100/1m, 10,100/1m,burst=5, 1,in-order, any,trip=5/30s, or any', quote_nullable(set_limit.rule) using errcode = '22023';
  end if;
  if split_part(set_limit.name, '=', 1) = 'queue' and set_limit.rule ~ ',(in-order|halt)' then
    raise exception 'stint.set_limit: a queue keeps no order: have its jobs name a limit that does' using errcode = '22023';
  end if;
  insert into stint.limits as l (name, fixed, set_at, set_by, set_why)
    values (set_limit.name, set_limit.rule, clock_timestamp(), nullif(set_limit.by, ''), nullif(set_limit.why, ''))
    on conflict on constraint limits_pkey do update set fixed = excluded.fixed, set_at = excluded.set_at, set_by = excluded.set_by, set_why = excluded.set_why;
  perform pg_notify('stint', 'permits 0 ' || set_limit.name);
end
$$;
comment on function stint.set_limit is 'Set what a limit allows, over what programs declare.';

-- Take that back; the answer is whether it was set.
create function stint.reset_limit(name text) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update stint.limits l set fixed = null, set_at = null, set_by = null, set_why = null
    where l.name = reset_limit.name and l.fixed is not null;
  if not found then
    return false;
  end if;
  perform pg_notify('stint', 'permits 0 ' || reset_limit.name);
  return true;
end
$$;
comment on function stint.reset_limit is 'Let the rule that programs declare count again.';

-- Pause a limit, or one of its keys: none of its jobs starts for so long, from
-- when the transaction commits. The answer is when the pause ends: one that lasts longer
-- already stays. With trial one job starts alone after it, and the others when that has completed.
create function stint.pause_limit(name text, wait interval, by text default session_user, why text default null, trial boolean default false)
returns timestamptz language plpgsql
set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $$
declare
  ends timestamptz;
begin
  perform stint.check_gate(split_part(pause_limit.name, '=', 1), substr(pause_limit.name, nullif(strpos(pause_limit.name, '='), 0) + 1));
  if pause_limit.wait is null or pause_limit.wait <= interval '0' or pause_limit.wait > interval '1 day' then
    raise exception 'stint.pause_limit: a pause of % is not between a microsecond and a day', quote_nullable(pause_limit.wait::text) using errcode = '22023';
  end if;
  insert into stint.limit_pauses as p (gate, until, trial, by, why)
    values (pause_limit.name, clock_timestamp() + pause_limit.wait, pause_limit.trial, nullif(pause_limit.by, ''), nullif(pause_limit.why, ''))
    on conflict (gate) do update set until = excluded.until, trial = p.trial or excluded.trial, by = excluded.by, why = excluded.why
      where excluded.until > p.until
    returning p.until into ends;
  if not found then
    return (select p.until from stint.limit_pauses p where p.gate = pause_limit.name);
  end if;
  perform pg_notify('stint', 'permits 0 ' || pause_limit.name);
  return ends;
end
$$;
comment on function stint.pause_limit is 'Let no job of a limit start for a time.';

-- End a pause, and its trial; the answer is whether there was one.
create function stint.resume_limit(name text) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from stint.limit_pauses p where p.gate = resume_limit.name;
  if not found then
    return false;
  end if;
  perform pg_notify('stint', 'permits 0 ' || resume_limit.name);
  return true;
end
$$;
comment on function stint.resume_limit is 'Let the jobs of a paused limit start again.';
