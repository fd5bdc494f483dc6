create table jobs (
	id          bigint generated always as identity primary key,
	queue       text not null default 'default',
	priority    smallint not null default 0,
	state       text not null default 'available',
	args        jsonb not null,
	attempt     smallint not null default 0,
	created_at  timestamptz not null default now(),
	run_at      timestamptz not null default now(),
	started_at  timestamptz,
	finished_at timestamptz
);

-- What is claimed, in the order in which it is. Finished jobs are not in it.
create index jobs_available on jobs (queue, priority, run_at, id) where state = 'available';
