-- stint: the tables. Read from top to bottom it is the life of a job.
--
-- The program puts its own prefix where this text says stint_. Times are
-- microseconds since 1970 UTC and always come from the program, never from
-- SQLite's clock, so that tests can move time. The hot tables (entries,
-- claims, executions) are only ever appended to.

-- What this schema is. The identity tells one database from another, so that a
-- transaction on the wrong file is refused instead of losing its jobs there.
create table stint_meta (
  one      integer primary key check (one = 1), -- there is one row
  version  integer not null,  -- of the schema
  oldest   integer not null,  -- the oldest program's version that may still work on it
  identity integer not null, -- random
  deleted  integer not null default 0, -- entries that claims took and that were deleted with their jobs, as long as these claims are there
  erased   integer not null default 0  -- how many jobs were ever deleted
) strict;

-- Retry policies as data, stored once each under a hash of their text.
create table stint_policies (
  id   integer primary key, -- the first 63 bits of the SHA-256 of its JSON
  body text not null check (json_valid(body))
) strict;

-- The log of ready work. SQLite has one writer at a time, so rows are
-- committed in the order of their positions and a claim never has to look
-- back. AUTOINCREMENT, because a plain rowid starts again at 1 when retention
-- has deleted everything: a frontier would then stand before new work.
--
-- Lane -1 is one that no engine claims: a job that is not ready yet has its
-- contents there, under its id, and later entries refer to them by body. What is
-- cancelled before an engine claimed it is moved there.
create table stint_entries (
  pos      integer primary key autoincrement,
  lane     integer not null check (lane >= -1),
  created  integer not null,
  job      integer,              -- null when pos is the job's id
  body     integer,              -- the entry that holds the contents; null when it is this one
  due      integer,              -- when it was to become ready; null when that was when it was created
  policy   integer,              -- null for the default policy
  timeout  integer check (timeout > 0), -- microseconds for each attempt
  start_by integer,              -- after it no attempt begins; null for no bound
  attempt  integer not null check (attempt >= 1),
  priority integer not null check (priority between -100 and 100),
  losses   integer not null check (losses >= 0),
  suspect  integer not null check (suspect >= 0),
  max_losses integer check (max_losses >= 0), -- null for the default
  faulty   integer check (faulty = 1), -- of a job that failed so often that people should look; else null
  queue    text not null check (queue <> ''),
  kind     text not null check (kind <> ''),
  args     text check (json_valid(args)),
  tags     text check (json_valid(tags) and json_type(tags) = 'array'),
  urn      text check (urn <> ''),
  source   text check (source <> ''),
  metadata text check (json_valid(metadata) and json_type(metadata) = 'object'),
  correlation text check (correlation <> ''), -- null when it is the job's id
  uniqueness text check (uniqueness <> ''), -- which jobs it may not stand beside; null for any
  limits   text check (limits <> ''), -- the gates that the job waits for, sorted, one on each line; null for none
  recovered integer check (recovered < pos), -- the job that had ended and that this one does again
  schedule text check (schedule <> ''), -- the schedule that made it, null for none
  nth      integer,              -- its number among the jobs of that, from 1
  occurrence integer,            -- what it was made of; null for one that was run out of turn
  flow     integer,              -- the flow that the job belongs to; null for none, and in its later entries
  check ((args is null) = (body is not null)), -- arguments stand exactly once, and are never null
  check (job <> pos),
  check (body is null or job is not null),
  check (start_by >= due), -- else it could never begin
  check ((schedule is null) = (nth is null) and (occurrence is null or schedule is not null))
) strict;

-- Claims read a lane in this order; every SQLite index ends with the rowid,
-- which is pos.
create index stint_entries_lane on stint_entries (lane);
-- The entries of a job beyond its first; jobs that run once are not in it.
create index stint_entries_job on stint_entries (job) where job is not null;
-- Entries of faulty jobs, which are few.
create index stint_entries_faulty on stint_entries (job) where faulty is not null;
-- Jobs about one thing, for people; jobs that name none are not in it.
create index stint_entries_urn on stint_entries (urn) where urn is not null;

-- Jobs that come from each other, but for the first of those that were given no id.
create index stint_entries_correlation on stint_entries (correlation) where correlation is not null;

-- What a job was recovered as, if it was.
create index stint_entries_recovered on stint_entries (recovered) where recovered is not null;

-- The jobs of a flow.
create index stint_entries_flow on stint_entries (flow) where flow is not null;

-- The last line: no occurrence of a schedule has two jobs. And the way to the jobs
-- of one, for people.
create unique index stint_entries_schedule on stint_entries (schedule, occurrence) where schedule is not null;

