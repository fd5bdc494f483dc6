-- stint: jobs that are blocked, and what ends that. Whoever changes something that somebody may
-- wait for leaves a note, and so does who begins to wait. A promotion looks at a note when its
-- transaction has committed, in a later statement than the one that reads it: of two who did not
-- see each other, the later note finds both.

-- Note that something of jobs has changed. A note of many costs less than many notes.
create function stint.note(p_jobs bigint[], p_flow bigint default null) returns void language plpgsql
set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_jobs) > 0 then
    insert into stint.notes (jobs, flow)
      select array_agg(j order by j), p_flow from unnest(p_jobs) with ordinality as u(j, i) group by (i - 1) / 200;
  end if;
end
$$;

-- How a job ended: its final outcome, or null while it has not. One that was deleted counts as
-- cancelled: it can no longer do what somebody waits for. A table of one row, without settings of its own, so that it becomes a
-- part of the statement that asks. What it asks for is compared with null, since exists may be planned as a hash of all jobs.
create function stint.end_of(p_job bigint) returns table (outcome smallint) language sql stable rows 1
as $$
  select coalesce(
    (select x.outcome from stint.executions x where x.pos = p_job and x.job is null and x.final),
    (select x.outcome from stint.executions x where x.job = p_job and x.final),
    case when (select e.pos from stint.entries e where e.pos = p_job) is null then 6::smallint end)
$$;

-- The same for those that ask about one job.
create function stint.ended(p_job bigint) returns smallint language sql stable
as $$ select o.outcome from stint.end_of(p_job) as o $$;

-- What the end of a parent means to a child that wants something of it, or of a job to its flow
-- (wants is null): 0 it is as it should be, 1 the child is skipped, 2 it is cancelled; the flow failed.
-- Of several the highest counts, so the order in which parents end does not.
create function stint.verdict(wants smallint, outcome smallint) returns smallint language sql immutable parallel safe
as $$
  select case when outcome is null then null
              when outcome = 8 then case when wants is null then 0 else 1 end
              when wants = 3 then 0
              when wants = 2 then case when outcome = 1 then 1 else 0 end
              when outcome = 1 then 0 else 2 end::smallint
$$;

-- What a job needs, and the jobs of a flow, are read in the order of one index: of rows that are compared as a whole no other one is thought of, also by plans that are
-- made while the table is small.

-- The first from p_from on, of the next p_look that a job needs, that has not ended (its verdict is null) or that ended
-- with a higher verdict than p_verdict. The fence within has each of them looked at once.
create function stint.next_need(p_child bigint, p_from bigint, p_verdict smallint, p_look integer) returns table (job bigint, verdict smallint) language sql stable rows 1
as $$
  select l.parent, stint.verdict(l.wants, l.outcome)
  from (select n.parent, n.wants, o.outcome
        from (select n.parent, n.wants from stint.needs n where (n.child, n.parent) >= (p_child, p_from) and n.child <= p_child order by n.child, n.parent limit p_look) n
        cross join lateral stint.end_of(n.parent) as o offset 0) l
  where l.outcome is null or stint.verdict(l.wants, l.outcome) > p_verdict limit 1
$$;

-- From where on to look at what a job needs, of which p_from is looked at first: the next p_look are passed over up to the first that has not
-- completed at its first attempt, as most do, or is needed to fail. They are looked up together, which takes a fourth of the time, if
-- they stand close to each other.
create function stint.after_completed(p_child bigint, p_from bigint, p_look integer) returns bigint language plpgsql stable
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off
set enable_mergejoin = on set enable_hashjoin = off set enable_nestloop = off set enable_sort = off set enable_material = off set jit = off
as $$
declare
  r record;
