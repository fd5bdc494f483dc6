-- stint: what people and programs in other languages use.

-- The newest frontier of every lane: lanes are found by stepping through the
-- primary key. Downwards, so that each step lands on a newest claim: below are
-- those that retention deleted, and under a pinned horizon they stay in the way.
-- Stable: it sees what the statement that calls it sees. With the owner's
-- rights, for roles that read the view of jobs and no claims.
create function stint.frontiers()
returns table (lane bigint, n bigint, xid xid8, pos bigint, pending_xid xid8[], pending_pos bigint[])
language plpgsql stable rows 1000 security definer
set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set jit = off
as $$
declare
  at bigint := 9223372036854775807;
  f  record;
begin
  loop
    select c.lane into at from stint.claims c where c.lane <= at order by c.lane desc, c.n desc limit 1;
    exit when not found;
    f := stint.frontier(at);
    lane := at; n := f.n; xid := f.xid; pos := f.pos; pending_xid := f.pending_xid; pending_pos := f.pending_pos;
    return next;
    at := at - 1;
  end loop;
end
$$;

revoke execute on function stint.frontiers from public;

-- The name of an outcome, as people know it.
create function stint.outcome_name(outcome smallint) returns text language sql immutable strict parallel safe
as $$ select (array['completed', 'failed', 'snoozed', 'returned', 'lost', 'cancelled', 'expired', 'skipped'])[outcome] $$;

-- One row per job, with its derived state. Each job has one entry under its
-- id (b). It is where it waits (w), or else at its one entry without execution
-- or with a final one: a later one (e, with l), or b itself (with x). Its
-- contents are those that the newest refers to (c). All of it is joined by
-- keys: a search by id and the newest first walk the primary key, and counts
-- may hash. A job is faulty only while it has not ended; one that is undecided
-- waits for the retry function of that name to give it a date.
create view stint.jobs as
select j.id, j.kind, j.state, j.queue, j.priority, c.args, j.attempt, j.losses,
       coalesce(j.reason, case when j.state = 'cancelled' then 'cancelled' end) as reason,
       j.created, j.due,
       -- of a job between two attempts, the last one: looked up for those alone, and only when asked for;
       -- of one that has a marker only, that marker, which says what its last execution will
       case when j.marked is not null and j.state = 'cancelled' then j.marked when j.again then (select y.started from stint.executions y where y.pos = coalesce((select max(z.pos) from stint.executions z where z.job = j.id), j.id)) else j.started end as started,
       case when j.marked is not null and j.state = 'cancelled' then j.marked when j.again then (select y.finished from stint.executions y where y.pos = coalesce((select max(z.pos) from stint.executions z where z.job = j.id), j.id)) else j.finished end as finished, j.tags, j.urn, j.source, c.metadata,
       coalesce(c.retry, (select p.body from stint.policies p where p.id = c.policy)) as retry,
       c.timeout::bigint, c.start_by, c.uniqueness, coalesce(c.max_losses, 3) as max_losses,
       case when j.marked is not null and j.state = 'cancelled' then null when j.again then (select y.result from stint.executions y where y.pos = coalesce((select max(z.pos) from stint.executions z where z.job = j.id), j.id)) else j.result end as result,
       case when j.marked is not null and j.state = 'cancelled' then null when j.again then (select y.error from stint.executions y where y.pos = coalesce((select max(z.pos) from stint.executions z where z.job = j.id), j.id)) else j.error end as error, j.pos,
       j.state = 'running' and exists (select from stint.beats r where j.pos = any (r.running)) as begun,
       j.faulty and j.state not in ('completed', 'failed', 'cancelled') as faulty, j.undecided,
       case when j.state = 'blocked' and j.awaits is not null then (select array_agg(distinct a.value order by a.value) from jsonb_each_text(j.awaits) as a where a.value <> '') end as awaits,
       case when j.state = 'blocked' and j.awaits is not null then (select array_agg(a.key order by a.key) from jsonb_each_text(j.awaits) as a where a.value = '' and not exists (select from stint.steps s where s.job = j.id and s.name = a.key and s.question ? 'job')) end as asks, j.recovered, j.schedule, j.nth, j.occurrence,
       coalesce(j.correlation, j.id::text) as correlation, string_to_array(j.limits, chr(10)) as limits,
       j.flow, case when j.flow is not null then (select n.name from stint.nodes n where n.job = j.id and n.flow = j.flow) end as node,
       exists (select from stint.flows f where f.flow = j.id) as is_flow, case when j.state = 'blocked' then coalesce(j.watch, case when j.awaits is not null then (select min((s.question->>'job')::bigint) from stint.steps s where s.job = j.id and s.result is null and s.question ? 'job') end) end as watch