-- Tags, only for jobs that have some: no index of the hot tables pays for them.
create table stint_job_tags (
  tag text not null,
  job integer not null,
  primary key (tag, job)
) strict, without rowid;

-- Idempotency keys: which job was enqueued under each, and a hash of its kind
-- and arguments. They stand apart from the log, so that jobs without one pay
-- nothing, and outlive their job. Unique keys as well, which begin with chr(1): they
-- are never released. Who finds one looks whether its job has ended.
create table stint_idempotency (
  key         text primary key check (key <> ''),
  job         integer not null,
  fingerprint text not null,   -- empty for a unique key
  until       integer,           -- of a unique key with a period: the end of that
  expires     integer not null   -- when to look whether it may be forgotten
) strict, without rowid;
-- What is to be looked at next.
create index stint_idempotency_expires on stint_idempotency (expires);

-- What was taken, by whom, and how far the lane has been read: the entries of
-- the lane after start and up to frontier. The newest row of a lane is all of
-- the lane's state. The key makes a stale frontier a conflict and never a
-- second claim.
create table stint_claims (
  lane     integer not null check (lane >= 0),
  n        integer not null check (n >= 1),
  nonce    integer not null,
  engine   integer not null,
  serial   integer not null,     -- the engine's own number of the request
  start    integer not null check (start >= 0), -- the frontier before it
  frontier integer not null, -- the last position that was read
  taken    integer not null check (taken between 1 and frontier - start), -- how many entries of the lane stand between the two
  primary key (lane, n)
) strict, without rowid;
-- What an engine holds: read with its beats and at its burial.
create index stint_claims_engine on stint_claims (engine, serial);

-- The outcome of each attempt: history, acknowledgement of its entry, and the
-- job's final state at once. The primary key is the last line of defence: no
-- outcome is accepted twice.
create table stint_executions (
  pos      integer primary key,
  job      integer,              -- null when pos is the job's id
  attempt  integer not null check (attempt >= 1),
  nonce    integer not null,     -- of the claim; 0 if no engine had claimed it
  engine   integer not null,
  slot     integer not null check (slot >= 0), -- 0 when it never began
  started  integer not null,
  finished integer not null,
  outcome  integer not null check (outcome between 1 and 8),
  final    integer not null check (final in (0, 1)),
  reason   text,
  result   text check (json_valid(result)),
  error    text check (json_valid(error)),
  check (job <> pos),
  check (started <= finished),
  -- Completed, cancelled, expired and skipped are final; snoozed and returned never
  -- are. (A list of three after "in" would build a table for each row.)
  check (case when outcome = 1 or outcome >= 6 then final when outcome = 3 or outcome = 4 then not final else 1 end)
) strict;
-- The executions of a job beyond its first entry's.
create index stint_executions_job on stint_executions (job) where job is not null;
-- What is rare and asked for: attempts that did not complete their job.
create index stint_executions_rare on stint_executions (outcome, final) where outcome <> 1;
-- Attempts that took long: they are few, for a slot has time for few of them.
create index stint_executions_long on stint_executions (job) where finished - started > 5000000;
-- What no engine had claimed: jobs that were cancelled or decided about while
-- they waited. Retention asks whether an engine decided anything that is left.
create index stint_executions_unclaimed on stint_executions (engine) where nonce = 0;

-- Jobs that wait for a time. The only table with churn.
create table stint_waiting (
  job      integer primary key,
  due      integer,              -- null while that is not known
  undecided text check (undecided <> ''), -- the retry function that is to say when it is due, if at all
  faulty   integer check (faulty = 1),
  body     integer not null,
  why      text not null check (why in ('scheduled', 'retrying', 'blocked')),
  attempt  integer not null check (attempt >= 1),
  priority integer not null check (priority between -100 and 100),
  losses   integer not null check (losses >= 0),
  suspect  integer not null check (suspect >= 0),
  queue    text not null check (queue <> ''),
  kind     text not null check (kind <> ''),
  limits   text check (limits <> ''), -- as in entries
  awaits   text check (json_valid(awaits)), -- of a blocked one, what ends its wait before it is due: an object, by steps the signals that they take, and empty for the answer to the question that a step asks
  watch    integer,              -- of one that waits for jobs, the newest of these that has perhaps not ended; null for none
  verdict  integer check (verdict between 0 and 2), -- of one that waits for jobs, what those that ended have decided: 1 it is skipped, 2 it is cancelled or, if it is a flow, has failed
  cause    integer,              -- the job that decided it
  check ((due is null) = (undecided is not null or verdict is not null)),
  check (undecided is null or why = 'retrying'),
  check ((why = 'blocked') = (awaits is not null or verdict is not null))
) strict;
-- Promotion reads what is due, in the order of its due times.
create index stint_waiting_due on stint_waiting (due);
-- Who waits for a job that ended.
create index stint_waiting_watch on stint_waiting (watch) where watch is not null;
-- What waits for a retry function, and what people should look at: both rare.
create index stint_waiting_undecided on stint_waiting (job, undecided) where undecided is not null;
create index stint_waiting_faulty on stint_waiting (job) where faulty is not null;

