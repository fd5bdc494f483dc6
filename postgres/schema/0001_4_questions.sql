-- stint: answers to the questions that jobs ask people.

-- Answer a question that a job asks, from any language: see the page about steps. It counts from the moment
-- that the transaction commits, and the first answer counts. The answer is when it was given.
create function stint.answer(job bigint, question text, choice text, by text default session_user, comment text default null, notify boolean default true)
returns timestamptz language plpgsql security definer
set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  h     record;
  q     record;
  clock timestamptz;
begin
  if answer.by is null or answer.by = '' or octet_length(answer.by) > 255 or answer.by ~ '[\u0001-\u001f\u007f-\u009f]|^[\s\u00a0]|[\s\u00a0]$' then
    raise exception 'stint: % is no name of somebody who answers', coalesce(quote_literal(answer.by), 'null')
      using errcode = '22023', hint = 'It is 1 to 255 bytes without control characters and without space at its ends.';
  elsif octet_length(answer.comment) > 4096 then
    raise exception 'stint: a comment has at most 4,096 bytes' using errcode = '22023';
  end if;
  -- Of several who answer the first one counts, for whom the others wait. An engine does not wait.
  select s.question, s.until, s.result into q from stint.steps s
    where s.job = answer.job and s.name = answer.question and (s.question ? 'job') is not true for no key update;
  clock := clock_timestamp();
  select u.state, u.ended into h from stint.unique_holder(answer.job) as u;
  if h.state is null then
    raise exception 'stint: there is no job %', answer.job using errcode = 'ST009';
  elsif q.question is not null and q.result ? 'choice' then
    raise exception 'stint: the question % of job % was answered by %: %', answer.question, answer.job, q.result->>'by', q.result->>'choice'
      using errcode = 'ST014', detail = q.result::text;
  elsif q.question is not null and q.result is not null then
    raise exception 'stint: the time to answer the question % of job % is over', answer.question, answer.job using errcode = 'ST015';
  elsif h.ended or h.state = 'cancelled' then
    raise exception 'stint: job % has ended', answer.job using errcode = 'ST010';
  elsif q.question is null then
    raise exception 'stint: job % asks no question %', answer.job, coalesce(answer.question, 'null') using errcode = 'ST013';
  elsif q.until <= clock then
    raise exception 'stint: the time to answer the question % of job % is over', answer.question, answer.job using errcode = 'ST015';
  elsif (q.question->'choices' ? answer.choice) is not true then
    raise exception 'stint: % is no choice of the question %', coalesce(quote_literal(answer.choice), 'null'), answer.question
      using errcode = 'ST016', detail = q.question->>'choices';
  end if;
  update stint.steps s set ended = clock,
      result = jsonb_strip_nulls(jsonb_build_object('choice', answer.choice, 'by', answer.by, 'comment', nullif(answer.comment, ''), 'at', clock))
    where s.job = answer.job and s.name = answer.question;
  insert into stint.notes (jobs) values (array[answer.job]);
  if answer.notify then
    perform pg_notify('stint', 'due ' || pg_current_xact_id());
  end if;
  return clock;
end
$$;
revoke execute on function stint.answer from public;
comment on function stint.answer is 'Answer a question that a job asks.';