from (
  select b.pos as id, b.kind::text, b.created, b.tags, b.urn, b.source, b.correlation,
         case when w.job is not null then case when k.job is null or exists (select from stint.flows f where f.flow = w.job) then w.why else 'cancelled' end
              when v.outcome is not null then case when v.outcome = 1 then 'completed' when v.outcome in (6, 8) then 'cancelled' else 'failed' end
              when (v.xid, v.pos) <= (f.xid, f.pos)
               and not exists (select from unnest(f.pending_xid, f.pending_pos) p(xid, pos) where p.xid = v.xid and p.pos < v.pos)
              then 'running' when k.job is null then 'available' else 'cancelled' end as state,
         coalesce(w.queue, e.queue, b.queue) as queue, coalesce(w.priority, e.priority, b.priority) as priority,
         coalesce(w.attempt, e.attempt, b.attempt) as attempt,
         (coalesce(w.losses, e.losses, b.losses) + case when w.job is null and v.outcome = 5 then 1 else 0 end)::smallint as losses, -- the last one too
         coalesce(case when w.job is null then case when e.pos is null then x.reason else l.reason end end,
                  case when w.job is not null or v.outcome is null then k.why when v.outcome = 1 then 'done' end) as reason,
         coalesce(w.due, e.due, e.created, b.due, b.created) as due,
         case when w.job is null then v.pos end as pos,
         case when w.job is not null or v.outcome is null then k.at end as marked,
         coalesce(w.body, e.body, b.pos) as contents, w.job is not null or e.pos is not null and l.pos is null as again,
         coalesce(w.faulty, e.faulty, false) as faulty, w.undecided, w.awaits, w.watch, b.flow,
         case when e.pos is null then x.started else l.started end as started,
         case when e.pos is null then x.finished else l.finished end as finished,
         case when e.pos is null then x.result else l.result end as result,
         case when e.pos is null then x.error else l.error end as error, b.recovered, b.schedule, b.nth, b.occurrence, b.limits
  from stint.entries b
  left join stint.waiting w on w.job = b.pos
  left join stint.cancellations k on k.job = b.pos
  left join (stint.entries e left join stint.executions l on l.pos = e.pos)
         on e.job = b.pos and (l.pos is null or l.final)
  left join stint.executions x on x.pos = b.pos
  cross join lateral (select coalesce(e.pos, b.pos), coalesce(e.xid, b.xid), coalesce(e.lane, b.lane),
                             case when e.pos is null then x.outcome else l.outcome end) v(pos, xid, lane, outcome)
  left join stint.frontiers() f on f.lane = v.lane
  where b.job is null
    and (w.job is not null or e.pos is not null or x.final or x.pos is null and b.lane >= 0)
) j
left join stint.entries c on c.pos = j.contents;
comment on column stint.jobs.id         is 'the job''s id';
comment on column stint.jobs.state      is 'scheduled, retrying, blocked, available, running, completed, failed or cancelled';
comment on column stint.jobs.uniqueness is 'which jobs it may not stand beside; null for any';
comment on column stint.jobs.args       is 'what to do it with; never null';
comment on column stint.jobs.attempt    is 'the number of the attempt that it is at, from 1';
comment on column stint.jobs.reason     is 'why it ended, or is to end';
comment on column stint.jobs.created    is 'when it was enqueued';
comment on column stint.jobs.due        is 'when it is or was to become ready';
comment on column stint.jobs.started    is 'when its last attempt that is recorded began; when it was cancelled, if it never began';
comment on column stint.jobs.finished   is 'when that ended, or it was cancelled';
comment on column stint.jobs.retry      is 'its retry policy; null for the default';
comment on column stint.jobs.max_losses is 'how many engines may die with it before it fails';
comment on column stint.jobs.result     is 'what the last attempt that is recorded returned';
comment on column stint.jobs.error      is 'what went wrong in it: class, message and stack';
comment on column stint.jobs.pos        is 'of its newest entry in the log; null while it waits';
comment on column stint.jobs.begun      is 'whether an engine has announced that it runs';
comment on column stint.jobs.correlation is 'what it shares with the jobs that it comes from and that come from it';
comment on column stint.jobs.limits     is 'the limits that it waits for, with their keys; null for none';
comment on column stint.jobs.flow       is 'the flow that it belongs to; null for none';
comment on column stint.jobs.node       is 'its name there';
comment on column stint.jobs.is_flow    is 'whether it is a flow: no engine runs it, it ends when its jobs have';
comment on column stint.jobs.watch      is 'of a blocked one, a job that must end before it begins, or, if it is a flow, ends';
comment on column stint.jobs.asks       is 'of a blocked one, the questions whose answers it waits for';
comment on column stint.jobs.awaits     is 'of a blocked one, the signals that it waits for: one of them has it run before it is due';
comment on column stint.jobs.faulty     is 'whether it failed so often that people should look';