-- What the steps of handlers came to, and the questions that they ask. A row is written once, and goes with its
-- job; one of a question is written again with its answer.
create table stint_steps (
  job    integer not null, -- its id
  name   text    not null check (name <> ''), -- unique in the job
  pos    integer not null, -- of the attempt that recorded it; lower than the job's if that took it along
  began  integer not null, -- when
  ended  integer not null, -- when it was recorded
  result text             check (json_valid(result)), -- what it returned; null while a question is open
  signal integer,          -- the number of the signal that it took; null for none, and in a job that took the step along
  question text           check (json_valid(question)), -- what it asks people: a text and choices; or the job that it called; null for other steps
  until  integer,          -- when the time to answer that is over
  primary key (job, name), -- no step is accepted twice
  check ((question is null) = (until is null)),
  check (result is not null or question is not null)
) strict;
-- The questions that are open, and those of jobs that ended without an answer.
create index stint_steps_open on stint_steps (job, name) where result is null;
-- Who called a job that has not ended.
create index stint_steps_called on stint_steps (question ->> 'job') where result is null and question is not null;
-- The last line: no signal is taken twice.
create unique index stint_steps_signal on stint_steps (signal) where signal is not null;

-- What was sent to jobs. A row is written once, and goes with its job; the step that
-- took it names it.
create table stint_signals (
  n     integer primary key autoincrement, -- its number
  job   integer not null, -- to which it was sent
  name  text    not null check (name <> ''), -- what steps wait for
  sent  integer not null, -- when
  key   text    check (key <> ''), -- of several of a job with the same one, the first counts; null for none
  value text    not null check (json_valid(value)) -- what was sent
) strict;
-- What a step takes next.
create index stint_signals_job on stint_signals (job, name);
-- The last line: of several with one key the first counts.
create unique index stint_signals_key on stint_signals (job, key) where key is not null;

-- Lines that the runs of jobs logged. A row is written once, and goes when newer ones of its
-- run need the room, or with its job.
create table stint_lines (
  job   integer not null, -- its id
  pos   integer not null, -- of the attempt
  n     integer not null check (n >= 1), -- which line of it; those that are missing were left out
  at    integer not null, -- when it was logged
  level integer not null, -- as slog numbers them: 0 is info, 4 a warning, 8 an error
  text  text    not null,
  primary key (job, pos, n)
) strict, without rowid;

-- How far the runs of jobs said they were: of each the last that was said. Goes with the job.
create table stint_progress (
  job      integer not null, -- its id
  pos      integer not null, -- of the attempt
  n        integer not null check (n >= 1), -- which one of it that is
  at       integer not null, -- when it said so
  fraction real    not null check (fraction between 0 and 1), -- how much is done
  text     text, -- what it does; null for nothing
  primary key (job, pos)
) strict, without rowid;

-- Jobs of flows that ended, or were blocked, since a promotion looked. It looks at so many of
-- those who wait for them that it keeps others from writing for some milliseconds only. Empty
-- nearly always.
create table stint_notes (
  job   integer primary key, -- its id
  after integer not null,    -- of those who wait for it, the last that was looked at; 0 for none
  at    integer not null default (cast(unixepoch('subsec') * 1000000 as integer)) -- since when
) strict;

-- Flows. Each is a job as well, of this id, which no engine runs: it ends when its jobs have.
create table stint_flows (
  flow     integer primary key, -- its id
  deadline integer -- when the time that it may take is over; null for none, and when that was seen to
) strict;
-- Promotion looks at those of which the time is over.
create index stint_flows_deadline on stint_flows (deadline, flow) where deadline is not null;

-- Jobs of flows that have a name there.
create table stint_nodes (
  flow integer not null, -- the flow
  name text    not null check (name <> ''), -- unique there
  job  integer not null, -- that has it: one of the flow, or one that had completed when the flow was retried
  primary key (flow, name)
) strict, without rowid;
-- The names of a job.
create index stint_nodes_job on stint_nodes (job);

