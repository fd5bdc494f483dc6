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
  insert into stint.notes (jobs) values (array[signal.job]);
  if signal.notify then
    perform pg_notify('stint', '');
  end if;
  return sent;
end
$$;
revoke execute on function stint.signal from public;
comment on function stint.signal is 'Send a signal to a job, which its handler awaits.';