begin
  select min(n.parent) as oldest, max(n.parent) as newest, count(*) as many into r
    from (select n.parent from stint.needs n where n.child = p_child and n.parent >= p_from order by n.parent limit p_look) n;
  if r.many < 100 or r.newest - r.oldest > 4 * r.many then
    return p_from;
  end if;
  return coalesce(
    (select n.parent
     from (select n.parent, n.wants from stint.needs n where n.child = p_child and n.parent >= p_from order by n.parent limit p_look) n
     left join stint.executions x on x.pos = n.parent and x.pos >= r.oldest and x.pos <= r.newest and x.job is null and x.final
     where x.outcome is distinct from 1 or n.wants = 2 limit 1),
    r.newest + 1);
end
$$;

-- The same of the jobs of a flow. Of one that another does again in the flow, that one counts.
create function stint.next_member(p_flow bigint, p_from bigint, p_verdict smallint, p_look integer) returns table (job bigint, verdict smallint) language sql stable rows 1
as $$
  select l.pos, stint.verdict(null, l.outcome)
  from (select m.pos, o.outcome
        from (select e.pos from stint.entries e where (e.flow, e.pos) >= (p_flow, p_from) and e.flow <= p_flow order by e.flow, e.pos limit p_look) m
        cross join lateral stint.end_of(m.pos) as o offset 0) l
  where l.outcome is null
     or stint.verdict(null, l.outcome) > p_verdict and not exists (select from stint.entries r where r.recovered = l.pos and r.flow = p_flow) limit 1
$$;

-- Whom to watch of those that a job needs, of which p_oldest is the first that has not ended: one that has not, from three quarters
-- of the way to the newest on, if it is soon found. When they end in about this order, a watch moves a few times for thousands
-- of them, and little is left to look at when the last one ends.
create function stint.open_need(p_child bigint, p_oldest bigint) returns table (job bigint) language sql stable rows 1
as $$
  select l.parent
  from (select n.parent as newest from stint.needs n where (n.child, n.parent) <= (p_child, 9223372036854775807) and n.child >= p_child and p_oldest is not null
        order by n.child desc, n.parent desc limit 1) a
  cross join lateral (
    select n.parent from stint.needs n
    where (n.child, n.parent) >= (p_child, a.newest - (a.newest - p_oldest) / 4) and n.child <= p_child order by n.child, n.parent limit 20) l
  cross join lateral stint.end_of(l.parent) as o
  where o.outcome is null limit 1
$$;

-- The same of the jobs of a flow.
create function stint.open_member(p_flow bigint, p_oldest bigint) returns table (job bigint) language sql stable rows 1
as $$
  select l.pos
  from (select e.pos as newest from stint.entries e where (e.flow, e.pos) <= (p_flow, 9223372036854775807) and e.flow >= p_flow and p_oldest is not null
        order by e.flow desc, e.pos desc limit 1) a
  cross join lateral (
    select e.pos from stint.entries e
    where (e.flow, e.pos) >= (p_flow, a.newest - (a.newest - p_oldest) / 4) and e.flow <= p_flow order by e.flow, e.pos limit 20) l
  cross join lateral stint.end_of(l.pos) as o
  where o.outcome is null limit 1
$$;

-- Jobs that waited for others are ready.
create function stint.begin_waited(p_jobs stint.waiting[]) returns integer language plpgsql
set search_path = pg_catalog, pg_temp
as $$
declare
  n integer;
begin
  insert into stint.entries (lane, job, body, attempt, priority, losses, suspect, queue, kind, faulty, limits)
    select stint.lane(o.queue, o.priority, case when o.limits is null then 'normal' else stint.part_of(o.job) end, '', o.limits), o.job, o.body, o.attempt, o.priority, o.losses, o.suspect, o.queue, o.kind, o.faulty, o.limits
    from unnest(p_jobs) as o order by o.job;
  get diagnostics n = row_count;
  return n;
end
$$;