-- What must end before a job begins. A row goes with the job that needs.
create table stint_needs (
  child  integer not null, -- the job that needs
  parent integer not null, -- the job or flow that it needs
  wants  integer not null check (wants between 1 and 3), -- 1 that it completes, 2 that it fails, 3 that it ends
  primary key (child, parent)
) strict, without rowid;
-- Who needs a job.
create index stint_needs_parent on stint_needs (parent);

-- Cancelled jobs that have no final outcome yet. All that moves a
-- job looks here, so a program in any language cancels one by
-- inserting its id: what waits or is available is cancelled with that, and ends
-- with the next promotion; what runs is asked to stop.
create table stint_cancellations (
  job integer primary key,
  at  integer not null,
  why text check (why <> ''),
  down_to integer -- of a flow, the last of its jobs that was looked at to be cancelled with it, from the newest down; 0 when all were
) strict;

-- Queues that are paused. A program in any language pauses one by inserting its
-- name, and resumes it by deleting that.
create table stint_queues (
  queue  text primary key check (queue not in ('', '*')),
  paused integer not null,
  by     text check (by <> ''),
  why    text check (why <> '')
) strict, without rowid;

-- Engines of which something was deleted while they stood in the roster: one
-- whose answer was lost may record it once more, and must not bring it back.
-- An engine is here until its beats say that nothing is left to repeat.
create table stint_deletions (
  engine integer primary key,
  serial integer not null,       -- of the last claim that it had made by then
  at     integer not null
) strict;

-- The roster. A row is inserted when an engine joins and deleted by its
-- burial, never updated: it is the fence of everything that the engine writes.
-- What is known of the engine stands in its history, which stays, so that
-- claims and executions need carry the token only.
create table stint_engines (
  token  integer primary key,
  locked integer not null check (locked in (0, 1)) -- its process has locked its place in the file beside this one
) strict;

-- What is known of engines, for ever, and how they ended.
create table stint_engine_history (
  token       integer primary key,
  instance    text not null,
  host        text not null,
  boot_id     text not null, -- as in engines of PostgreSQL
  pid         integer not null,
  pid_started integer not null, -- as in engines of PostgreSQL
  version     text not null,
  queues      text not null check (json_valid(queues)), -- that it works on
  kinds       text not null check (json_valid(kinds)), -- that it can run
  slots       integer not null, -- how many jobs it runs at once
  ttl         integer not null, -- microseconds without a beat after which it may be buried
  joined      integer not null,
  beat        integer, -- its last one; null while it stands
  ended       integer,           -- when it was buried, and why
  why         text, -- of its end; null while it stands
  buried_by   integer, -- the engine that buried it; null for itself, and for a person
  freed       integer not null default 0, -- entries that it held, and that were concluded for it
  lost        integer not null default 0, -- how many of these had begun
  lost_at     text not null default '[]' check (json_valid(lost_at)), -- where the first of them are in the log
  drain       integer not null default 0 check (drain in (0, 1)), -- asked to take no more and leave, which holds for whoever it joins again as
  check ((ended is null) = (why is null))
) strict;
-- Those that are gone, the last first.
create index stint_engine_history_ended on stint_engine_history (ended) where ended is not null;

-- Signs of life, updated in place. Never upserted: that would bring back the
-- buried.
create table stint_beats (
  token   integer primary key,
  beat    integer not null,
  number  integer not null default 0, -- of the beat that said the following
  low     integer not null,      -- no claim with a lower serial is unfinished
  running text not null check (json_valid(running)), -- what the slots work on
  started text not null default '{}', -- when the attempts at some of those began, by their positions
  slots   integer not null default 0, -- how many there are now; 0 for as many as when it joined
  drain   integer not null default 0 check (drain in (0, 1)) -- asked to take no more and leave
) strict;

-- What engines declare of the kinds that they run; read by producers that are
-- not Go.
create table stint_kinds (
  name     text primary key check (name <> ''), -- its name
  queue    text not null,
  priority integer not null check (priority between -100 and 100),
  timeout  integer not null check (timeout >= 0), -- microseconds for each attempt; 0 for no bound
  start_within integer not null default 0 check (start_within >= 0), -- microseconds after a job is due in which it is to begin; 0 for no bound
  max_losses integer check (max_losses >= 0), -- null for the default
  tags     text not null check (json_valid(tags)),
  retry    text not null check (json_valid(retry)), -- its policy
  uniqueness text check (uniqueness <> ''), -- which jobs its jobs may not stand beside; null for any
  limits   text check (json_valid(limits)), -- the limits that its jobs wait for; null for none
  sealed   text check (json_valid(sealed)), -- JSON pointers to the parts of its arguments that are encrypted; null for none
  redacted text check (json_valid(redacted)), -- JSON pointers to the parts of its arguments that people are not shown; null for none
  declared integer not null -- what it says now
) strict, without rowid;

