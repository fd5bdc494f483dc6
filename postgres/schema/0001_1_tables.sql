-- stint: the tables. Read from top to bottom it is the life of a job.
--
-- Every name is qualified; the program replaces the qualifier when it is
-- told to use another schema. The hot tables (entries, claims, executions) are
-- only ever appended to: no claim steps over dead rows, vacuum has nothing to
-- do there, and a transaction that pins the horizon slows nothing.

create schema if not exists stint;

-- What this schema is. The identity tells a restored copy from the original,
-- in whose transaction numbers the log is written.
create table stint.meta (
  one               boolean primary key default true check (one),
  version           integer not null,  -- of the schema
  oldest            integer not null,  -- the oldest program's version that may still work on it
  system_identifier bigint  not null,
  entries_oid       oid     not null,
  installed         timestamptz not null default clock_timestamp()
);

-- Retry policies, stored once each under a hash of their text: a policy on
-- every row cost 66 bytes of WAL a job.
create table stint.policies (
  id   bigint primary key,
  body jsonb  not null
);
-- Found by body where SQL enqueues; of programs that make up policies there can be many.
create index policies_body on stint.policies using hash (body);

-- Positions of the log; a job's id is the first of its positions.
create sequence stint.positions as bigint;

-- The log of ready work. Lane -1 is a lane that nobody claims: a job that is
-- not ready yet has its contents there, under its id, and a later entry or
-- waiting row refers to them by body.
create table stint.entries (
  pos      bigint      not null default nextval('stint.positions'),
  lane     bigint      not null check (lane >= -1),
  xid      xid8        not null default pg_current_xact_id(), -- of the top-level transaction: claims proceed in its order
  created  timestamptz not null default clock_timestamp(),
  job      bigint,               -- null when pos is the job's id
  body     bigint,               -- the entry that holds the contents; null when it is this one
  due      timestamptz,          -- when it was to become ready; null when that was when it was created
  policy   bigint,               -- null, as is retry, for the default policy
  timeout  bigint check (timeout > 0), -- milliseconds for each attempt
  start_by timestamptz,          -- after it no attempt begins; null for no bound
  attempt  integer     not null default 1 check (attempt >= 1),
  priority smallint    not null default 0 check (priority between -100 and 100),
  losses   smallint    not null default 0 check (losses >= 0),
  suspect  smallint    not null default 0 check (suspect >= 0),
  max_losses smallint  check (max_losses >= 0), -- null for the default
  faulty   boolean     check (faulty),           -- of a job that failed so often that people should look; else null
  queue    text        not null check (queue <> '' and octet_length(queue) <= 255),
  kind     text        not null check (kind <> '' and octet_length(kind) <= 255),
  args     jsonb,
  retry    jsonb,                -- a policy that was not in policies when the job came
  tags     text[],
  urn      text,
  source   text,
  metadata jsonb,
  correlation text,              -- null when it is the job's id
  recovered bigint check (recovered < pos), -- the job that had ended and that this one does again
  check ((args is null) = (body is not null)), -- arguments stand exactly once, and are never null
  check (body is null or job is not null),
  constraint entries_start_by check (start_by >= due), -- else it could never begin
  primary key (pos)
);

-- Claims read a lane in this order, which is the order of commits as far as
-- snapshots can tell it.
create index entries_lane on stint.entries (lane, xid, pos);
-- The entries of a job beyond its first; jobs that run once are not in it.
create index entries_job on stint.entries (job, pos) where job is not null;

-- Entries of faulty jobs, which are few.
create index entries_faulty on stint.entries (job) where faulty;

-- Jobs by what they are about, for those that say so.
create index entries_urn on stint.entries (urn, pos) where urn is not null;

-- Jobs that come from each other, but for the first of those that were given no id.
create index entries_correlation on stint.entries (correlation, pos) where correlation is not null;

-- What a job was recovered as, if it was.
create index entries_recovered on stint.entries (recovered, pos) where recovered is not null;

-- Tags, only for jobs that have some: no index of the hot tables pays for them.
create table stint.job_tags (
  tag text   not null,
  job bigint not null,
  primary key (tag, job)
);