-- Begin jobs that need one job only, and that is one of these, which end in this transaction: those of a chain follow
-- each other without a promotion in between. It is an attempt. All others are looked at after the commit, as the ended
-- ones are noted; so is one that somebody has in hand, or of which nobody could know yet that it waits.
create function stint.begin_next(p_ended bigint[], p_clock timestamptz) returns void language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  over stint.waiting[];
begin
  with gone as (
    delete from stint.waiting d where d.ctid = any (array(
      select w.place
      from unnest(p_ended) as p(job)
      cross join lateral (
        select v.ctid as place, v.job from stint.waiting v where v.watch = p.job and v.verdict = 0 order by v.watch, v.job limit 10 for update skip locked) w
      where (select n.parent from stint.needs n where (n.child, n.parent) >= (w.job, 0) and n.child <= w.job order by n.child, n.parent offset 1 limit 1) is null
        and (select stint.verdict(n.wants, o.outcome) from stint.needs n cross join lateral stint.end_of(n.parent) as o where n.child = w.job and n.parent = p.job) = 0
        and (select e.due <= p_clock from stint.entries e where e.pos = w.job) is not false)) returning d
  )
  select array_agg(g.d) into over from gone g;
  if cardinality(over) > 0 then
    perform stint.begin_waited(over);
    perform pg_notify('stint', 'work ' || pg_current_xact_id());
  end if;
end
$$;

-- What decide sees of a job that waits for others, or of a flow: the next of those that it waits for that has not ended, whom to watch then; or
-- that raises its verdict; or, if there are more than are looked at in one call, where to go on.
create type stint.looked as (job bigint, next bigint, verdict smallint, watch bigint, later bigint);

-- Look at jobs that wait for others, and at flows, whose rows are locked: have those ended that each waits for? Each watches
-- one that has not. When there is none a job begins, is skipped or cancelled, and a flow ends. The answer is how many
-- began, and the flows that could end but for somebody who may be adding to them. So many are looked at in one call
-- that it takes some milliseconds; a note has the rest looked at.
create function stint.decide(p_jobs bigint[], p_clock timestamptz, out begun bigint, out unsure bigint[]) language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  look   constant integer := 10000; -- at what a job needs
  few    constant integer := 1000;  -- at jobs of a flow, which take four times as long and hold up what begins
  flows  bigint[] := array(select f.flow from stint.flows f where f.flow = any (p_jobs));
  closed bigint[]; -- flows to which nobody can add meanwhile
  open   bigint[]; -- that watch one which has ended
  found  stint.looked[];
  done   bigint[] := '{}';
  over   stint.waiting[]; -- whose wait has ended
  noted  bigint[] := '{}';
  ready  integer;