-- Schedules. The engine that fires one makes the jobs and moves it on in one transaction;
-- the revision tells whether it is still what the occurrences were computed from.
create table stint_schedules (
  name       text primary key check (name <> ''), -- what it is known by
  recurrence text not null,      -- when, as text: five cron fields, every 5m, function:name
  function   text,               -- the recurrence function to ask, null for none
  zone       text not null,      -- the IANA name of the zone whose clock that is about
  job        text not null check (json_valid(job)), -- what it makes
  overlap    integer not null check (overlap in (0, 1)), -- whether occurrences are fired while the last job has not ended
  missed     text not null,      -- what becomes of occurrences that were not fired in time: one, none, all:100
  not_before integer,            -- the earliest occurrence that there may be
  not_after  integer,            -- the last occurrence that there may be
  after      integer not null,   -- occurrences up to this are dealt with
  next       integer,            -- null when it is not known yet, or never
  ended      integer,            -- when it was found that it never fires again
  paused     integer,            -- since when nothing of it is fired
  paused_by  text,               -- who paused it
  paused_why text,               -- and why
  fired      integer not null default 0, -- jobs made
  skipped    integer not null default 0, -- occurrences that would have overlapped
  passed     integer not null default 0, -- occurrences that were missed and not made up for
  passed_at  integer,            -- when that was found of the last of them
  last_occurrence integer,       -- of the last job that has one
  last_job   integer,            -- the last job that it made
  created    integer not null,   -- when it was first declared
  declared   integer not null,   -- when it was last declared
  declared_by text,              -- who did that
  revision   integer not null default (abs(random() % 4503599627370496)) -- another one after every change, and of every schedule that ever had the name
) strict, without rowid;
-- What to look at next: those of which nothing is known first.
create index stint_schedules_next on stint_schedules (next) where paused is null and ended is null;

-- Which engine does what one engine does for all of them. A holder that is not in the
-- roster holds nothing, and neither does one whose time is over.
create table stint_leases (
  name     text primary key check (name <> ''), -- what it is for
  engine   integer,              -- null while no engine has it
  acquired integer,              -- since when the engine has it without a gap
  renewed  integer,              -- when it was asked for last
  expires  integer,              -- until when the engine has it
  deposed       integer,         -- the engine that it was taken from
  deposed_at    integer,         -- when that was
  deposed_until integer,         -- before that he does not get it again
  deposed_by    text check (deposed_by <> ''),  -- who did it
  deposed_why   text check (deposed_why <> ''), -- the reason that was given
  check (engine is null or acquired is not null and renewed < expires)
) strict, without rowid;

-- What limits allow: the rule that people set, or else the one that programs declared
-- last. A limit that is not here allows all. Texts are as in 10,100/1m,burst=5.
create table stint_limits (
  name        text primary key check (name <> ''), -- what jobs know it by, or one of its keys: tenant=acme
  declared    text check (declared <> ''), -- the rule of programs
  declared_at integer,          -- when that was declared or changed
  fixed       text check (fixed <> ''), -- the rule that people set
  set_at      integer,          -- when they did
  set_by      text check (set_by <> ''), -- who
  set_why     text check (set_why <> ''), -- and why
  check (declared is not null or fixed is not null),
  check ((declared is null) = (declared_at is null)),
  check ((fixed is null) = (set_at is null)),
  check (fixed is not null or set_by is null and set_why is null)
) strict, without rowid;

-- Limits, and keys of them, of which no job starts for a time.
create table stint_limit_pauses (
  gate  text primary key check (gate <> ''), -- its name: smtp, tenant=acme
  until integer not null,                    -- when it ends
  trial integer not null check (trial in (0, 1)), -- whether one job starts alone after that, and the others when it has completed
  by    text check (by <> ''),               -- who paused it
  why   text check (why <> '')               -- and why
) strict, without rowid;

-- Which engines hold permits to start jobs, and which wait for some: of each gate, which
-- is a limit or one of its keys, the newest state. What engines hold that are not in the
-- roster counts no more.
create table stint_permits (
  gate       text primary key check (gate <> ''), -- its name: smtp, tenant=acme
  n          integer not null check (n >= 1), -- counts its states
  next_start integer,           -- when the rule's rate lets the next job start, if no burst is left; null while no job started under one
  next_cost  integer not null default 0, -- how many starts the dearest counts as that was asked for since the rate was at rest, 0 for 1
  used       text not null check (json_valid(used) and json_type(used) = 'array') -- by which engines, in the order in which they asked: engine, how many it holds, how many more it asked for, and since when
) strict, without rowid;