-- One row per attempt that ended, as people read it: what engines write of it is in
-- stint.executions. Two arms, so that the attempts of one job are found by a key: its
-- first entry's under its id, the others by an index. Times are null where no attempt
-- began, and of one that was lost with its engine, since only the moment at which
-- that became known is stored.
create view stint.attempts as
select x.pos as job, x.attempt, e.kind::text, e.queue::text, stint.outcome_name(x.outcome) as outcome, x.final, x.reason,
       case when x.slot > 0 then x.started end as started, x.finished,
       case when x.slot > 0 then x.finished - x.started end as took,
       case when x.slot > 0 then greatest(interval '0', x.started - coalesce(e.due, e.created)) end as waited,
       h.instance, h.host, h.pid, nullif(x.slot, 0) as slot, x.error, x.result, x.pos
from stint.executions x join stint.entries e on e.pos = x.pos left join stint.engine_history h on h.token = x.engine
where x.job is null
union all
select x.job as job, x.attempt, e.kind::text, e.queue::text, stint.outcome_name(x.outcome) as outcome, x.final, x.reason,
       case when x.slot > 0 then x.started end as started, x.finished,
       case when x.slot > 0 then x.finished - x.started end as took,
       case when x.slot > 0 then greatest(interval '0', x.started - coalesce(e.due, e.created)) end as waited,
       h.instance, h.host, h.pid, nullif(x.slot, 0) as slot, x.error, x.result, x.pos
from stint.executions x join stint.entries e on e.pos = x.pos left join stint.engine_history h on h.token = x.engine
where x.job is not null;
comment on column stint.attempts.job      is 'the job''s id';
comment on column stint.attempts.attempt  is 'its number, from 1; what was returned has the number of the one that came in its place';
comment on column stint.attempts.queue    is 'where it was';
comment on column stint.attempts.outcome  is 'completed, failed, snoozed, returned, lost, cancelled, expired or skipped';
comment on column stint.attempts.final    is 'whether the job ended with it';
comment on column stint.attempts.reason   is 'why it ended so, where that is said';
comment on column stint.attempts.started  is 'when it began; null when it did not, or was lost';
comment on column stint.attempts.finished is 'when it ended, or was found to be lost';
comment on column stint.attempts.took     is 'from its start to its end';
comment on column stint.attempts.waited   is 'from when it was due to its start';
comment on column stint.attempts.instance is 'the engine that had it; null for none, and of an engine that is no longer remembered';
comment on column stint.attempts.host     is 'the machine of that engine';
comment on column stint.attempts.pid      is 'its process';
comment on column stint.attempts.slot     is 'which of the engine''s slots; null when it did not begin, or was lost';
comment on column stint.attempts.error    is 'what went wrong: class, message and stack';
comment on column stint.attempts.result   is 'what the handler returned';
comment on column stint.attempts.pos      is 'of its entry in the log: later attempts of a job have higher ones';

