-- stint: the tables. Read from top to bottom it is the life of a job.
--
-- Every name is qualified; the program replaces the qualifier when it is
-- told to use another schema. The hot tables (entries, claims, executions) are
-- only ever appended to: no claim steps over dead rows, vacuum has nothing to
-- do there, and a transaction that pins the horizon slows nothing.

-- Looked for first: "if not exists" asks for the right to create schemas even
-- where another role has made this one for its owner.
do $$
begin
  if not exists (select from pg_catalog.pg_namespace where nspname = 'stint') then
    create schema stint;
  end if;
end
$$;

-- What this schema is. The identity tells a restored copy from the original,
-- in whose transaction numbers the log is written.
create table stint.meta (
  one               boolean primary key default true check (one), -- there is one row
  version           integer not null,  -- of the schema
  oldest            integer not null,  -- the oldest program's version that may still work on it
  system_identifier bigint  not null, -- of the cluster in whose transaction numbers the log is written
  entries_oid       oid     not null, -- of the table entries there: another cluster, or a restored copy, has another
  installed         timestamptz not null default clock_timestamp() -- when
);

-- Retry policies, stored once each under a hash of their text: a policy on
-- every row cost 66 bytes of WAL a job.
create table stint.policies (
  id   bigint primary key, -- the first 63 bits of the SHA-256 of its JSON
  body jsonb  not null -- the policy
);
-- Found by body where SQL enqueues; of programs that make up policies there can be many.
create index policies_body on stint.policies using hash (body);

-- Positions of the log; a job's id is the first of its positions.
create sequence stint.positions as bigint;

-- Types of what an entry says. PostgreSQL reads the checks of a table again for
-- each statement: five that compared columns were a seventh of an enqueue. Those
-- of a domain it reads once for a session. So entries has no others.
create domain stint.queue      as text     check (value <> '' and octet_length(value) <= 255);
create domain stint.kind       as text     check (value <> '' and octet_length(value) <= 255);
create domain stint.priority   as smallint check (value between -100 and 100);
create domain stint.attempt    as integer  check (value >= 1);
create domain stint.timeout    as bigint   check (value > 0);
create domain stint.losses     as smallint check (value >= 0);
create domain stint.max_losses as smallint check (value >= 0);
create domain stint.suspect    as smallint check (value >= 0);
create domain stint.faulty     as boolean  check (value);