-- Idempotency keys: which job was enqueued under each, and a hash of its kind
-- and arguments. They stand apart from the log, so that jobs without one pay
-- nothing, and outlive their job. A row is never updated by a producer:
-- others with that key would wait for a stranger's transaction.
create table stint.idempotency (
  key         text   collate "C" primary key,
  job         bigint not null,
  fingerprint bytea  not null,
  expires     timestamptz not null -- when to look whether it may be forgotten
);
create index idempotency_expires on stint.idempotency (expires);

-- What was taken, by whom, and how far the lane has been read. The newest row
-- of a lane is all of the lane's state. The key makes a stale frontier a
-- unique violation and never a second claim.
create table stint.claims (
  lane        bigint   not null,
  n           bigint   not null,
  nonce       bigint   not null,
  engine      bigint   not null,
  serial      bigint   not null,  -- the engine's own number of the request
  made        timestamptz not null default clock_timestamp(),
  xid         xid8     not null,  -- the frontier: everything visible at or before (xid, pos) is claimed,
  pos         bigint   not null,
  pending_n   bigint,             -- but for what was in progress: the claim of this lane that lists it, null for
  pending_xid xid8[],             -- this one; each transaction with the last position taken of it
  pending_pos bigint[],
  positions   bigint[] not null,
  primary key (lane, n),
  check (cardinality(pending_xid) = cardinality(pending_pos))
);
-- Long arrays go out of line as they are: compressing them costs the claim more than it saves.
alter table stint.claims alter positions set storage external,
                         alter pending_xid set storage external,
                         alter pending_pos set storage external;
-- What an engine holds: read with its beats and at its burial.
create index claims_engine on stint.claims (engine, serial);

-- The outcome of each attempt: history, acknowledgement of its entry, and the
-- job's final state at once.
create table stint.executions (
  pos      bigint      not null,
  nonce    bigint      not null,  -- of the claim; 0 when nobody had claimed it
  engine   bigint      not null,
  started  timestamptz not null,
  finished timestamptz not null,
  job      bigint,                -- null when pos is the job's id
  attempt  integer     not null check (attempt >= 1),
  slot     smallint    not null check (slot >= 0), -- 0 when it never began
  outcome  smallint    not null check (outcome between 1 and 7),
  final    boolean     not null,
  reason   text,
  result   jsonb,
  error    jsonb,
  primary key (pos),  -- the last line: no outcome is accepted twice
  check (case outcome when 1 then final when 3 then not final when 4 then not final
                      when 6 then final when 7 then final else true end),
  check (finished >= started)
);
create index executions_job on stint.executions (job, pos) where job is not null;
-- What is rare and asked for: attempts that did not succeed, in the order in
-- which their jobs are listed.
create index executions_trouble on stint.executions (coalesce(job, pos), outcome, final) where outcome <> 1;
-- Time ranges of a table that is appended to in order of time. Without
-- autosummarize all that came since the last vacuum would be read for each.
create index executions_finished on stint.executions using brin (finished) with (autosummarize = on);
-- Attempts that took long: they are few, for a slot has time for few of them.
create index executions_long on stint.executions (coalesce(job, pos)) where finished - started > interval '5 seconds';

-- Jobs that wait for a time. The only table with churn.
create table stint.waiting (
  job      bigint      primary key,
  due      timestamptz,          -- null while the next is not
  undecided text       check (undecided <> ''), -- the retry function that is to say when it is due, if at all
  faulty   boolean     check (faulty),
  body     bigint      not null,
  why      text        not null check (why in ('scheduled', 'retrying')),
  attempt  integer     not null check (attempt >= 1),
  priority smallint    not null check (priority between -100 and 100),
  losses   smallint    not null default 0,
  suspect  smallint    not null default 0,
  queue    text        not null,
  kind     text        not null,
  check ((due is null) = (undecided is not null)),
  check (undecided is null or why = 'retrying')
);
create index waiting_due on stint.waiting (due, job);
-- What waits for a retry function, and what people should look at: both rare.
create index waiting_undecided on stint.waiting (job, undecided) where undecided is not null;
create index waiting_faulty on stint.waiting (job) where faulty;

-- Jobs that somebody cancelled and that have no final outcome yet. The marker
-- is committed before anything else happens, and whoever moves a job looks at it.
create table stint.cancellations (
  job bigint primary key,
  at  timestamptz not null default clock_timestamp(),
  why text
);

