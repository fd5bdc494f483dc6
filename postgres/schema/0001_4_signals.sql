-- stint: signals to jobs, and what they wake.

-- Send a signal to a job, from any language: see the page about steps. It counts from the
-- moment that the transaction commits. Of several with the same key the first one counts. The
-- answer is its number.
create function stint.signal(job bigint, name text, value jsonb default 'null', key text default null, notify boolean default true)
returns bigint language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  h record;
  sent bigint;
begin
  if coalesce(signal.name, '') = '' or octet_length(signal.name) > 255 or signal.name ~ '[[:cntrl:]]' then
    raise exception 'stint: the name of a signal has 1 to 255 bytes, and no control characters' using errcode = '22023';
  elsif octet_length(signal.key) not between 1 and 255 or signal.key ~ '[[:cntrl:]]' then
    raise exception 'stint: the key of a signal has 1 to 255 bytes, and no control characters' using errcode = '22023';
  elsif octet_length(coalesce(signal.value, 'null')::text) > 2097152 then
    raise exception 'stint: the value of a signal has at most 2 MiB' using errcode = '22023';
  end if;
  select u.state, u.ended into h from stint.unique_holder(signal.job) as u;
  if h.state is null then
    raise exception 'stint: there is no job %', signal.job using errcode = 'ST009';
  elsif h.ended or h.state = 'cancelled' then
    raise exception 'stint: job % has ended', signal.job using errcode = 'ST010';
  end if;
  insert into stint.signals (job, name, value, key) values (signal.job, signal.name, coalesce(signal.value, 'null'), signal.key)
    on conflict (job, key) where key is not null do nothing returning n into sent;
  if sent is null then
    select s.n into sent from stint.signals s where s.job = signal.job and s.key = signal.key;
    return sent;
  end if;
  insert into stint.notes (job) values (signal.job);
  if signal.notify then
    perform pg_notify('stint', '');
  end if;
  return sent;
end
$$;
revoke execute on function stint.signal from public;
comment on function stint.signal is 'Send a signal to a job, which its handler awaits.';

-- Make jobs due now that were noted, if a signal that they wait for is there, or was taken by
-- their step in a call whose answer was lost. It begins when those who noted them have committed,
-- and looks in a later statement than the one that reads the notes: of two who did not see each other,
-- the later note finds both. The note of a row that somebody else has in hand stays.
create function stint.wake_noted(p_note bigint, p_limit integer, p_due timestamptz) returns bigint language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  notes bigint[];
  noted bigint[];
  mine  bigint[];
begin
  select array_agg(l.n), array_agg(distinct l.job) into notes, noted
    from (select t.n, t.job from stint.notes t where t.n > p_note order by t.n limit p_limit for update skip locked) l;
  if notes is null then
    return p_note;
  end if;
  select coalesce(array_agg(l.job), '{}') into mine
    from (select w.job from stint.waiting w where w.job = any (noted) and w.awaits is not null order by w.job for update skip locked) l;
  update stint.waiting w set due = p_due
    where w.due > p_due and w.job = any (mine) and exists (
      select from jsonb_each_text(w.awaits) as a(step, name)
      where exists (select from stint.signals s where s.job = w.job and s.name = a.name and not exists (select from stint.steps t where t.signal = s.n))
         or exists (select from stint.steps t where t.job = w.job and t.name = a.step));
  -- Of a job that was deleted before its signal was committed.
  delete from stint.signals s where s.job = any (noted) and not exists (select from stint.entries e where e.pos = s.job);
  delete from stint.notes t where t.n = any (notes)
    and (t.job = any (mine) or not exists (select from stint.waiting w where w.job = t.job and w.awaits is not null));
  return notes[cardinality(notes)];
end
$$;