-- What is wrong with a retry policy, null when nothing is. A policy that the
-- program could not read would be the default one without a word, so this is
-- as strict, but for the sizes and the order of durations.
create function stint.policy_problem(p jsonb, depth integer default 1) returns text language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
declare
  span  constant text := '([0-9]+([.][0-9]+)?(w|d|h|m|s|ms|us|ns))+';
  names constant text := '[^,|[:cntrl:]]+([|][^,|[:cntrl:]]+)*';
  name  text;
  has   text[];
  field text;
  v     jsonb;
  item  jsonb;
  bad   text;
begin
  if jsonb_typeof(p) = 'string' then
    if p #>> '{}' !~ ('^(none|default|fixed:[0-9]{1,10}:' || span || '|forever:' || span || '|exponential:[0-9]{1,10}:' || span ||
        '|exponential-within:' || span || ':' || span || '|function:[^,[:cntrl:]]+|timetable:' || span || '=' || span || '(,' || span || '=' || span || ')*)' ||
        '(,(jitter=[0-9.eE+-]+|max=' || span || '|deadline=' || span || '|faulty=[1-9][0-9]{0,9}|only=' || names || '|except=' || names || '))*$') then
      return 'as text it is like fixed:2:10s or exponential:10:1m,jitter=0.1,max=1h';
    end if;
    for field in select unnest(string_to_array(m[2], '|')) from regexp_matches(p #>> '{}', ',(only|except)=([^,]*)', 'g') m loop
      bad := coalesce(bad, stint.class_problem(to_jsonb(field)));
    end loop;
    return bad;
  elsif jsonb_typeof(p) <> 'object' then
    return 'it is a JSON object such as {"policy": "fixed", "retries": 2, "wait": "10s"}, or a JSON string such as "fixed:2:10s"';
  elsif depth > 5 then
    return 'policies are nested deeper than 5';
  end if;
  name := case when jsonb_typeof(p -> 'policy') = 'string' then p ->> 'policy' end;
  has := case name when 'none' then '{}' when 'default' then '{}' when 'fixed' then '{retries,wait}' when 'forever' then '{wait}'
                   when 'exponential' then '{retries,first}' when 'timetable' then '{rows}' when 'function' then '{name}'
                   when 'by_error' then '{cases}' end;
  if has is null then
    return 'policy is one of none, default, fixed, forever, exponential, timetable, by_error and function';
  end if;
  foreach field in array has loop
    if not p ? field then
      return name || ' needs ' || field;
    end if;
  end loop;
  has := has || '{policy,only,except,jitter,max,deadline,faulty}' || case name when 'by_error' then '{else}'::text[] end;
  for field, v in select * from jsonb_each(p) loop
    if field <> all (has) then
      return name || ' has no ' || field;
    end if;
    bad := case
      when field in ('wait', 'first', 'max', 'deadline') and (jsonb_typeof(v) <> 'string' or v #>> '{}' !~ ('^' || span || '$'))
        then 'is a duration such as "90s"'
      when field in ('retries', 'faulty', 'jitter') and jsonb_typeof(v) <> 'number' then 'is a number'
      when field in ('retries', 'faulty') and (v::numeric <> trunc(v::numeric) or v::numeric > 2147483647
                                               or v::numeric < case field when 'faulty' then 1 else 0 end) then 'is a whole number'
      when field = 'jitter' and v::numeric not between 0 and 1 then 'is between 0 and 1'
      when field = 'name' and (jsonb_typeof(v) <> 'string' or v #>> '{}' !~ '^[^[:cntrl:]]{1,255}$') then 'is the name of a function'
      when field in ('only', 'except', 'rows', 'cases') and (jsonb_typeof(v) <> 'array' or v = '[]') then 'is an array of some'
    end;
    if bad is not null then
      return field || ' ' || bad;
    end if;
    if field = 'else' then
      bad := stint.policy_problem(v, depth + 1);
    elsif field in ('only', 'except', 'rows', 'cases') then
      for item in select * from jsonb_array_elements(v) loop
        bad := coalesce(bad, case
          when field in ('only', 'except') then stint.class_problem(item)
          when jsonb_typeof(item) <> 'object' then 'want an object'
          when field = 'rows' and item - '{younger,wait}'::text[] = '{}' and item ->> 'younger' ~ ('^' || span || '$') and item ->> 'wait' ~ ('^' || span || '$') then null
          when field = 'rows' then 'a row has the durations younger and wait'
          when item - '{class,then}'::text[] <> '{}' or not item ?& '{class,then}' then 'a case has class and then'
          else coalesce(stint.class_problem(item -> 'class'), stint.policy_problem(item -> 'then', depth + 1)) end);
      end loop;
    end if;
    if bad is not null then
      return field || ': ' || bad;
    end if;
  end loop;
  return null;
end
$$;

-- The same of a class of errors. The types of errors.New and the like are
-- none, since every error of a text would be of that class.
create function stint.class_problem(class jsonb) returns text language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select case when jsonb_typeof(class) <> 'string' or class #>> '{}' !~ '^[^[:cntrl:]]+$' or octet_length(class #>> '{}') > 255
              then 'a class is a name'
              when ltrim(class #>> '{}', '*') in ('errors.errorString', 'errors.joinError', 'errors.fundamental', 'errors.withStack', 'errors.withMessage',
                'fmt.errorString', 'fmt.wrapError', 'fmt.wrapErrors', 'xerrors.errorString', 'xerrors.noWrapError', 'xerrors.wrapError')
              then (class #>> '{}') || ' is the type of every error of a text; declare a class for those that you mean' end
$$;

-- Which part of arguments that is to be sealed is in clear, as a JSON pointer; null if none is. Empty
-- arguments have nothing to seal.
create function stint.in_clear(p_sealed text[], p_args jsonb) returns text language sql immutable parallel safe
set search_path = pg_catalog, pg_temp
as $$
  select s.pointer from unnest(p_sealed) as s(pointer), lateral (
    select p_args #> array(select replace(replace(u.t, '~1', '/'), '~0', '~') from unnest((string_to_array(s.pointer, '/'))[2:]) with ordinality as u(t, i) order by i) as part) v
  where v.part is not null and (s.pointer <> '' or v.part <> '{}')
    and (jsonb_typeof(v.part) <> 'object' or v.part - '$sealed' <> '{}' or coalesce(v.part -> '$sealed' ->> 'c', '') = '' or coalesce(v.part -> '$sealed' ->> 'k', '') = '') limit 1
$$;

-- Check what is said of a job, and fill in what is not by what an engine declared for its kind: it is then as store_job and store_flow take it.
-- Errors begin with the caller. Of what is not declared, such as a flow, nothing is filled in.
create function stint.resolve_job(caller text, declared boolean, kind text, args jsonb, queue text, priority integer, run_at timestamptz, delay interval, retry text, timeout interval,
  tags text[], urn text, source text, metadata jsonb, idempotency_key text, correlation text, start_by timestamptz, start_within interval, description text,
  uniqueness text, limits text[], max_losses integer, in_flow text, -- its name there
  out q text, out p integer, out arguments jsonb, out known bigint, out policy jsonb, out t bigint, out labels text[], out about jsonb, out losses smallint,
  out gates text, -- the limits, as entries keep them
  out due timestamptz, -- also one that is past
  out span bigint, -- to begin within, in microseconds
  out is_unique text)
language plpgsql
set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $$
#variable_conflict use_column
declare
  k      record;
  clock  timestamptz := clock_timestamp(); -- a delay counts from now: the start of a long transaction is long past
  bound  timestamptz;
  name   text;
  wanted jsonb;
  -- A list of jobs reads the JSON of all of them, and readers have bounds. What is short is not deep.
  deep   constant jsonpath := 'strict $.**{200} ? (@.type() == "array" || @.type() == "object")';
begin
  select d.queue, d.priority, d.timeout, d.tags, d.retry, d.max_losses, d.start_within, d.uniqueness, d.limits, d.sealed into k from stint.kinds d where d.kind = resolve_job.kind and resolve_job.declared;
  q := coalesce(resolve_job.queue, k.queue, 'default');
  p := coalesce(resolve_job.priority, k.priority, 0);
  t := coalesce(ceil(extract(epoch from resolve_job.timeout) * 1000)::bigint, k.timeout);
  wanted := case when resolve_job.retry ~ '^\s*([{["]|null\s*$)' then nullif(resolve_job.retry::jsonb, 'null') else to_jsonb(resolve_job.retry) end;
  labels := k.tags || resolve_job.tags;
  if labels is not null then
    labels := (select array_agg(distinct l order by l) from unnest(labels) as l);
  end if;
  foreach name in array resolve_job.kind || array_remove(array[q, resolve_job.urn, resolve_job.source, resolve_job.description, resolve_job.idempotency_key, resolve_job.correlation,
                                                         resolve_job.in_flow], null) || labels loop
    if name is null or name = '' or octet_length(name) > 255 or name ~ '[\u0001-\u001f\u007f-\u009f]|^[\s\u00a0]|[\s\u00a0]$' then
      raise exception '%: % is no name for a job, kind, queue, tag, urn, source, idempotency key or correlation id, and no description', resolve_job.caller, coalesce(quote_literal(name), 'null')
        using errcode = '22023', hint = 'A name is 1 to 255 bytes without control characters and without space at its ends.';
    end if;
  end loop;
  arguments := coalesce(nullif(resolve_job.args, 'null'), '{}');
  losses := coalesce(resolve_job.max_losses, k.max_losses);
  is_unique := nullif(coalesce(resolve_job.uniqueness, k.uniqueness), 'none');
  due := coalesce(resolve_job.run_at, clock + resolve_job.delay);
  bound := coalesce(resolve_job.start_by,
    greatest(due, clock) + coalesce(resolve_job.start_within, k.start_within * interval '1 millisecond'));
  if q = '*' then
    raise exception '%: "*" means every queue and names none', resolve_job.caller using errcode = '22023';
  elsif p not between -100 and 100 then
    raise exception '%: priority % is outside -100 to 100', resolve_job.caller, p using errcode = '22023';
  elsif resolve_job.run_at is not null and resolve_job.delay is not null then
    raise exception '%: a job has run_at or delay, not both', resolve_job.caller using errcode = '22023';
  elsif resolve_job.delay < interval '0' then
    raise exception '%: delay: % is negative', resolve_job.caller, resolve_job.delay using errcode = '22023';
  elsif due > timestamptz '9000-01-01 00:00:00+00' then -- infinity as well
    raise exception '%: % is too late for a job to wait for', resolve_job.caller, due using errcode = '22023';
  elsif resolve_job.start_by is not null and resolve_job.start_within is not null then
    raise exception '%: a job has start_by or start_within, not both', resolve_job.caller using errcode = '22023';
  elsif resolve_job.start_within <= interval '0' then
    raise exception '%: start_within must be positive', resolve_job.caller using errcode = '22023';
  elsif bound not between timestamptz '1900-01-01 00:00:00+00' and timestamptz '9100-01-01 00:00:00+00' then
    raise exception '%: % is no time for a job to begin by', resolve_job.caller, bound using errcode = '22023';
  elsif bound < due then
    raise exception '%: the job is due at %, only after the time to begin by, %', resolve_job.caller, due, bound using errcode = '22023';
  elsif t <= 0 then
    raise exception '%: timeout must be positive', resolve_job.caller using errcode = '22023';
  elsif t > 9223372036854 then -- as long as engines count
    raise exception '%: a timeout of % is longer than 292 years', resolve_job.caller, resolve_job.timeout using errcode = '22023';
  elsif resolve_job.max_losses not between 0 and 1000 then
    raise exception '%: max_losses of % is outside 0 to 1000', resolve_job.caller, resolve_job.max_losses using errcode = '22023';
  elsif octet_length(resolve_job.args::text) > 1048576 then
    raise exception '%: args of % bytes are more than 1048576', resolve_job.caller, octet_length(resolve_job.args::text) using errcode = '22023';
  elsif octet_length(resolve_job.args::text) > 400 and jsonb_path_exists(resolve_job.args, deep) then
    raise exception '%: args are nested more than 200 deep', resolve_job.caller using errcode = '22023';
  elsif jsonb_typeof(resolve_job.metadata) not in ('object', 'null') then
    raise exception '%: metadata must be a JSON object', resolve_job.caller using errcode = '22023';
  elsif octet_length(resolve_job.metadata::text) > 65536 then
    raise exception '%: metadata of % bytes is more than 65536', resolve_job.caller, octet_length(resolve_job.metadata::text) using errcode = '22023';
  elsif octet_length(resolve_job.metadata::text) > 400 and jsonb_path_exists(resolve_job.metadata, deep) then
    raise exception '%: metadata is nested more than 200 deep', resolve_job.caller using errcode = '22023';
  elsif wanted is not null and stint.policy_problem(wanted) is not null then
    raise exception '%: % is no retry policy: %', resolve_job.caller, resolve_job.retry, stint.policy_problem(wanted) using errcode = '22023',
      hint = 'It is a text such as fixed:2:10s, as on the command line, or a JSON object such as {"policy": "fixed", "retries": 2, "wait": "10s"}.';
  elsif cardinality(labels) > 50 then
    raise exception '%: % tags are more than 50', resolve_job.caller, cardinality(labels) using errcode = '22023';
  end if;

  if k.sealed is not null and stint.in_clear(k.sealed, arguments) is not null then
    raise exception '%: the kind % is sealed, and its arguments are in clear%', resolve_job.caller, quote_literal(resolve_job.kind), coalesce(' at ' || nullif(stint.in_clear(k.sealed, arguments), ''), '')
      using errcode = '22023', hint = 'A program with the key enqueues it, or seals them as docs/sealed.md says.';
  end if;
  if coalesce(resolve_job.limits, k.limits) is not null then
    gates := stint.limit_keys(coalesce(resolve_job.limits, k.limits), arguments);
  end if;
  policy := coalesce(wanted, k.retry);
  if policy is not null then
    known := (select s.id from stint.policies s where s.body = policy limit 1);
  end if;
  about := case when resolve_job.description is null then nullif(resolve_job.metadata, 'null')
    else coalesce(nullif(resolve_job.metadata, 'null'), '{}') || jsonb_build_object('description', resolve_job.description) end;
  span := case when resolve_job.start_by is null then (extract(epoch from bound - greatest(due, clock)) * 1000000)::bigint end;
end
$$;

-- Enqueue one job from any language, in the caller's own transaction:
--
--   select stint.enqueue('send_invoice', '{"customer": 42}', delay => '1 hour');
--
-- What is left out is what an engine declared for the kind. A job that has not
-- begun by start_by, or within so long after it is due, expires. A retry policy is a
-- text as on the command line, fixed:2:10s, or its JSON. The answer is the job's
-- id; of a repetition under an idempotency key the first job's, with a
-- notice that says so. Another kind or other arguments under that key are an
-- error (ST005). Two transactions that take the same two keys crosswise wait for
-- each other until the server ends one with an error. Uniqueness is a text such as
-- until-ended,by=/tenant|/id,replace (by=none: whatever the arguments), or none; the answer of a duplicate is the id of the job
-- that holds the unique key, with a notice. Limits are names of limits, with a key or a pointer to
-- one if they have keys: smtp, tenant=acme, tenant by /tenant; '{}' for none. Engines are woken when the transaction commits; quiet leaves them
-- to their next poll, for transactions that are to be prepared. A description is a
-- line for people; the metadata keep it under that name. With the owner's
-- rights: a role that may call only this can enqueue, and reads and changes nothing.
create function stint.enqueue(
  kind text, args jsonb default '{}', queue text default null, priority integer default null,
  run_at timestamptz default null, delay interval default null, retry text default null,
  timeout interval default null, tags text[] default null, urn text default null,
  source text default null, metadata jsonb default null, quiet boolean default false,
  idempotency_key text default null, correlation text default null,
  start_by timestamptz default null, start_within interval default null,
  description text default null, uniqueness text default null, limits text[] default null)
returns bigint language plpgsql security definer
set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $$
#variable_conflict use_column
declare
  j      record;
  stored record;
begin
  select * into j from stint.resolve_job('stint.enqueue', true, enqueue.kind, enqueue.args, enqueue.queue, enqueue.priority, enqueue.run_at, enqueue.delay, enqueue.retry, enqueue.timeout,
    enqueue.tags, enqueue.urn, enqueue.source, enqueue.metadata, enqueue.idempotency_key, enqueue.correlation, enqueue.start_by, enqueue.start_within, enqueue.description,
    enqueue.uniqueness, enqueue.limits, null, null);
  select * into stored from stint.store_job(stint.lane(j.q, j.p, 'normal', '', j.gates), j.q, j.p::smallint, enqueue.kind, j.arguments, j.known, j.policy, j.t,
    enqueue.urn, enqueue.source, j.about, j.losses, enqueue.correlation, j.gates, j.due, null, j.labels, enqueue.start_by, j.span,
    enqueue.idempotency_key, j.is_unique, false);
  if not stored.same then
    raise exception 'stint.enqueue: job % has the idempotency key %, with another kind or other arguments', stored.job, quote_literal(enqueue.idempotency_key)
      using errcode = 'ST005';
  elsif stored.same then
    raise notice 'stint.enqueue: a duplicate of job %, which has the idempotency key %', stored.job, quote_literal(enqueue.idempotency_key);
    return stored.job;
  elsif stored.job <> stored.id then
    raise notice 'stint.enqueue: a duplicate of job %, which holds the unique key and is %', stored.job, coalesce(stored.state, 'deleted');
    return stored.job;
  elsif stored.old is not null then
    raise notice 'stint.enqueue: job % is cancelled for this one, which has its unique key', stored.old;
  end if;
  if not enqueue.quiet then
    perform pg_notify('stint', case when j.is_unique is not null then '' when j.due > clock_timestamp() then 'due ' || pg_current_xact_id() else 'work ' || pg_current_xact_id() end);
  end if;
  return stored.id;
end
$$;
revoke execute on function stint.enqueue from public;
comment on function stint.enqueue is 'Enqueue one job; it exists if and when the transaction commits.';

-- Pause a queue from any language: nothing of it is begun from the moment that
-- the transaction commits. The answer is whether it was not paused before.
create function stint.pause(queue text, by text default session_user, why text default null) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp set standard_conforming_strings = on
as $$
begin
  if pause.queue is null or pause.queue in ('', '*') or octet_length(pause.queue) > 255
     or pause.queue ~ '[\u0001-\u001f\u007f-\u009f]|^[\s\u00a0]|[\s\u00a0]$' then
    raise exception 'stint.pause: % is no name of a queue', coalesce(quote_literal(pause.queue), 'null') using errcode = '22023';
  end if;
  insert into stint.queues as q (queue, by, why) values (pause.queue, nullif(pause.by, ''), nullif(pause.why, '')) on conflict do nothing;
  if not found then
    return false;
  end if;
  perform pg_notify('stint', '');
  return true;
end
$$;
comment on function stint.pause is 'Pause a queue: nothing of it is begun until it is resumed.';

-- Let the jobs of a queue begin again, whether it was paused or not; the
-- answer tells.
create function stint.resume(queue text) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  delete from stint.queues q where q.queue = resume.queue;
  if not found then
    return false;
  end if;
  perform pg_notify('stint', '');
  return true;
end
$$;
comment on function stint.resume is 'Let the jobs of a paused queue begin again.';

-- Cancel one job from any language: it is not begun any more, or asked to stop
-- if it runs. It counts from the moment that the transaction commits; what no
-- engine has ends with the next promotion, within a second where an engine works. The
-- answer says what the job is now; not found is null.
create function stint.cancel(job bigint, why text default null) returns text language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  now_is text;
begin
  select j.state into now_is from stint.jobs j where j.id = cancel.job;
  if now_is is null or now_is in ('completed', 'failed', 'cancelled') then
    return now_is;
  end if;
  insert into stint.cancellations (job, why) values (cancel.job, cancel.why) on conflict do nothing;
  perform pg_notify('stint', '');
  return case when now_is = 'running' then 'running' else 'cancelled' end;
end
$$;
comment on function stint.cancel is 'Cancel one job; a running one is asked to stop.';