-- The log of ready work. Lane -1 is a lane that no engine claims: a job that is
-- not ready yet has its contents there, under its id, and a later entry or
-- waiting row refers to them by body. What is cancelled before an engine claimed
-- it is moved there.
create table stint.entries (
  pos      bigint      not null default nextval('stint.positions'), -- where it stands in the log; of a job's first entry, the job's id
  lane     bigint      not null, -- of its queue, priority and limits, or -1
  xid      xid8        not null default pg_current_xact_id(), -- of the top-level transaction: claims proceed in its order
  created  timestamptz not null default clock_timestamp(), -- when it was appended
  job      bigint,               -- null when pos is the job's id
  body     bigint,               -- the entry that holds the contents; null when it is this one
  due      timestamptz,          -- when it was to become ready; null when that was when it was created
  policy   bigint,               -- null, as is retry, for the default policy
  timeout  stint.timeout, -- milliseconds for each attempt
  start_by timestamptz,          -- after it no attempt begins; null for no bound
  attempt  stint.attempt  not null default 1, -- the number of the attempt that it is for
  priority stint.priority not null default 0, -- lower is sooner
  losses   stint.losses   not null default 0, -- how many engines died with the job
  suspect  stint.suspect  not null default 0, -- 0; 1 when its last engine died and it may be why; 2 when a second one did
  max_losses stint.max_losses, -- null for the default
  faulty   stint.faulty,         -- of a job that failed so often that people should look; else null
  queue    stint.queue not null, -- engines choose among these
  kind     stint.kind  not null, -- what is to be done
  args     jsonb, -- what to do it with; null when body has it
  retry    jsonb,                -- a policy that was not in policies when the job came
  tags     text[], -- to find jobs by; null for none
  urn      text collate "C", -- what the job is about; an index finds what begins with a text only in the order of bytes
  source   text, -- where it came from
  metadata jsonb, -- an object of the producer's own
  correlation text,              -- null when it is the job's id
  uniqueness text,               -- which jobs it may not stand beside; null for any
  recovered bigint, -- the job that had ended and that this one does again
  schedule text,                 -- the schedule that made it, null for none
  nth      bigint,               -- its number among the jobs of that, from 1
  occurrence timestamptz,        -- what it was made of; null for one that was run out of turn
  limits   text,                 -- the limits that it waits for, with their keys, sorted, one on each line; null for none
  flow     bigint,               -- the flow that the job belongs to; null for none
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

-- The jobs of a flow.
create index entries_flow on stint.entries (flow, pos) where flow is not null;

-- The last line: no occurrence of a schedule has two jobs. And the way to the jobs
-- of one, for people.
create unique index entries_schedule on stint.entries (schedule, occurrence) where schedule is not null;

-- Tags, only for jobs that have some: no index of the hot tables pays for them.
create table stint.job_tags (
  tag text   not null, -- as in entries.tags
  job bigint not null, -- its id
  primary key (tag, job)
);

-- Idempotency keys: which job was enqueued under each, and a hash of its kind
-- and arguments. They stand apart from the log, so that jobs without one pay
-- nothing, and outlive their job. A row is never updated by a producer:
-- others with that key would wait for a stranger's transaction. Unique keys as
-- well, which begin with chr(1): they are never released. Who finds one looks
-- whether its job has ended, and only then updates the row.
create table stint.idempotency (
  key         text   collate "C" primary key, -- as the producer chose it
  job         bigint not null, -- that was stored under it
  fingerprint bytea  not null, -- SHA-256 of its kind and arguments; empty for a unique key
  until       timestamptz,     -- of a unique key with a period: the end of that
  expires     timestamptz not null -- when to look whether it may be forgotten
);
-- What is to be looked at next.
create index idempotency_expires on stint.idempotency (expires);

-- What was taken, by whom, and how far the lane has been read. The newest row
-- of a lane is all of the lane's state. The key makes a stale frontier a
-- unique violation and never a second claim.
create table stint.claims (
  lane        bigint   not null, -- that was claimed from
  n           bigint   not null, -- one more than the claim before in this lane
  nonce       bigint   not null, -- random: with it an outcome proves which claim it comes from
  engine      bigint   not null, -- the token of the engine that took it
  serial      bigint   not null,  -- the engine's own number of the request
  low         bigint   not null default 0, -- as in beats, when the engine asked
  made        timestamptz not null default clock_timestamp(), -- when
  xid         xid8     not null,  -- the frontier: everything visible at or before (xid, pos) is claimed, but for what is pending
  pos         bigint   not null, -- see xid
  pending     integer,            -- how many transactions were in progress at the frontier; null for none, or when that is not known
  pending_n   bigint,             -- the claim of this lane that lists them; null for this one, or none
  pending_xid xid8[], -- each transaction of those
  pending_pos bigint[], -- the last position taken of each
  positions   bigint[] not null, -- what was taken, in this order
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
  pos      bigint      not null, -- of the entry
  nonce    bigint      not null,  -- of the claim; 0 if no engine had claimed it
  engine   bigint      not null, -- the token of the engine that ran it; 0 for none
  started  timestamptz not null, -- when the attempt began, by the server's clock
  finished timestamptz not null, -- when it ended
  job      bigint,                -- null when pos is the job's id
  attempt  integer     not null check (attempt >= 1), -- as the entry says
  slot     smallint    not null check (slot >= 0), -- 0 when it never began
  outcome  smallint    not null check (outcome between 1 and 8), -- 1 completed, 2 failed, 3 snoozed, 4 returned, 5 lost, 6 cancelled, 7 expired, 8 skipped
  final    boolean     not null, -- whether the job ended with it
  reason   text, -- why it ended, for people
  result   jsonb, -- what the handler returned
  error    jsonb, -- class, message and stack
  primary key (pos),  -- the last line: no outcome is accepted twice
  check (case outcome when 1 then final when 3 then not final when 4 then not final
                      when 6 then final when 7 then final when 8 then final else true end),
  check (finished >= started)
);
-- The attempts of a job beyond its first entry's.
create index executions_job on stint.executions (job, pos) where job is not null;
-- What is rare and asked for: attempts that did not succeed, in the order in
-- which their jobs are listed.
create index executions_trouble on stint.executions (coalesce(job, pos), outcome, final) where outcome <> 1;
-- What no engine had claimed: jobs that were cancelled before, or decided about
-- while they waited. Retention asks whether an engine decided anything that is left.
create index executions_unclaimed on stint.executions (engine) where nonce = 0;
-- Time ranges of a table that is appended to in order of time. Without
-- autosummarize all that came since the last vacuum would be read for each.
create index executions_finished on stint.executions using brin (finished) with (autosummarize = on);
-- Attempts that took long: they are few, for a slot has time for few of them.
create index executions_long on stint.executions (coalesce(job, pos)) where finished - started > interval '5 seconds';

-- Jobs that wait for a time. The only table with churn.
create table stint.waiting (
  job      bigint      primary key, -- its id
  due      timestamptz,          -- null while that is not known
  undecided text       check (undecided <> ''), -- the retry function that is to say when it is due, if at all
  faulty   boolean     check (faulty), -- as in entries
  body     bigint      not null, -- the entry that holds the contents
  why      text        not null check (why in ('scheduled', 'retrying', 'blocked')), -- scheduled, retrying or blocked
  attempt  integer     not null check (attempt >= 1), -- these are for its next entry
  priority smallint    not null check (priority between -100 and 100), -- as in entries
  losses   smallint    not null default 0, -- as in entries
  suspect  smallint    not null default 0, -- as in entries
  queue    text        not null, -- as in entries
  kind     text        not null, -- as in entries
  limits   text,                 -- as in entries
  awaits   jsonb,                -- of a blocked one, the signals that end its wait before it is due, by the steps that take them; empty for the answer to the question that a step asks
  watch    bigint,               -- of one that waits for jobs, one that has perhaps not ended; null for none
  seen     bigint,               -- what is older than this has ended, and was looked at
  verdict  smallint    check (verdict between 0 and 2), -- what those have decided: see stint.verdict
  cause    bigint,               -- the job that decided it
  check ((due is null) = (undecided is not null or verdict is not null)),
  check (undecided is null or why = 'retrying'),
  check ((why = 'blocked') = (awaits is not null or verdict is not null)),
  check ((seen is null) = (verdict is null))
);
-- Promotion reads what is due, in the order of its due times. By an expression, since a plan that is made while little waits would else look for
-- jobs in this one, and read all of it.
create index waiting_due on stint.waiting (due, (job + 0));
-- Who waits for a job that ended.
create index waiting_watch on stint.waiting (watch, job) where watch is not null;
-- What waits for a retry function, and what people should look at: both rare.
create index waiting_undecided on stint.waiting (job, undecided) where undecided is not null;
create index waiting_faulty on stint.waiting (job) where faulty;

-- What the steps of handlers came to, and the questions that they ask. A row is written once, and goes with its
-- job; one of a question is written again with its answer.
create table stint.steps (
  job    bigint      not null, -- its id
  name   text        not null check (name <> '' and octet_length(name) <= 255), -- unique in the job
  pos    bigint      not null, -- of the attempt that recorded it; lower than the job's if that took it along
  began  timestamptz not null, -- when
  ended  timestamptz not null, -- when it was recorded
  result jsonb,               -- what it returned; null while a question is open
  signal bigint,              -- the number of the signal that it took; null for none, and in a job that took the step along
  question jsonb,             -- what it asks people: a text and choices; or the job that it called; null for other steps
  until    timestamptz,       -- when the time to answer that is over
  primary key (job, name), -- no step is accepted twice
  check ((question is null) = (until is null)),
  check (result is not null or question is not null)
);
-- The questions that are open, and those of jobs that ended without an answer.
create index steps_open on stint.steps (job, name) where result is null and (question ? 'job') is not true;
-- Who called a job that has not ended.
create index steps_called on stint.steps ((question->>'job')) where result is null and question ? 'job';
-- The last line: no signal is taken twice.
create unique index steps_signal on stint.steps (signal) where signal is not null;

-- Numbers of signals.
create sequence stint.signal_numbers as bigint;

-- What was sent to jobs. A row is written once, and goes with its job; the step that
-- took it names it.
create table stint.signals (
  n     bigint      primary key default nextval('stint.signal_numbers'), -- its number
  job   bigint      not null, -- to which it was sent
  name  text        not null check (name <> '' and octet_length(name) <= 255), -- what steps wait for
  sent  timestamptz not null default clock_timestamp(), -- when
  key   text        check (key <> '' and octet_length(key) <= 255), -- of several of a job with the same one, the first counts; null for none
  value jsonb       not null -- what was sent
);
-- What a step takes next.
create index signals_job on stint.signals (job, name, n);
-- The last line: of several with one key the first counts.
create unique index signals_key on stint.signals (job, key) where key is not null;

-- Lines that the runs of jobs logged. A row is written once, and goes when newer ones of its
-- run need the room, or with its job.
create table stint.lines (
  job   bigint      not null, -- its id
  pos   bigint      not null, -- of the attempt
  n     integer     not null check (n >= 1), -- which line of it; those that are missing were left out
  at    timestamptz not null, -- when it was logged
  level integer     not null, -- as slog numbers them: 0 is info, 4 a warning, 8 an error
  text  text        not null, -- what it says
  primary key (job, pos, n)
);

-- How far the runs of jobs said they were: of each the last that was said. Goes with the job.
-- Beats change rows in their places, for which pages have room.
create table stint.progress (
  job      bigint           not null, -- its id
  pos      bigint           not null, -- of the attempt
  n        integer          not null check (n >= 1), -- which one of it that is
  at       timestamptz      not null, -- when it said so
  fraction double precision not null check (fraction between 0 and 1), -- how much is done
  text     text, -- what it does; null for nothing
  primary key (job, pos)
) with (fillfactor = 70);

-- Numbers of notes.
create sequence stint.note_numbers as bigint;

-- Jobs of which something has changed: they were blocked, got a signal, or ended. Who blocks a
-- job and who brings what it waits for do not see each other, so each leaves a note, and a
-- promotion looks after the commit. Empty nearly always.
create table stint.notes (
  n     bigint   primary key default nextval('stint.note_numbers'), -- its number
  jobs  bigint[] not null, -- their ids
  after bigint   not null default 0, -- of those who wait for the first of them, the last that was looked at
  flow  bigint,  -- that they were added to; null for none
  at    timestamptz not null default clock_timestamp() -- since when
);
-- Whether all that was added to a flow was looked at.
create index notes_flow on stint.notes (flow) where flow is not null;

-- Flows. Each is a job as well, of this id, which no engine runs: it ends when its jobs have.
create table stint.flows (
  flow     bigint primary key, -- its id
  deadline timestamptz         -- when the time that it may take is over; null for none, and when that was seen to
);
-- Promotion looks at those of which the time is over.
create index flows_deadline on stint.flows (deadline, flow) where deadline is not null;

-- Jobs of flows that have a name there.
create table stint.nodes (
  flow bigint not null, -- the flow
  name text   not null check (name <> '' and octet_length(name) <= 255), -- unique there
  job  bigint not null, -- that has it: one of the flow, or one that had completed when the flow was retried
  primary key (flow, name)
);
-- The names of a job.
create index nodes_job on stint.nodes (job);

-- What must end before a job begins. A row goes with the job that needs.
create table stint.needs (
  child  bigint   not null, -- the job that needs
  parent bigint   not null, -- the job or flow that it needs
  wants  smallint not null check (wants between 1 and 3), -- 1 that it completes, 2 that it fails, 3 that it ends
  primary key (child, parent)
);
-- Who needs a job.
create index needs_parent on stint.needs (parent);

-- Cancelled jobs that have no final outcome yet. The marker
-- is committed before anything else happens, and every function that moves a job looks at it.
create table stint.cancellations (
  job bigint primary key, -- its id
  at  timestamptz not null default clock_timestamp(), -- when
  why text, -- as given with the cancellation
  down_to bigint -- of a flow, the last of its jobs that was looked at to be cancelled with it, from the newest down; 0 when all were
);

-- Queues that are paused.
create table stint.queues (
  queue  text primary key check (queue not in ('', '*') and octet_length(queue) <= 255), -- its name
  paused timestamptz not null default clock_timestamp(), -- since when
  by     text, -- by whom
  why    text -- as they said
);

-- Engines of which something was deleted while they stood in the roster: one
-- whose answer was lost may record it once more, and must not bring it back.
-- An engine is here until its beats say that nothing is left to repeat.
create table stint.deletions (
  engine bigint primary key, -- its token
  serial bigint not null, -- of the last claim that it had made by then
  at     timestamptz not null default clock_timestamp() -- when
);

-- The roster. A row is inserted when an engine joins and deleted by its
-- burial, never updated: it is the fence of everything that the engine writes.
create table stint.engines (
  token       bigint primary key, -- random: the engine's identity, new each time that it joins
  instance    text     not null, -- its name, for people
  host        text     not null, -- where it runs
  boot_id     text     not null, -- of the host
  pid         integer  not null, -- its process
  pid_started bigint   not null, -- when that began, in clock ticks after boot
  version     text     not null, -- of the program
  queues      text[]   not null, -- that it works on
  kinds       text[]   not null, -- that it can run
  slots       integer  not null check (slots > 0), -- how many jobs it runs at once
  ttl         bigint   not null check (ttl > 0), -- milliseconds without a beat after which it may be buried
  max_outage  bigint   not null default 0, -- milliseconds that the server may be away from it before it gives up what it runs; 0 if beats alone decide
  joined      timestamptz not null default clock_timestamp() -- when
);

-- The same for ever, so that executions need carry the token only; and how it ended.
create table stint.engine_history (
  token    bigint primary key, -- as in engines
  instance text not null, -- as in engines
  host     text not null, -- as in engines
  pid      integer not null, -- as in engines
  version  text not null, -- as in engines
  queues   text[] not null default '{}', -- as in engines
  kinds    text[] not null default '{}', -- as in engines
  slots    integer not null default 0, -- as in engines
  ttl      bigint not null default 0, -- as in engines
  joined   timestamptz not null, -- as in engines
  beat     timestamptz, -- its last one; null while it stands
  ended    timestamptz, -- when it left or was buried; null while it stands
  why      text, -- of its end
  buried_by bigint, -- the engine that buried it; null for itself, and for a person
  freed    integer not null default 0, -- entries that it held, and that were concluded for it
  lost     integer not null default 0, -- how many of these had begun
  lost_at  bigint[] not null default '{}', -- where the first of them are in the log
  low      bigint not null default 0,     -- the bound of open claims that it believed in
  swept    boolean not null default false, -- whether its claims below that were looked through after its burial
  drain    boolean not null default false -- asked to take no more and leave, which holds for whoever it joins again as
);

-- Burials that left something to look through: none, nearly always.
create index engine_history_unswept on stint.engine_history (ended) where not swept and ended is not null;
-- Those that are gone, the last first: there may be one for each call of a worker by SQL.
create index engine_history_ended on stint.engine_history (ended) where ended is not null;

-- Signs of life, updated in place. Never upserted: that would bring back the buried.
create table stint.beats (
  token   bigint primary key, -- as in engines
  beat    timestamptz not null default clock_timestamp(), -- when the last sign of life came
  number  bigint      not null default 0,    -- of the beat that said the following
  low     bigint      not null default 0,    -- no claim with a lower serial is unfinished
  running bigint[]    not null default '{}', -- what the slots work on
  started timestamptz[] not null default '{}', -- when the attempt at each of those began; null where no beat said it
  slots   integer     not null default 0,    -- how many there are now; 0 for as many as when it joined
  drain   boolean     not null default false, -- asked to take no more and leave
  asleep  boolean     not null default false, -- to be rung for jobs that are ready
  up_since timestamptz not null default pg_postmaster_start_time(), -- when the server was started that the last sign of life reached
  -- The server's timeline when it joined. After a failover to a standby that
  -- lagged, what the engine believes to hold may never have been.
  timeline text       not null default substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)
) with (fillfactor = 50);

