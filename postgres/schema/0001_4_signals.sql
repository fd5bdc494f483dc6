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
  h     record;
  label text;
  sent  bigint;
begin
  foreach label in array array[signal.name, coalesce(signal.key, 'none')] loop
    if label is null or label = '' or octet_length(label) > 255 or label ~ '[\u0001-\u001f\u007f-\u009f]|^[\s\u00a0]|[\s\u00a0]$' then
      raise exception 'stint: % is no name or key of a signal', coalesce(quote_literal(label), 'null')
        using errcode = '22023', hint = 'It is 1 to 255 bytes without control characters and without space at its ends.';
    end if;
  end loop;
  if octet_length(coalesce(signal.value, 'null')::text) > 2097152 then
    raise exception 'stint: the value of a signal has at most 2 MiB as PostgreSQL writes it' using errcode = '22023';
  end if;
  -- Before the look at the job: whoever repeats it may have had it run to its end.
  if signal.key is not null then
    select s.n into sent from stint.signals s where s.job = signal.job and s.key = signal.key;
    if found then
      return sent;
    end if;
  end if;
  select u.state, u.ended into h from stint.unique_holder(signal.job) as u;
  if h.state is null then
    raise exception 'stint: there is no job %', signal.job using errcode = 'ST009';
  elsif h.ended or h.state = 'cancelled' then
    raise exception 'stint: job % has ended', signal.job using errcode = 'ST010';
  end if;
  -- As many as a job may have steps: more could not be taken.
  select count(*) as n, coalesce(sum(pg_column_size(s.value)), 0) as bytes into h from stint.signals s where s.job = signal.job;
  if h.n >= 10000 or h.bytes + pg_column_size(signal.value) > 16777216 then
    raise exception 'stint: job % has % signals with % bytes, and gets no more', signal.job, h.n, h.bytes using errcode = 'ST011';
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
  last  bigint;
  mine  bigint[];
begin
  select array_agg(l.n), array_agg(distinct l.job), max(l.n) into notes, noted, last
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
  delete from stint.signals s
    where s.job = any (array(select j from unnest(noted) as j where not exists (select from stint.entries e where e.pos = j)));
  delete from stint.notes t where t.n = any (notes)
    and (t.job = any (mine) or not exists (select from stint.waiting w where w.job = t.job and w.awaits is not null));
  return last;
end
$$;
