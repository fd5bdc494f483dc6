-- stint: what was installed, and where.
insert into stint.meta (version, oldest, system_identifier, entries_oid)
  select 1, 1, system_identifier, 'stint.entries'::regclass::oid from pg_control_system();