-- What engines declare of the kinds that they run; read by producers that are not Go.
create table stint.kinds (
  kind     text primary key, -- its name
  queue    text     not null, -- where its jobs go
  priority smallint not null, -- of its jobs
  timeout  bigint, -- milliseconds for each attempt; null for no bound
  start_within bigint check (start_within > 0), -- milliseconds after a job is due in which it is to begin; null for no bound
  tags     text[]   not null, -- that its jobs have
  retry    jsonb, -- its policy; null for the default
  max_losses smallint check (max_losses >= 0), -- null for the default
  uniqueness text, -- which jobs its jobs may not stand beside; null for any
  limits   text[], -- the limits that its jobs wait for, as declared; null for none
  sealed   text[], -- JSON pointers to the parts of its arguments that are encrypted; null for none
  redacted text[], -- JSON pointers to the parts of its arguments that people are not shown; null for none
  declared timestamptz not null default clock_timestamp() -- when it was declared so
);

-- Schedules. The engine that fires one locks its row and, in the same statement, makes
-- the jobs and moves it on; the revision tells whether it is still what the
-- occurrences were computed from.
create table stint.schedules (
  name        text   collate "C" primary key check (name <> '' and octet_length(name) <= 255), -- what it is known by
  recurrence  text   not null,   -- when, as text: five cron fields, every 5m, function:name
  function    text,              -- the recurrence function to ask, null for none
  zone        text   not null,   -- the IANA name of the zone whose clock that is about
  job         jsonb  not null,   -- what it makes
  overlap     boolean not null,  -- whether occurrences are fired while the last job has not ended
  missed      text   not null,   -- what becomes of occurrences that were not fired in time: one, none, all:100
  not_before  timestamptz,       -- the earliest occurrence that there may be
  not_after   timestamptz,       -- the last occurrence that there may be
  after       timestamptz not null default clock_timestamp(), -- occurrences up to this are dealt with
  next        timestamptz,       -- null when it is not known yet, or never
  ended       timestamptz,       -- when it was found that it never fires again
  paused      timestamptz,       -- since when nothing of it is fired
  paused_by   text,              -- who paused it
  paused_why  text,              -- and why
  fired       bigint not null default 0, -- jobs made
  skipped     bigint not null default 0, -- occurrences that would have overlapped
  passed      bigint not null default 0, -- occurrences that were missed and not made up for
  passed_at   timestamptz,       -- when that was found of the last of them
  last_occurrence timestamptz,   -- of the last job that has one
  last_job    bigint,            -- the last job that it made
  created     timestamptz not null default clock_timestamp(), -- when it was first declared
  declared    timestamptz not null default clock_timestamp(), -- when it was last declared
  declared_by text,              -- who did that
  revision    bigint not null default (random() * 4503599627370496)::bigint -- another one after every change, and of every schedule that ever had the name
);
-- What to look at next: those of which nothing is known first.
create index schedules_next on stint.schedules (next nulls first, name) where paused is null and ended is null;

