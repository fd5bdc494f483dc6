-- stint: what people do to schedules.

-- Pause a schedule from any language: nothing of it is fired from the moment that
-- the transaction commits. The answer is whether it was not paused before; null
-- when there is none of the name.
create function stint.pause_schedule(schedule text, by text default session_user, why text default null) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update stint.schedules s
    set paused = clock_timestamp(), paused_by = nullif(pause_schedule.by, ''), paused_why = nullif(pause_schedule.why, ''), revision = s.revision + 1
    where s.name = pause_schedule.schedule and s.paused is null;
  if found then
    perform pg_notify('stint', '');
    return true;
  end if;
  return (select false from stint.schedules s where s.name = pause_schedule.schedule);
end
$$;
comment on function stint.pause_schedule is 'Pause a schedule: nothing of it is fired until it is resumed.';

-- Let a schedule fire again. What came while it was paused is not made up for, so
-- its next occurrence is to be found again. The answer is as that of a pause.
create function stint.resume_schedule(schedule text) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  update stint.schedules s
    set paused = null, paused_by = null, paused_why = null, next = null, after = greatest(s.after, clock_timestamp()), revision = s.revision + 1
    where s.name = resume_schedule.schedule and s.paused is not null;
  if found then
    perform pg_notify('stint', '');
    return true;
  end if;
  return (select false from stint.schedules s where s.name = resume_schedule.schedule);
end
$$;
comment on function stint.resume_schedule is 'Let a paused schedule fire again, from now on.';

-- Forget a schedule and cancel those of its jobs that have not begun; the answer
-- is these, null when there is none of the name.
create function stint.remove_schedule(schedule text, why text default null) returns bigint[] language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  pending bigint[];
begin
  -- An engine that fires it at the moment is waited for.
  delete from stint.schedules s where s.name = remove_schedule.schedule;
  if not found then
    return null;
  end if;
  -- A statement of its own: it sees the job of the engine that was waited for.
  pending := array(
    select j.id from stint.jobs j
    where j.id = any (array(select e.pos from stint.entries e where e.schedule = remove_schedule.schedule))
      and j.state in ('scheduled', 'retrying', 'blocked', 'available')
    order by j.id);
  insert into stint.cancellations (job, why) select p, remove_schedule.why from unnest(pending) as p on conflict do nothing;
  perform pg_notify('stint', '');
  return pending;
end
$$;
comment on function stint.remove_schedule is 'Forget a schedule, and cancel those of its jobs that have not begun.';
