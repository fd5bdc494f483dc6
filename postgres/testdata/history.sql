-- Fill a fresh database with a day's history, to measure what reading it costs:
--
--   stint migrate up --db "$url"
--   psql "$url" -v n=10000000 -f postgres/testdata/history.sql
--
-- :n jobs of five kinds in three queues ended within the last day, one in a
-- hundred failed; beside them a hundredth of that is available, as much waits,
-- and a thousand run.
\set ON_ERROR_STOP on
\timing on
update stint.summed set until = date_trunc('minute', clock_timestamp() - interval '1 day 1 minute');
insert into stint.engines (token, instance, host, boot_id, pid, pid_started, version, queues, kinds, slots, ttl)
  values (1, 'history', 'host', '', 1, 1, '', '{}', '{}', 1000, 3600000);
insert into stint.engine_history (token, instance, host, pid, version, joined) values (1, 'history', 'host', 1, '', clock_timestamp() - interval '1 day');
insert into stint.beats (token, low) values (1, :n / 500 + 1);

create temp table names as select n, 'kind ' || n as kind, 'queue ' || n % 3 as queue from generate_series(0, 4) n;
create temp table lanes as select distinct queue, stint.lane(queue, 0, 'normal') as lane from names;

insert into stint.entries (lane, queue, kind, args, created, tags)
  select l.lane, m.queue, m.kind, jsonb_build_object('customer', i % 1000),
         clock_timestamp() - interval '1 day' + (i - 20) * interval '1 day' / :n, case when i % 1000 = 0 then '{t}'::text[] end
  from generate_series(1, :n) i join names m on m.n = i % 5 join lanes l using (queue) order by i;
insert into stint.job_tags (tag, job) select 't', pos from stint.entries where tags is not null;
insert into stint.executions (pos, nonce, engine, started, finished, attempt, slot, outcome, final)
  select e.pos, 1, 1, e.created + random() * interval '100 ms',
         e.created + interval '100 ms' + random() * case when e.pos % 5000 = 0 then interval '20 s' else interval '400 ms' end,
         1, 1 + e.pos % 50, case when e.pos % 100 = 0 then 2 else 1 end, true
  from stint.entries e order by e.pos;
insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
  select l.lane, i, i, 1, i, (select xid from stint.entries limit 1), i * 500, (select array_agg(p) from generate_series(i * 500 - 499, i * 500) p)
  from generate_series(1, :n / 500) i, lanes l where l.queue = 'queue ' || i % 3;
-- What waits, runs and is available.
with job as (
  insert into stint.entries (lane, queue, kind, args, due)
  select -1, m.queue, m.kind, '{}', clock_timestamp() + i * interval '1 s' from generate_series(-50, :n / 100 - 51) i join names m on m.n = abs(i) % 5
  returning pos, queue, kind, due)
insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind) select pos, due, pos, 'scheduled', 1, 0, queue, kind from job;
with job as (
  insert into stint.entries (lane, queue, kind, args) select l.lane, m.queue, m.kind, '{}' from generate_series(1, 1000) i join names m on m.n = i % 5 join lanes l using (queue)
  returning pos, lane)
insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions)
  select l.lane, 1000000, 1, 1, :n / 500 + 1 + row_number() over (), pg_current_xact_id(), (select max(pos) from job), coalesce((select array_agg(j.pos) from job j where j.lane = l.lane), '{}')
  from lanes l;
insert into stint.entries (lane, queue, kind, args, urn)
  select l.lane, m.queue, m.kind, jsonb_build_object('customer', i % 1000), 'urn:' || i % 100 from generate_series(1, :n / 100) i join names m on m.n = i % 5 join lanes l using (queue);
vacuum (analyze);