-- Which engine does what one engine does for all of them. A holder that is not in the
-- roster holds nothing, and neither does one whose time is over.
create table stint.leases (
  name     text primary key check (name <> '' and octet_length(name) <= 255), -- what it is for
  engine   bigint,              -- null while no engine has it
  acquired timestamptz,         -- since when the engine has it without a gap
  renewed  timestamptz,         -- when it was asked for last
  expires  timestamptz,         -- until when the engine has it
  deposed       bigint,         -- the engine that it was taken from
  deposed_at    timestamptz,    -- when that was
  deposed_until timestamptz,    -- before that he does not get it again
  deposed_by    text,           -- who did it
  deposed_why   text,           -- the reason that was given
  check (engine is null or acquired is not null and renewed < expires)
);

-- What engines count, the newest figures of each. An engine is known by its
-- name and by when it began to count: it may have stood in the roster under
-- several tokens meanwhile, the last of which is here. No index holds what
-- is written every few seconds, so the row stays where it is.
create table stint.metrics (
  instance text        not null, -- the engine's name
  since    timestamptz not null, -- when it began to count
  engine   bigint      not null, -- its token, or the last of them
  at       timestamptz not null default clock_timestamp(), -- when it wrote this
  figures  jsonb       not null, -- what it counted: report.Metrics as JSON
  primary key (instance, since)
) with (fillfactor = 50);

