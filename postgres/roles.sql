-- stint: roles, and what each may do.
--
--   stint_owner     installs and upgrades the schema, which belongs to it
--   stint_engine    works on jobs, and does to them what people may: it cannot change the schema
--   stint_producer  enqueues by the Go client or SQL, sends signals and answers questions: it reads and changes no jobs
--   stint_caller    enqueues by stint.enqueue and stint.enqueue_flow, sends signals by stint.signal, answers by stint.answer, and sees no table at all
--   stint_worker    performs jobs by stint.worker_join and the functions beside it, and sees no table at all
--   stint_viewer    reads everything, arguments too, and changes nothing
--
-- None of them logs in. Give them to the roles that do:
--
--   create role billing login in role stint_producer;
--
-- Run this as a superuser, or as a role that may create roles and, where the
-- schema is not there yet, schemas in this database. Once before the schema is
-- installed, so that its owner can install it; and again after the installation
-- and after each upgrade, for the rights on what is new. It may be run at any
-- time, and takes away what it did not give.

do $$
declare
  one    record;
  rights text;
begin
  for one in select r.name from unnest(array['stint_owner', 'stint_engine', 'stint_producer', 'stint_caller', 'stint_worker', 'stint_viewer']) as r(name)
             where not exists (select from pg_catalog.pg_roles p where p.rolname = r.name) loop
    execute format('create role %I nologin', one.name);
  end loop;
  -- A role that is no superuser acts for the owner as a member of it.
  if not pg_catalog.pg_has_role(current_user, 'stint_owner', 'usage') then
    execute format('grant stint_owner to %I', current_user);
  end if;

  if not exists (select from pg_catalog.pg_namespace where nspname = 'stint') then
    create schema stint authorization stint_owner;
  end if;
  -- What another role installed goes over to the owner.
  perform set_config('lock_timeout', '100ms', true);
  if (select n.nspowner from pg_catalog.pg_namespace n where n.nspname = 'stint') <> 'stint_owner'::regrole then
    alter schema stint owner to stint_owner;
  end if;
  for try in 1 .. 100 loop
    begin
      for one in select format('alter %s %s owner to stint_owner', case c.relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end, c.oid::regclass) as change
                 from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = 'stint' and c.relkind in ('r', 'v', 'S') and c.relowner <> 'stint_owner'::regrole
                 union all
                 select format('alter function %s owner to stint_owner', p.oid::regprocedure)
                 from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
                 where n.nspname = 'stint' and p.proowner <> 'stint_owner'::regrole
                 union all
                 select format('alter domain %s owner to stint_owner', t.oid::regtype)
                 from pg_catalog.pg_type t join pg_catalog.pg_namespace n on n.oid = t.typnamespace
                 where n.nspname = 'stint' and t.typtype = 'd' and t.typowner <> 'stint_owner'::regrole loop
        execute one.change;
      end loop;
      exit;
    exception when lock_not_available or deadlock_detected then
      -- This locks every table, and a transaction of an engine may have one of them
      -- and want another. Who comes after a lock that is waited for waits, too: so all
      -- are let go of before the next try.
      if try = 100 then
        raise;
      end if;
      perform pg_catalog.pg_sleep(0.1);
    end;
  end loop;

  revoke all on schema stint from public, stint_engine, stint_producer, stint_caller, stint_worker, stint_viewer;
  revoke all on all tables in schema stint from public, stint_engine, stint_producer, stint_caller, stint_worker, stint_viewer;
  revoke all on all sequences in schema stint from public, stint_engine, stint_producer, stint_caller, stint_worker, stint_viewer;
  revoke all on all functions in schema stint from public, stint_engine, stint_producer, stint_caller, stint_worker, stint_viewer;
  if not exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                 where n.nspname = 'stint' and c.relname = 'meta') then
    raise notice 'stint: the schema is not installed yet. Have the owner install it, then run this again.';
    return;
  end if;
  grant usage on schema stint to stint_engine, stint_producer, stint_caller, stint_worker, stint_viewer;

  -- The engine: every row. Of what the schema is it changes the identity only,
  -- when the database was restored elsewhere.
  grant select, insert, update, delete on all tables in schema stint to stint_engine;
  revoke insert, update, delete on stint.meta from stint_engine;
  grant update (system_identifier, entries_oid) on stint.meta to stint_engine;
  grant usage, select, update on all sequences in schema stint to stint_engine;
  grant execute on all functions in schema stint to stint_engine;

  -- The producer: what a job that is enqueued consists of. Not the columns by
  -- which an entry belongs to another job, refers to another's contents, or
  -- counts as an attempt; and of what is stored it reads the position alone.
  grant insert (pos, created, lane, queue, priority, kind, args, due, policy, retry, timeout, tags, urn, source,
                metadata, max_losses, correlation, start_by, uniqueness, limits), select (pos) on stint.entries to stint_producer;
  grant insert (job, due, body, why, attempt, priority, queue, kind, limits) on stint.waiting to stint_producer;
  grant insert on stint.job_tags to stint_producer;
  grant select, insert on stint.policies to stint_producer;
  grant select on stint.meta, stint.kinds to stint_producer;
  grant select (asleep) on stint.beats to stint_producer;
  grant usage on sequence stint.positions to stint_producer;

  grant select on all tables in schema stint to stint_viewer;
  grant select on all sequences in schema stint to stint_viewer; -- for pg_dump

  -- A function with the rights of its caller does nothing that these could not
  -- do without it. Those with the owner's rights are given one by one.
  for one in select p.oid::regprocedure as name from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
             where n.nspname = 'stint' and not p.prosecdef loop
    execute format('grant execute on function %s to stint_producer, stint_viewer', one.name);
  end loop;
  grant execute on function stint.frontiers to stint_producer, stint_viewer;
  grant execute on function stint.take_keys, stint.take_unique, stint.store_job, stint.store_flow to stint_producer;
  grant execute on function stint.enqueue, stint.enqueue_flow, stint.add_to_flow, stint.signal, stint.answer to stint_producer, stint_caller;
  grant execute on function stint.worker_join, stint.worker_claim, stint.worker_finish, stint.worker_beat, stint.worker_leave to stint_worker;
end
$$;