begin
  begun := 0;
  if cardinality(flows) > 0 then
    closed := array(select w.job from stint.waiting w where w.job = any (flows) order by w.job for update skip locked);
  end if;
  open := array(
    select w.job from stint.waiting w left join lateral stint.end_of(w.watch) as o on true
    where w.job = any (p_jobs) and (w.watch is null or o.outcome is not null));
  -- Of each as often as its verdict rises, which is twice at most.
  while cardinality(open) > 0 loop
    -- By statements of their own: what is not there costs nothing.
    found := array(
      select row(w.job, x.job, x.verdict, o.job,
                 case when x.job is null then (select n.parent from stint.needs n where (n.child, n.parent) >= (w.job, s.seen) and n.child <= w.job order by n.child, n.parent offset look limit 1) end)::stint.looked
      from stint.waiting w
      cross join lateral (
        select case when (select n.parent from stint.needs n where (n.child, n.parent) >= (w.job, w.seen) and n.child <= w.job order by n.child, n.parent offset 100 limit 1) is null then w.seen
                    else stint.after_completed(w.job, w.seen, look) end as seen offset 0) s
      left join lateral stint.next_need(w.job, s.seen, w.verdict, look) as x on true
      left join lateral stint.open_need(w.job, x.job) as o on x.verdict is null
      where w.job = any (open) and w.job <> all (flows));
    if cardinality(flows) > 0 then
      found := found || array(
        select row(w.job, x.job, x.verdict, o.job,
                   case when x.job is null then (select e.pos from stint.entries e where (e.flow, e.pos) >= (w.job, w.seen) and e.flow <= w.job order by e.flow, e.pos offset few limit 1) end)::stint.looked
        from stint.waiting w left join lateral stint.next_member(w.job, w.seen, w.verdict, few) as x on true
        left join lateral stint.open_member(w.job, x.job) as o on x.verdict is null
        where w.job = any (open) and w.job = any (flows));
    end if;
    open := array(select f.job from unnest(found) as f where f.next is null and f.later is null);
    done := done || open;
    exit when cardinality(open) = cardinality(found);
    with moved as (
      update stint.waiting w
        set seen = case when f.verdict is null then coalesce(f.next, f.later) else f.next + 1 end,
            watch = case when f.next is not null and f.verdict is null then coalesce(f.watch, f.next) else w.watch end,
            verdict = coalesce(f.verdict, w.verdict),
            cause = case when f.verdict is null then w.cause else f.next end
        from unnest(found) as f where w.job = f.job and coalesce(f.next, f.later) is not null
        returning w.job, f.verdict is not null as again
    )
    select array(select m.job from moved m where m.again), noted || array(select m.job from moved m where not m.again) into open, noted;
  end loop;
  if cardinality(flows) > 0 then
    -- A flow does not end while somebody adds to it, or before what was added was looked at.
    unsure := array(select d from unnest(done) as d where d = any (flows) and d <> all (closed));
    done := array(select d from unnest(done) as d where d <> all (flows)
                  or d = any (closed) and not exists (select from stint.notes t where t.flow = d));
  end if;
  if cardinality(done) > 0 then
    if exists (select from stint.entries e where e.pos = any (done) and e.due > p_clock) then -- its time has not come
      update stint.waiting w set why = 'scheduled', due = e.due, watch = null, verdict = null, cause = null, seen = null
        from stint.entries e
        where w.job = any (done) and e.pos = w.job and e.due > p_clock and w.verdict = 0 and w.job <> all (flows);
      get diagnostics begun = row_count;
    end if;
    with gone as (
      delete from stint.waiting w where w.job = any (done) and w.verdict is not null returning w
    )
    select array_agg(g.w) into over from gone g;
    ready := stint.begin_waited(array(select o from unnest(over) as o where o.verdict = 0 and o.job <> all (flows)));
    begun := begun + ready;
    if ready < cardinality(over) then
      with ended as (
        insert into stint.executions (pos, nonce, engine, started, finished, job, attempt, slot, outcome, final, reason)
          select o.job, 0, 0, p_clock, p_clock, null, 1, 0, f.outcome, true, stint.reason_of(o.job, f.outcome, o.cause)
          from unnest(over) as o cross join lateral (
            select case when o.job = any (flows) and exists (select from stint.cancellations c where c.job = o.job) then 6
                        when o.job = any (flows) then case o.verdict when 0 then 1 else 2 end
                        when o.verdict = 1 then 8 else 6 end::smallint as outcome) f
          where o.verdict > 0 or o.job = any (flows) returning pos
      ), unmarked as (
        delete from stint.cancellations c using ended e where c.job = e.pos
      )
      select noted || array(select e.pos from ended e) into noted;
    end if;
  end if;
  perform stint.note(noted);
end
$$;

-- Why a job of a flow did not begin, or a flow did not complete.
create function stint.reason_of(p_job bigint, p_outcome smallint, p_cause bigint) returns text language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select case when p_outcome = 1 then null
              when exists (select from stint.cancellations c where c.job = p_job) then stint.why_cancelled(p_job)
              else format(case when exists (select from stint.flows f where f.flow = p_job) then 'job %s (%s) %s' else 'needs job %s (%s), which %s' end,
                p_cause, coalesce((select e.kind::text from stint.entries e where e.pos = p_cause), 'deleted'),
                case stint.ended(p_cause) when 1 then 'completed' when 8 then 'was skipped' when 6 then 'was cancelled' else 'failed' end) end