-- Numbers of changes.
create sequence stint.change_numbers as bigint;

-- Who changed what: one row for each change that came by the API or the command
-- line. It is written before the change is made, and ended after that.
create table stint.changes (
  n         bigint primary key default nextval('stint.change_numbers'), -- its number
  at        timestamptz not null default clock_timestamp(), -- when it was written down
  by        text, -- who
  role      text, -- in which they asked
  way       text  not null check (way <> ''), -- by which it came: api, command
  operation text  not null check (operation <> ''), -- what was done
  subject   text, -- what it was done to, when that is one thing
  details   jsonb check (jsonb_typeof(details) = 'object'), -- what names and chooses what is changed, and why; no arguments of jobs
  ended     timestamptz, -- when it was known what came of it; null for one that is being made, or whose process died
  problem   text, -- why it failed; null when it was done
  check (problem is null or ended is not null)
);
-- What was done to one thing, which may be long ago.
create index changes_subject on stint.changes (subject, n) where subject is not null;

-- What people decided about groups of errors: of the last 10,000. A group that is not here
-- is open. Which errors are a group the program says.
create table stint.error_groups (
  key   text        collate "C" primary key check (key ~ '^[0-9a-f]{16}$'), -- the group's
  state text        not null check (state in ('resolved', 'muted')), -- resolved until such an error comes again; muted whatever comes
  at    timestamptz not null default clock_timestamp(), -- when that was decided
  by    text,                 -- by whom
  why   text                  -- as they said
);