-- Queues that are paused.
create table stint.queues (
  queue  text primary key check (queue not in ('', '*') and octet_length(queue) <= 255),
  paused timestamptz not null default clock_timestamp(),
  by     text,
  why    text
);

-- Engines of which something was deleted while they stood in the roster: one
-- whose answer was lost may record it once more, and must not bring it back.
-- An engine is here until its beats say that nothing is left to repeat.
create table stint.deletions (
  engine bigint primary key,
  serial bigint not null, -- of the last claim that it had made by then
  at     timestamptz not null default clock_timestamp()
);

-- The roster. A row is inserted when an engine joins and deleted by its
-- burial, never updated: it is the fence of everything that the engine writes.
create table stint.engines (
  token       bigint primary key,
  instance    text     not null,
  host        text     not null,
  boot_id     text     not null,
  pid         integer  not null,
  pid_started bigint   not null,
  version     text     not null,
  queues      text[]   not null,
  kinds       text[]   not null,
  slots       integer  not null check (slots > 0),
  ttl         bigint   not null check (ttl > 0), -- milliseconds
  joined      timestamptz not null default clock_timestamp()
);

-- The same for ever, so that executions need carry the token only.
create table stint.engine_history (
  token    bigint primary key,
  instance text not null,
  host     text not null,
  pid      integer not null,
  version  text not null,
  joined   timestamptz not null,
  ended    timestamptz,
  why      text,
  low      bigint not null default 0,     -- the bound of open claims that it believed in
  swept    boolean not null default false -- whether its claims below that were looked through after its burial
);

create index engine_history_unswept on stint.engine_history (ended) where not swept and ended is not null;

-- Signs of life, updated in place. Never upserted: that would bring back the buried.
create table stint.beats (
  token   bigint primary key,
  beat    timestamptz not null default clock_timestamp(),
  number  bigint      not null default 0,    -- of the beat that said the following
  low     bigint      not null default 0,    -- no claim with a lower serial is unfinished
  running bigint[]    not null default '{}', -- what the slots work on
  drain   boolean     not null default false, -- asked to take no more and leave
  asleep  boolean     not null default false, -- to be rung for jobs that are ready
  -- The server's timeline when it joined. After a failover to a standby that
  -- lagged, what the engine believes to hold may never have been.
  timeline text       not null default substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
) with (fillfactor = 50);

-- What engines declare of the kinds that they run; read by producers that are not Go.
create table stint.kinds (
  kind     text primary key,
  queue    text     not null,
  priority smallint not null,
  timeout  bigint,
  start_within bigint check (start_within > 0), -- milliseconds
  tags     text[]   not null,
  retry    jsonb,
  max_losses smallint check (max_losses >= 0), -- null for the default
  declared timestamptz not null default clock_timestamp()
);

-- What engines count, the newest figures of each. An engine is known by its
-- name and by when it began to count: it may have stood in the roster under
-- several tokens meanwhile, the last of which is here. No index holds what
-- is written every few seconds, so the row stays where it is.
create table stint.metrics (
  instance text        not null,
  since    timestamptz not null,
  engine   bigint      not null,
  at       timestamptz not null default clock_timestamp(),
  figures  jsonb       not null,
  primary key (instance, since)
) with (fillfactor = 50);

-- How attempts went, by the hour in which they ended: of each kind, in each
-- queue, with each outcome. It holds the attempts that ended before
-- summed.until, and those that were deleted. Durations are microseconds.
create table stint.stats (
  hour    timestamptz not null,
  kind    text        not null,
  queue   text        not null,
  outcome smallint    not null,
  n       bigint      not null, -- attempts that began
  ran     bigint      not null, -- those of them that were not lost; the following is about these
  total   bigint      not null,
  fastest bigint,
  longest bigint,
  last    bigint,               -- the one that ended last,
  last_at timestamptz,          -- and when
  waited  bigint      not null, -- from when they were due to their starts
  primary key (hour, kind, queue, outcome)
) with (fillfactor = 80);

-- How far the sums go, and how far they are to go next: once no transaction is
-- left that began before the one that said so.
create table stint.summed (
  one   boolean     primary key default true check (one),
  until timestamptz not null default clock_timestamp() - interval '1 hour',
  aim   timestamptz,
  xid   xid8
);
insert into stint.summed default values;