-- Which jobs come again under limits whose rules say in-order: they go before all of the
-- gate that have not begun. Rows of jobs that have ended count no more, unless the job failed
-- under a rule that says halt.
create table stint_reruns (
  gate   text not null check (gate <> ''), -- its name
  job    integer not null,
  failed integer check (failed = 1), -- for good, and nobody has retried it; null otherwise
  primary key (gate, job)
) strict, without rowid;

-- for what becomes ready after a wait
create index stint_reruns_job on stint_reruns (job);

-- What engines count, the newest figures of each. An engine is known by its
-- name and by when it began to count: it may have stood in the roster under
-- several tokens meanwhile, the last of which is here.
create table stint_metrics (
  instance text not null, -- the engine's name
  since    integer not null, -- when it began to count
  engine   integer not null, -- its token, or the last of them
  at       integer not null, -- when it wrote this
  figures  text not null check (json_valid(figures)), -- what it counted: report.Metrics as JSON
  primary key (instance, since)
) strict, without rowid;

-- Who changed what: one row for each change that came by the API or the command
-- line. It is written before the change is made, and ended after that.
create table stint_changes (
  n         integer primary key autoincrement, -- its number
  at        integer not null, -- when it was written down
  by        text check (by <> ''), -- who
  role      text check (role <> ''), -- in which they asked
  way       text not null check (way <> ''), -- by which it came: api, command
  operation text not null check (operation <> ''), -- what was done
  subject   text check (subject <> ''), -- what it was done to, when that is one thing
  details   text check (json_valid(details) and json_type(details) = 'object'), -- what names and chooses what is changed, and why; no arguments of jobs
  ended     integer, -- when it was known what came of it; null for one that is being made, or whose process died
  problem   text check (problem <> ''), -- why it failed; null when it was done
  check (problem is null or ended is not null)
) strict;
-- What was done to one thing, which may be long ago.
create index stint_changes_subject on stint_changes (subject) where subject is not null;

-- What people decided about groups of errors: of the last 10,000. A group that is not here
-- is open. Which errors are a group the program says.
create table stint_error_groups (
  key   text primary key check (length(key) = 16 and key not glob '*[^0-9a-f]*'), -- the group's
  state text not null check (state in ('resolved', 'muted')), -- resolved until such an error comes again; muted whatever comes
  at    integer not null, -- when that was decided
  by    text check (by <> ''), -- by whom
  why   text check (why <> '') -- as they said
) strict, without rowid;

-- Filters of jobs that people saved under a name.
create table stint_saved_filters (
  name  text primary key check (name <> ''), -- as people call it
  query text not null check (query <> ''), -- as in the address of a list of jobs
  at    integer not null, -- when it was saved
  by    text check (by <> '') -- by whom
) strict, without rowid;

-- How attempts went, by the hour in which they ended, and of the last two days by
-- the minute: of each kind, in each queue, with each outcome. Durations are
-- microseconds.
create table stint_stats (
  minutes integer not null check (minutes in (1, 60)), -- how long a time this is of
  start   integer not null, -- its beginning
  kind    text    not null, -- what was done
  queue   text    not null, -- where it was
  outcome integer not null, -- how the attempts ended: see executions
  n       integer not null, -- attempts that began
  ran     integer not null, -- those of them that were not lost; the following is about these
  total   integer not null, -- how long they took, all together
  fastest integer, -- how long the fastest took
  longest integer, -- how long the longest took
  last    integer, -- how long the one took that ended last,
  last_at integer, -- and when it ended
  waited  integer not null, -- from when they were due to their starts, all together
  took_by   text  not null default '[]', -- how long they took: a histogram, an array of counts
  waited_by text  not null default '[]', -- how long they had been due before: another one
  primary key (minutes, start, kind, queue, outcome)
) strict, without rowid;

-- How far the sums go. With one writer at a time, what is recorded after such a
-- mark is what was claimed after it, or was claimed and had no outcome then: so
-- it is found without a look at the rest, and without an index of when
-- attempts ended. The last marks are kept, for questions about the last
-- minute.
create table stint_marks (
  n     integer primary key, -- counts them
  at    integer not null, -- when
  lanes text not null check (json_valid(lanes)), -- the frontier of each, by its number
  open  text not null check (json_valid(open)) -- positions that were claimed and had no outcome
) strict;