$$;

-- How a job ended, as the step that called it has it.
create function stint.how_ended(p_job bigint, p_outcome smallint) returns jsonb language sql stable
set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object('job', p_job, 'state', case p_outcome when 1 then 'completed' when 6 then 'cancelled' when 8 then 'cancelled' else 'failed' end)
      || case when p_outcome = 1 then case when x.result is null then '{}' else jsonb_build_object('result', x.result) end
              else jsonb_strip_nulls(jsonb_build_object('reason', coalesce(x.reason, 'it was deleted'), 'failure', (
                select a.error - 'stack' from stint.executions a
                where coalesce(a.job, a.pos) = p_job and a.outcome <> 1 and a.error is not null order by a.pos desc limit 1))) end
  from (select p_job as job) j left join lateral (
    select e.result, e.reason from stint.executions e where e.pos = j.job and e.job is null and e.final
    union all
    select e.result, e.reason from stint.executions e where e.job = j.job and e.final limit 1) x on true
$$;

-- Record how jobs ended as the steps that called them, and answer who did.
create function stint.tell_callers(p_jobs bigint[], p_clock timestamptz) returns bigint[] language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  callers bigint[];
begin
  with called as (
    select s.job, s.name, u.job as child, o.outcome
    from unnest(p_jobs) as u(job) cross join lateral stint.end_of(u.job) as o
    cross join lateral (
      select t.job, t.name from stint.steps t
      where t.question->>'job' = u.job::text and t.result is null and t.question ? 'job' and o.outcome is not null for no key update skip locked) s
  ), told as (
    update stint.steps s set ended = p_clock, result = stint.how_ended(c.child, c.outcome) from called c
      where s.job = c.job and s.name = c.name and s.job = any (array(select c.job from called c)) -- or it may begin with all steps
      returning s.job
  )
  select array_agg(distinct t.job) into callers from told t;
  return coalesce(callers, '{}');
end
$$;

-- Look at notes above p_note, of about p_limit jobs: wake those that wait for a signal which is
-- there, and decide about those that wait for jobs. A row that somebody else has in hand is
-- noted again. The answer is the last note, how many jobs began, and whether there may be more notes than so many.
create function stint.look_at_notes(p_note bigint, p_limit integer, p_due timestamptz, out noted bigint, out begun bigint, out more boolean) language plpgsql
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  changed bigint[]; -- the jobs that were noted
  afters  bigint[]; -- who watches one is looked at above this
  flows   bigint[]; -- to which jobs were added
  oldest  bigint[]; -- of each of these, the first that was added
  watched bigint[]; -- of who watches one of them, whom
  others  bigint[]; -- and who
  mine    bigint[]; -- what is blocked of these
  awaiting bigint[]; -- what waits for signals of those
  unsure  bigint[]; -- flows to which somebody may be adding
  told    bigint[] := '{}'; -- whose calls have ended
