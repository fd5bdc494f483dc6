-- stint: leases, for what one engine does for all of them.

-- Whether a lease is held, and by whom: an engine of the roster whose time is
-- not over. In a statement after the one that locked the row it is true until
-- that lock is given back.
create function stint.holder(p_name text) returns bigint language sql volatile
set search_path = pg_catalog, pg_temp
as $$
  select l.engine from stint.leases l
  where l.name = p_name and l.expires > clock_timestamp()
    and exists (select from stint.engines e where e.token = l.engine)
$$;

-- Take a lease for an engine, or renew it; the answer is the engine that has it.
create function stint.acquire(p_name text, p_engine bigint, p_term bigint) returns bigint language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  has   bigint;
  clock timestamptz;
begin
  perform stint.fence(p_engine);
  -- Nearly always another engine has it, and nothing is locked or written.
  has := stint.holder(p_name);
  if has <> p_engine then
    return has;
  end if;
  insert into stint.leases (name) values (p_name) on conflict do nothing;
  -- A session that acts under the lease holds its row until it commits.
  perform from stint.leases l where l.name = p_name for update;
  -- A statement of its own. In the one that waited for the row, the roster
  -- would be as it was before: an engine that joined and took the lease meanwhile would
  -- not be in it, and would lose the lease that he holds.
  has := stint.holder(p_name);
  clock := clock_timestamp();
  if has = p_engine then
    update stint.leases l set renewed = clock, expires = clock + p_term * interval '1 microsecond' where l.name = p_name;
  elsif has is null then
    update stint.leases l set engine = p_engine, acquired = clock, renewed = clock, expires = clock + p_term * interval '1 microsecond'
      where l.name = p_name and not coalesce(l.deposed = p_engine and l.deposed_until > clock, false);
    if found then
      has := p_engine;
    end if;
  end if;
  return has;
end
$$;

-- Give a lease back; whether the engine had it.
create function stint.resign(p_name text, p_engine bigint) returns boolean language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  had boolean;
begin
  perform from stint.leases l where l.name = p_name for update;
  had := coalesce(stint.holder(p_name) = p_engine, false);
  update stint.leases l set engine = null, acquired = null, renewed = null, expires = null
    where l.name = p_name and l.engine = p_engine;
  perform pg_notify('stint', '');
  return had;
end
$$;

-- Free a lease; the answer is the engine that had it. It does not get it again for as
-- long as its lease was for, so that another one may.
create function stint.depose(p_name text, p_by text, p_why text) returns bigint language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  had   bigint;
  clock timestamptz;
begin
  perform from stint.leases l where l.name = p_name for update;
  had := stint.holder(p_name);
  clock := clock_timestamp();
  if had is not null then
    update stint.leases l
      set engine = null, acquired = null, renewed = null, expires = null,
          deposed = had, deposed_at = clock, deposed_until = clock + (l.expires - l.renewed),
          deposed_by = nullif(p_by, ''), deposed_why = nullif(p_why, '')
      where l.name = p_name;
    perform pg_notify('stint', '');
  end if;
  return had;
end
$$;

-- Go on only while an engine holds a lease; no other takes it before this
-- transaction has ended.
create function stint.under(p_name text, p_engine bigint) returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  perform from stint.leases l where l.name = p_name for share;
  if stint.holder(p_name) is distinct from p_engine then
    raise exception 'engine % does not hold the lease %', p_engine, quote_literal(p_name) using errcode = 'ST020';
  end if;
end
$$;