-- What people query: one row per job, with its state. A job waits, or it has
-- an entry without an execution, or one with a final execution; never two of
-- these. A cancelled one shows so at once, unless it runs: until it
-- has the execution that ends it, its marker (k) tells when and why, and not an
-- attempt that it had before. The three arms are each in the order of ids, so
-- that a page of a list costs what it shows. (Their columns have equal types
-- because SQLite takes a query apart over the arms only then.)
create view stint_jobs as
  select w.job as id, w.kind,
         cast(case when k.job is null or exists (select 1 from stint_flows f where f.flow = w.job) then w.why else 'cancelled' end as text) as state, 0 as begun, w.queue, w.priority, b.args,
         w.attempt, w.losses, cast(ifnull(k.why, case when k.job is not null then 'cancelled' end) as text) as reason,
         cast(b.created as integer) as created, cast(ifnull(w.due, ifnull(b.due, b.created)) as integer) as due,
         cast(ifnull(k.at, l.started) as integer) as started, cast(ifnull(k.at, l.finished) as integer) as finished,
         b.tags, b.urn, b.source, b.metadata, b.policy, b.timeout, b.max_losses,
         cast(case when k.job is null then l.result end as text) as result, cast(case when k.job is null then l.error end as text) as error,
         w.faulty is not null and k.job is null as faulty, cast(w.undecided as text) as undecided,
         cast(case when k.job is null and w.awaits is not null then (select json_group_array(value) from json_each(w.awaits) where value <> '') end as text) as awaits,
         cast(case when k.job is null and w.awaits is not null then (select json_group_array(key) from json_each(w.awaits) where value = '' and not exists (select 1 from stint_steps s where s.job = w.job and s.name = key and s.question ->> 'job' is not null)) end as text) as asks,
         b.recovered, cast(ifnull(b.correlation, w.job) as text) as correlation, b.start_by, b.uniqueness, b.schedule, b.nth, b.occurrence,
         cast('["' || replace(replace(replace(b.limits, '\', '\\'), '"', '\"'), char(10), '","') || '"]' as text) as limits,
         b.flow, (select n.name from stint_nodes n where n.job = w.job and n.flow = b.flow) as node,
         exists (select 1 from stint_flows f where f.flow = w.job) as is_flow, cast(case when k.job is null then ifnull(w.watch, case when w.awaits is not null then (select min(s.question ->> 'job') from stint_steps s where s.job = w.job and s.result is null) end) end as integer) as watch
  from stint_waiting w
  join stint_entries b on b.pos = w.body
  left join stint_cancellations k on k.job = w.job
  left join stint_executions l
    on l.pos = ifnull((select max(x.pos) from stint_executions x where x.job = w.job), w.job)
union all
  select e.pos, e.kind,
         cast(case when x.pos is not null then case x.outcome when 1 then 'completed' when 6 then 'cancelled' when 8 then 'cancelled' else 'failed' end
                   when k.job is not null then 'cancelled'
                   when e.pos <= (select c.frontier from stint_claims c where c.lane = e.lane order by c.n desc limit 1) then 'running'
                   else 'available' end as text),
         x.pos is null and exists (select 1 from stint_beats b, json_each(b.running) r where r.value = e.pos),
         e.queue, e.priority, e.args, e.attempt, cast(e.losses + ifnull(x.outcome = 5, 0) as integer),
         cast(case when x.pos is not null then ifnull(x.reason, case x.outcome when 1 then 'done' when 6 then 'cancelled' when 8 then 'cancelled' end)
                   else ifnull((select c.why from stint_cancellations c where c.job = e.pos), case when k.job is not null then 'cancelled' end) end as text),
         cast(e.created as integer), cast(ifnull(e.due, e.created) as integer),
         cast(ifnull(k.at, x.started) as integer), cast(ifnull(k.at, x.finished) as integer),
         e.tags, e.urn, e.source, e.metadata, e.policy, e.timeout, e.max_losses, cast(x.result as text), cast(x.error as text),
         0, cast(null as text), cast(null as text), cast(null as text), e.recovered, cast(ifnull(e.correlation, e.pos) as text), e.start_by, e.uniqueness, e.schedule, e.nth, e.occurrence,
         cast('["' || replace(replace(replace(e.limits, '\', '\\'), '"', '\"'), char(10), '","') || '"]' as text),
         e.flow, (select n.name from stint_nodes n where n.job = e.pos and n.flow = e.flow), exists (select 1 from stint_flows f where f.flow = e.pos), cast(null as integer)
  from stint_entries e
  left join stint_executions x on x.pos = e.pos
  left join stint_cancellations k on k.job = e.pos and x.pos is null
    and e.pos > ifnull((select c.frontier from stint_claims c where c.lane = e.lane order by c.n desc limit 1), 0)
  where e.job is null and (x.final = 1 or x.pos is null and e.lane >= 0)
union all
  select e.job, e.kind,
         cast(case when x.pos is not null then case x.outcome when 1 then 'completed' when 6 then 'cancelled' when 8 then 'cancelled' else 'failed' end
                   when k.job is not null then 'cancelled'
                   when e.pos <= (select c.frontier from stint_claims c where c.lane = e.lane order by c.n desc limit 1) then 'running'
                   else 'available' end as text),
         x.pos is null and exists (select 1 from stint_beats b, json_each(b.running) r where r.value = e.pos),
         e.queue, e.priority, b.args, e.attempt, cast(e.losses + ifnull(x.outcome = 5, 0) as integer),
         cast(case when x.pos is not null then ifnull(x.reason, case x.outcome when 1 then 'done' when 6 then 'cancelled' when 8 then 'cancelled' end)
                   else ifnull((select c.why from stint_cancellations c where c.job = e.job), case when k.job is not null then 'cancelled' end) end as text),
         cast(b.created as integer), cast(ifnull(e.due, e.created) as integer),
         cast(ifnull(k.at, l.started) as integer), cast(ifnull(k.at, l.finished) as integer),
         b.tags, b.urn, b.source, b.metadata, b.policy, b.timeout, b.max_losses,
         cast(case when k.job is null then l.result end as text), cast(case when k.job is null then l.error end as text),
         e.faulty is not null and x.pos is null and k.job is null, cast(null as text), cast(null as text), cast(null as text),
         b.recovered, cast(ifnull(b.correlation, e.job) as text), b.start_by, b.uniqueness, b.schedule, b.nth, b.occurrence,
         cast('["' || replace(replace(replace(e.limits, '\', '\\'), '"', '\"'), char(10), '","') || '"]' as text),
         b.flow, (select n.name from stint_nodes n where n.job = e.job and n.flow = b.flow), 0, cast(null as integer)
  from stint_entries e
  join stint_entries b on b.pos = e.body
  left join stint_executions x on x.pos = e.pos
  left join stint_cancellations k on k.job = e.job and x.pos is null
    and e.pos > ifnull((select c.frontier from stint_claims c where c.lane = e.lane order by c.n desc limit 1), 0)
  left join stint_executions l
    on l.pos = ifnull(x.pos, ifnull((select max(o.pos) from stint_executions o where o.job = e.job), e.job))
  where e.job is not null and (x.final = 1 or x.pos is null);

-- One row per attempt that ended, as people read it, in two arms so that the attempts
-- of one job are found by a key. Times are null where no attempt began, and of one that
-- was lost with its engine: only the moment at which that became known is stored.
create view stint_attempts as
  select x.pos as job, x.attempt, e.kind, e.queue,
         case x.outcome when 1 then 'completed' when 2 then 'failed' when 3 then 'snoozed' when 4 then 'returned' when 5 then 'lost'
           when 6 then 'cancelled' when 7 then 'expired' when 8 then 'skipped' end as outcome,
         x.final, x.reason, case when x.slot > 0 then x.started end as started, x.finished,
         case when x.slot > 0 then x.finished - x.started end as took,
         case when x.slot > 0 then max(0, x.started - ifnull(e.due, e.created)) end as waited,
         h.instance, h.host, h.pid, nullif(x.slot, 0) as slot, x.error, x.result, x.pos
  from stint_executions x join stint_entries e on e.pos = x.pos left join stint_engine_history h on h.token = x.engine
  where x.job is null
union all
  select x.job as job, x.attempt, e.kind, e.queue,
         case x.outcome when 1 then 'completed' when 2 then 'failed' when 3 then 'snoozed' when 4 then 'returned' when 5 then 'lost'
           when 6 then 'cancelled' when 7 then 'expired' when 8 then 'skipped' end as outcome,
         x.final, x.reason, case when x.slot > 0 then x.started end as started, x.finished,
         case when x.slot > 0 then x.finished - x.started end as took,
         case when x.slot > 0 then max(0, x.started - ifnull(e.due, e.created)) end as waited,
         h.instance, h.host, h.pid, nullif(x.slot, 0) as slot, x.error, x.result, x.pos
  from stint_executions x join stint_entries e on e.pos = x.pos left join stint_engine_history h on h.token = x.engine
  where x.job is not null;

insert into stint_meta (one, version, oldest, identity) values (1, 1, 1, random());