begin
  begun := 0;
  with gone as (
    delete from stint.notes d where d.n = any (array(
      select l.n
      from (select t.n, sum(cardinality(t.jobs)) over (order by t.n) - cardinality(t.jobs) as before
            from (select o.n, o.jobs from stint.notes o where o.n > p_note order by o.n limit p_limit for update skip locked) t) l
      where l.before < p_limit)) returning d.n, d.jobs, d.after, d.flow
  ), job as (
    select u.job, min(case when u.i = 1 then g.after else 0 end) as after
    from gone g cross join lateral unnest(g.jobs) with ordinality as u(job, i) group by u.job
  ), added as (
    select g.flow, min(g.jobs[1]) as oldest from gone g where g.flow is not null group by g.flow
  )
  select coalesce((select max(g.n) from gone g), p_note),
         array(select j.job from job j order by j.after, j.job), array(select j.after from job j order by j.after, j.job),
         array(select a.flow from added a order by a.flow), array(select a.oldest from added a order by a.flow)
    into noted, changed, afters, flows, oldest;
  more := cardinality(changed) >= p_limit;
  if cardinality(changed) = 0 then
    return;
  end if;
  select array_agg(c.parent), array_agg(c.job) into watched, others
    from (select s.job as parent, w.job from unnest(changed, afters) as s(job, after)
          cross join lateral (select v.job from stint.waiting v where v.watch = s.job and v.job > s.after order by v.watch, v.job limit p_limit) w
          order by s.after, s.job, w.job limit p_limit) c;
  if exists (select from stint.steps t where t.question->>'job' = any (changed::text[]) and t.result is null and t.question ? 'job') then
    told := stint.tell_callers(changed, p_due);
    changed := changed || told;
  end if;
  select coalesce(array_agg(l.job), '{}'), coalesce(array_agg(l.job) filter (where l.awaits), '{}') into mine, awaiting
    from (select w.job, w.awaits is not null as awaits from stint.waiting w
          where w.job = any (changed || others || flows) and w.why = 'blocked' order by w.job for no key update skip locked) l;
  -- Others have these in hand, and perhaps have not seen what was noted. Who was told of the end of a call, and does not wait yet,
  -- may begin to before that is committed: then the note of the wait is read by somebody who does not see it.
  perform stint.note(array(
    select w.job from stint.waiting w
    where w.job = any (array(select unnest(changed || others) except select unnest(mine))) and w.why = 'blocked'
    union select unnest(told) except select unnest(mine)));
  if cardinality(others) = p_limit then
    -- Those behind the one with so many watchers come first then, so that they are not noted again each time.
    insert into stint.notes (jobs, after)
      select changed[array_position(changed, watched[p_limit]):], others[p_limit];
  end if;

  if cardinality(awaiting) > 0 then
    update stint.waiting w set due = p_due
      where w.due - p_due > interval '0' and w.job = any (awaiting) and exists ( -- not by the index of due times, which has all that waits
        select from jsonb_each_text(w.awaits) as a(step, name)
        where exists (select from stint.signals s where s.job = w.job and s.name = a.name and not exists (select from stint.steps t where t.signal = s.n))
           or exists (select from stint.steps t where t.job = w.job and t.name = a.step and t.result is not null));
  end if;
  -- Of a job that was deleted before its signal was committed.
  delete from stint.signals s
    where s.job = any (changed) and not exists (select from stint.entries e where e.pos = s.job);

  -- What was added to a flow is perhaps older than others that were looked at; 0 has all of them looked at anew, as one took the
  -- place of one that failed. If the flow is being cancelled, so is what was added.
  if cardinality(flows) > 0 then
    insert into stint.notes (jobs, flow)
      select array[a.oldest], a.flow from unnest(flows, oldest) as a(flow, oldest)
      where a.flow <> all (mine) and (select w.job from stint.waiting w where w.job = a.flow) is not null; -- a join may begin with all that waits
    update stint.waiting w set seen = least(w.seen, a.oldest), verdict = case when a.oldest > 0 then w.verdict else 0 end
      from unnest(flows, oldest) as a(flow, oldest) where w.job = a.flow and w.job = any (mine);
    update stint.cancellations c set down_to = null where c.job = any (flows);
  end if;
  select d.begun, d.unsure into begun, unsure
    from stint.decide(array(select unnest(mine) except select unnest(awaiting)), p_due) as d;
  -- Who adds leaves a note as well, so these wait for the next look from the beginning: no number is above noted.
  if cardinality(unsure) > 0 then
    insert into stint.notes (n, jobs) values (noted, unsure);
  end if;
end
$$;
