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
  insert into stint.notes (jobs) values (array[signal.job]);
  if signal.notify then
    perform pg_notify('stint', 'due ' || pg_current_xact_id());
  end if;
  return sent;
end
$$;
revoke execute on function stint.signal from public;
comment on function stint.signal is 'Send a signal to a job, which its handler awaits.';