-- Filters of jobs that people saved under a name.
create table stint.saved_filters (
  name  text        collate "C" primary key check (name <> ''), -- as people call it
  query text        not null check (query <> ''), -- as in the address of a list of jobs
  at    timestamptz not null default clock_timestamp(), -- when it was saved
  by    text                  -- by whom
);

-- How attempts went, by the hour in which they ended, and of the last two days by
-- the minute: of each kind, in each queue, with each outcome. It holds the attempts
-- that ended before summed.until, and those that were deleted. Durations are
-- microseconds.
create table stint.stats (
  minutes smallint    not null check (minutes in (1, 60)), -- how long a time this is of
  start   timestamptz not null, -- its beginning
  kind    text        not null, -- what was done
  queue   text        not null, -- where it was
  outcome smallint    not null, -- how the attempts ended: see executions
  n       bigint      not null, -- attempts that began
  ran     bigint      not null, -- those of them that were not lost; the following is about these
  total   bigint      not null, -- how long they took, all together
  fastest bigint, -- how long the fastest took
  longest bigint, -- how long the longest took
  last    bigint, -- how long the one took that ended last,
  last_at timestamptz, -- and when it ended
  waited  bigint      not null, -- from when they were due to their starts, all together
  took_by   bigint[]  not null default '{}', -- how long they took: a histogram
  waited_by bigint[]  not null default '{}', -- how long they had been due before: another one
  primary key (minutes, start, kind, queue, outcome)
) with (fillfactor = 80);

-- How far the sums go, and how far they are to go next: once no transaction is
-- left that began before the one that said so.
create table stint.summed (
  one   boolean     primary key default true check (one), -- there is one row
  until timestamptz not null default clock_timestamp() - interval '1 hour', -- the sums are of what ended before this
  aim   timestamptz, -- how far they are to go next
  xid   xid8 -- and of the transaction that said so
);
insert into stint.summed default values;
