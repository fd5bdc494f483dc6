package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// oneSQL appends one job of the default policy that is ready at once, and rings
// in the same statement: most enqueues of most programs, and half of the way to
// a job's start on an idle engine.
const oneSQL = `
insert into stint.entries (lane, queue, priority, kind, args, timeout, urn, source, metadata, max_losses, correlation)
values ($1::bigint, $2::text, $3::smallint, $4::text, $5::text::jsonb, $6::bigint, $7::text, $8::text, $9::text::jsonb, $10::smallint, $11::text)
returning pos, case when $12::boolean then pg_notify('stint', 'work ' || pg_current_xact_id()) is null end`

// oneOfPolicySQL is the same with a policy, which is looked up.
const oneOfPolicySQL = `
insert into stint.entries (lane, queue, priority, kind, args, timeout, urn, source, metadata, max_losses, correlation, policy, retry)
select $1::bigint, $2::text, $3::smallint, $4::text, $5::text::jsonb, $6::bigint, $7::text, $8::text, $9::text::jsonb, $10::smallint, $11::text,
       p.id, case when p.id is null then $14::text::jsonb end
from (select $13::bigint as id) j left join stint.policies p on p.id = j.id
returning pos, case when $12::boolean then pg_notify('stint', 'work ' || pg_current_xact_id()) is null end`

// oneOfMoreSQL stores one job of which more is asked, with the parameters of uniqueSQL. That would be planned
// again for each call, which takes 1.5 ms where a unique key takes 0.1.
const oneOfMoreSQL = `
select s.job, s.job <> s.id, coalesce(s.same, true), false, coalesce(s.state, ''), coalesce(s.old, 0)
from stint.store_job(($3::bigint[])[1], ($4::text[])[1], ($5::smallint[])[1], ($6::text[])[1], ($7::text[])[1]::jsonb,
  ($1::bigint[])[($8::integer[])[1]], ($2::text[])[($8::integer[])[1]]::jsonb, ($9::bigint[])[1], ($10::text[])[1], ($11::text[])[1],
  ($12::text[])[1]::jsonb, ($13::smallint[])[1], ($14::text[])[1], ($15::text[])[1], ($16::timestamptz[])[1], ($17::bigint[])[1],
  ($18::text[])[1]::text[], ($19::timestamptz[])[1], ($20::bigint[])[1], ($21::text[])[1], ($22::text[])[1], $23::boolean) as s`

// enqueueSQL appends several jobs that are ready at once; each is its own first entry.
const enqueueSQL = `
with ` + dictSQL + `
insert into stint.entries (lane, queue, priority, kind, args, policy, retry, timeout, urn, source, metadata, max_losses, correlation, limits)
select j.lane, j.queue, j.priority, j.kind, j.args::jsonb, d.ids[j.policy], d.bodies[j.policy], j.timeout, j.urn, j.source, j.metadata::jsonb, j.max_losses, j.correlation, j.limits
from dict d, unnest($3::bigint[], $4::text[], $5::smallint[], $6::text[], $7::text[], $8::integer[],
            $9::bigint[], $10::text[], $11::text[], $12::text[], $13::smallint[], $14::text[], $15::text[])
  with ordinality as j(lane, queue, priority, kind, args, policy, timeout, urn, source, metadata, max_losses, correlation, limits, i)
order by j.i
returning pos, case when $16::boolean then (select pg_notify('stint', 'work ' || pg_current_xact_id())) is null end`

// dictSQL reads which of the batch's policies the database has, as this
// statement sees it. Of the others the whole text goes with the jobs.
const dictSQL = `dict as materialized (
  select array_agg(p.id order by d.i) as ids, array_agg(case when p.id is null then d.body::jsonb end order by d.i) as bodies
  from unnest($1::bigint[], $2::text[]) with ordinality as d(id, body, i)
  left join stint.policies p on p.id = d.id
)`

// scheduleSQL stores jobs of which some have a time, one to begin by, or tags.
// A job that is not yet due has its contents in the lane that no engine claims, and a waiting row.
// The materialised CTE fixes ids and due times once for all parts.
const scheduleSQL = `
with ` + dictSQL + `, job as materialized (
  select ` + draftSQL + `
  from dict d, unnest(` + columnsSQL + `) with ordinality as j(` + columnNames + `, i), (select clock_timestamp() as now) c
  order by j.i
), ` + storeSQL + `
select id from job order by i`

// keyedSQL is the same for jobs of which some have idempotency keys. It takes
// the keys first; what is not the first of its key is not stored, and nothing
// is when a key stands for something else.
const keyedSQL = `
with ` + dictSQL + `, draft as materialized (
  select ` + draftSQL + `, case when j.key is not null then stint.fingerprint(j.kind, j.args::jsonb) end as fingerprint
  from dict d, unnest(` + columnsSQL + `, $21::text[]) with ordinality as j(` + columnNames + `, key, i), (select clock_timestamp() as now) c
  order by j.i
), ` + takeKeysSQL + `, job as materialized (
  select d.* from draft d left join taken t using (key)
  where coalesce(t.job = d.id, true) and not exists (select from taken where not same)
), ` + storeSQL + `
select coalesce(t.job, d.id), coalesce(t.job <> d.id, false), coalesce(t.same, true), coalesce(t.fresh, false)
from draft d left join taken t using (key) order by d.i`

// uniqueSQL is the same for jobs of which some are unique. Their keys are taken after the idempotency
// keys, for those that are the first of theirs.
var uniqueSQL = `
with ` + dictSQL + `, draft as materialized (
  select ` + draftColumnsSQL + ` as wanted, case when j.key is not null then stint.fingerprint(j.kind, j.args::jsonb) end as fingerprint
  from dict d, unnest(` + columnsSQL + `, $21::text[], $22::text[]) with ordinality as j(` + columnNames + `, key, uniqueness, i), (select clock_timestamp() as now) c
  order by j.i
), ` + takeKeysSQL + `, alone as materialized (
  select t.* from (
    select array_agg(uniqueness order by i) as specs, array_agg(kind order by i) as kinds, array_agg(args::jsonb order by i) as args,
           array_agg(key order by i) as keys, array_agg(id order by i) as ids
    from draft d left join taken t using (key)
    where uniqueness is not null and coalesce(t.job = d.id, true) and not exists (select from taken where not same)) u,
    stint.take_unique(u.specs, u.kinds, u.args, u.keys, u.ids, $23::boolean) as t
), job as materialized (
  select d.*, case when u.due is null then d.wanted
    else nullif(greatest(case when d.uniqueness like '%,debounce:%' then least(coalesce(d.wanted, d.created), u.due) else u.due end, d.created), d.created) end as due
  from draft d left join taken t using (key) left join alone u on u.id = d.id
  where coalesce(t.job = d.id, true) and coalesce(u.job = d.id, true) and not exists (select from taken where not same)
), ` + storeUniqueSQL + `
select coalesce(u.job, t.job, d.id), coalesce(u.job, t.job, d.id) <> d.id, coalesce(t.same, true), coalesce(t.fresh, false),
       coalesce(case when u.state = 'new' then (select case when j.due is null then 'available' else 'scheduled' end from job j where j.id = u.job) else u.state end, ''),
       case when u.id = d.id then coalesce(u.old, 0) else 0 end
from draft d left join taken t using (key) left join alone u on u.id = coalesce(t.job, d.id) order by d.i`

const columnNames = `lane, queue, priority, kind, args, policy, timeout, urn, source, metadata, max_losses, correlation, limits, at, delay, tags, start_by, start_within`

const columnsSQL = `$3::bigint[], $4::text[], $5::smallint[], $6::text[], $7::text[], $8::integer[],
    $9::bigint[], $10::text[], $11::text[], $12::text[], $13::smallint[], $14::text[], $15::text[], $16::timestamptz[], $17::bigint[], $18::text[],
    $19::timestamptz[], $20::bigint[]`

// takeKeysSQL takes the idempotency keys of a draft.
const takeKeysSQL = `taken as materialized (
  select t.* from (
    select array_agg(key order by i) as keys, array_agg(fingerprint order by i) as fingerprints, array_agg(id order by i) as ids
    from draft where key is not null) k, stint.take_keys(k.keys, k.fingerprints, k.ids) as t
)`

const draftSQL = draftColumnsSQL + ` as due`

const draftColumnsSQL = `j.*, d.ids[j.policy] as known, d.bodies[j.policy] as retry, nextval('stint.positions') as id, c.now as created,
         case when j.at > c.now then j.at when j.delay > 0 then c.now + j.delay * interval '1 microsecond' end`

// storeSQL stores the rows of job.
const storeSQL = `body as (
  insert into stint.entries (pos, created, lane, queue, priority, kind, args, due, policy, retry, timeout, tags, urn, source, metadata, max_losses, correlation, limits, start_by)
  select id, created, case when due is null then lane else -1 end, queue, priority, kind, args::jsonb, due, known, retry,
         timeout, tags::text[], urn, source, metadata::jsonb, max_losses, correlation, limits,
         case when start_by is not null then stint.start_by(start_by, due) else coalesce(due, created) + start_within * interval '1 microsecond' end
  from job order by i
), wait as (
  insert into stint.waiting (job, due, body, why, attempt, priority, queue, kind, limits)
  select id, due, id, 'scheduled', 1, priority, queue, kind, limits from job where due is not null
), label as (
  insert into stint.job_tags (tag, job) select unnest(tags::text[]), id from job
)`

// storeUniqueSQL is the same with what is said of uniqueness.
var storeUniqueSQL = strings.NewReplacer("limits, start_by)", "limits, start_by, uniqueness)",
	"interval '1 microsecond' end\n", "interval '1 microsecond' end, uniqueness\n").Replace(storeSQL)

// notifySQL wakes all loops of all engines, notifyWorkSQL the claim stages of a few, and notifyDueSQL those that look for what is
// due (see newsOf).
const (
	notifySQL     = `select pg_notify('stint', '')`
	notifyWorkSQL = `select pg_notify('stint', 'work ' || pg_current_xact_id())`
	notifyDueSQL  = `select pg_notify('stint', 'due ' || pg_current_xact_id())`
)

// Enqueue implements [stint.Enqueuer].
func (s *Store) Enqueue(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.Receipt, error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	known, err := s.storePolicies(ctx, tx, jobs)
	if err != nil {
		return nil, fmt.Errorf("store retry policies: %w", err)
	}
	limits, err := limitsOf(jobs)
	if err != nil {
		return nil, fmt.Errorf("enqueue %d jobs: %w", len(jobs), err)
	}
	large := copyable(tx, jobs)
	inFlow := jobs[0].Member != nil
	ring := !tx.Quiet
	if ring && tx.Handle == nil {
		ring = s.notifier.begin() && !large // which would ring before it commits
		// Whatever becomes of it, it may have committed. Who sleeps until a
		// job is due does not say so.
		defer s.notifier.end(ring, slices.ContainsFunc(jobs, scheduled))
	}
	if large {
		receipts, err := s.enqueueCopied(ctx, tx, jobs, limits, known, ring)
		if err != nil {
			return nil, fmt.Errorf("enqueue %d jobs: %w", len(jobs), err)
		}
		return receipts, nil
	}
	a := answer{jobs: jobs, receipts: make([]stint.Receipt, 0, len(jobs))}
	stmts, columns := s.enqueueStatements(jobs, limits, known, ring)
	if inFlow {
		if stmts[0], err = flowStatement(s.sql.in(storeFlowSQL), jobs, limits, known); err != nil {
			return nil, err
		}
	}
	if columns == uniqueColumns {
		stmts[0].args = append(stmts[0].args, tx.Handle == nil)
		if !ring && !tx.Quiet && slices.ContainsFunc(jobs, cancelsOld) {
			stmts = append(stmts, statement{s.sql.notify, nil}) // a handler is to stop
		}
	}
	switch scan := a.reader(columns); {
	case tx.Handle != nil:
		err = runIn(ctx, tx, stmts, scan)
	case inFlow, slices.ContainsFunc(jobs, keyed):
		err = runCommitted(ctx, s.pool, stmts, scan)
	default:
		err = spoken(ctx, s.pool, func(c *pgxpool.Conn) error { return runBatch(ctx, c, stmts, scan) })
	}
	if err = cmp.Or(err, a.conflict); err != nil {
		return nil, fmt.Errorf("enqueue %d jobs: %w", len(jobs), err)
	}
	return a.receipts, nil
}

// answer collects what the statements say of each job.
type answer struct {
	jobs     []stint.NewJob
	receipts []stint.Receipt
	conflict error // of the first key that stands for something else
}

// reader reads rows that begin with an id.
func (a *answer) reader(columns int) func(row func(...any) error) error {
	switch columns {
	case keyedColumns:
		return a.scanKeyed
	case uniqueColumns:
		return a.scanUnique
	}
	var id int64
	into := []any{&id, new(any)}[:columns]
	return func(row func(...any) error) error {
		err := row(into...)
		a.receipts = append(a.receipts, stint.Receipt{ID: stint.ID(id)})
		return err
	}
}

// keyedColumns is how many columns keyedSQL answers with, and uniqueColumns uniqueSQL and oneOfMoreSQL;
// others have fewer.
const (
	keyedColumns  = 4
	uniqueColumns = 6
)

// scanUnique reads what uniqueSQL and oneOfMoreSQL answer.
func (a *answer) scanUnique(row func(...any) error) error {
	var state stint.State
	var old stint.ID
	err := a.scanKeyed(func(into ...any) error { return row(append(into, (*string)(&state), (*int64)(&old))...) })
	if err != nil {
		return err
	}
	i := len(a.receipts) - 1
	a.receipts[i].State = state
	if cancelsOld(a.jobs[i]) {
		a.receipts[i].Cancelled = old
	} else {
		a.receipts[i].Replaced = old
	}
	return nil
}

// scanKeyed reads what keyedSQL answers.
func (a *answer) scanKeyed(row func(...any) error) error {
	var r stint.Receipt
	var same, fresh bool
	if err := row((*int64)(&r.ID), &r.Duplicate, &same, &fresh); err != nil {
		return err
	}
	if !same && a.conflict == nil {
		conflict := &stint.KeyConflictError{Key: a.jobs[len(a.receipts)].IdempotencyKey, ID: r.ID}
		if fresh {
			conflict.ID = 0
		}
		a.conflict = conflict
	}
	a.receipts = append(a.receipts, r)
	return nil
}

// enqueueStatements are what enqueues jobs and rings if asked. The first
// answers for each job, in so many columns.
func (s *Store) enqueueStatements(jobs []stint.NewJob, limits []string, known dictionary, ring bool) (stmts []statement, columns int) {
	if len(jobs) == 1 && limits == nil && plain(&jobs[0]) {
		args := oneArgs(jobs[0], ring)
		if known.ids == nil {
			return []statement{{s.sql.one, args}}, 2
		}
		return []statement{{s.sql.oneOfPolicy, append(args, known.ids[0], known.bodies[0])}}, 2
	}
	if jobs[0].Member != nil {
		stmts = []statement{{}} // see Enqueue
		switch {
		case ring && slices.ContainsFunc(jobs, cancelsOld):
			stmts = append(stmts, statement{s.sql.notify, nil}) // handlers are to stop
		case ring:
			stmts = append(stmts, statement{s.sql.notifyWork, nil}, statement{s.sql.notifyDue, nil})
		}
		return stmts, uniqueColumns
	}
	text, args := s.enqueueArgs(jobs, limits, known)
	if text == s.sql.enqueue {
		return []statement{{text, append(args, ring)}}, 2
	}
	stmts = []statement{{text, args}}
	switch {
	case ring && slices.ContainsFunc(jobs, cancelsOld):
		stmts = append(stmts, statement{s.sql.notify, nil})
	case ring:
		if slices.ContainsFunc(jobs, scheduled) {
			stmts = append(stmts, statement{s.sql.notifyDue, nil})
		}
		if slices.ContainsFunc(jobs, func(j stint.NewJob) bool { return !scheduled(j) }) {
			stmts = append(stmts, statement{s.sql.notifyWork, nil})
		}
	}
	switch text {
	case s.sql.keyed:
		return stmts, keyedColumns
	case s.sql.unique, s.sql.oneOfMore:
		return stmts, uniqueColumns
	}
	return stmts, 1
}

// scheduled tells whether a job may have to wait for its time.
func scheduled(j stint.NewJob) bool { return j.Delay > 0 || !j.RunAt.IsZero() }

// cancelsOld tells whether a job may cancel one that runs.
func cancelsOld(j stint.NewJob) bool { return strings.HasSuffix(j.Unique, ","+string(stint.CancelOld)) }

// limitsOf are the limits of jobs, as entries keep them; nil if no job has any.
func limitsOf(jobs []stint.NewJob) (limits []string, err error) {
	for i := range jobs {
		if len(jobs[i].Limits) == 0 {
			continue
		}
		if limits == nil {
			limits = make([]string, len(jobs))
		}
		if limits[i], err = jobs[i].LimitKeys(); err != nil {
			return nil, err
		}
	}
	return limits, nil
}

// plain tells whether a job is its own entry and nothing else.
func plain(j *stint.NewJob) bool {
	return j.Member == nil && j.Delay <= 0 && j.RunAt.IsZero() && j.StartWithin <= 0 && j.StartBy.IsZero() && len(j.Tags) == 0 && j.IdempotencyKey == "" && j.Unique == ""
}

// oneArgs returns the parameters of oneSQL. Options that are not set are null.
func oneArgs(j stint.NewJob, ring bool) []any {
	args := make([]any, 12, 14)
	args[0], args[1], args[2], args[3] = int64(store.LaneOf(j.Queue, j.Priority, store.PartNormal, "").ID), j.Queue, int16(j.Priority), j.Kind
	args[4], args[6], args[7], args[8], args[10] = string(j.Args), orNull(j.URN), orNull(j.Source), orNull(string(j.Metadata)), orNull(j.Correlation)
	args[11] = ring
	if j.Timeout > 0 {
		args[5] = j.Timeout.Milliseconds()
	}
	if j.MaxLosses != nil {
		args[9] = int16(*j.MaxLosses)
	}
	return args
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// enqueueArgs chooses the statement that stores jobs, with what it takes.
func (s *Store) enqueueArgs(jobs []stint.NewJob, limits []string, known dictionary) (string, []any) {
	c := columnsOf(jobs, limits, known)
	switch {
	case len(jobs) == 1:
		return s.sql.oneOfMore, append(c.all(known), c.keys.column, c.unique.column)
	case c.unique.column != nil:
		return s.sql.unique, append(c.all(known), c.keys.column, c.unique.column)
	case c.keys.column != nil:
		return s.sql.keyed, append(c.all(known), c.keys.column)
	case c.at.column != nil, c.delay.column != nil, c.tags.column != nil, c.startBy.column != nil, c.startWithin.column != nil:
		return s.sql.schedule, c.all(known)
	}
	return s.sql.enqueue, c.always(known)
}

// batchColumns are jobs by columns. Columns without a value are sent as null.
type batchColumns struct {
	lane                                           []int64
	queue, kind, args                              []string
	priority                                       []int16
	policy                                         sparse[int32]
	timeout, delay, startWithin                    sparse[int64]
	losses                                         sparse[int16]
	urn, source, metadata, correlation, tags, keys sparse[string]
	unique, limits                                 sparse[string]
	at, startBy                                    sparse[time.Time]
}

func columnsOf(jobs []stint.NewJob, limits []string, known dictionary) *batchColumns {
	n := len(jobs)
	c := &batchColumns{lane: make([]int64, n), queue: make([]string, n), priority: make([]int16, n), kind: make([]string, n), args: make([]string, n)}
	lanes := lanes{}
	for i, j := range jobs {
		if limits != nil {
			c.limits.setText(n, i, limits[i])
		}
		c.lane[i] = lanes.of(limits, &j, i)
		c.queue[i], c.priority[i], c.kind[i], c.args[i] = j.Queue, int16(j.Priority), j.Kind, string(j.Args)
		if place := known.place(j.Retry); place > 0 {
			c.policy.set(n, i, place)
		}
		if j.Timeout > 0 {
			c.timeout.set(n, i, j.Timeout.Milliseconds())
		}
		if j.MaxLosses != nil {
			c.losses.set(n, i, int16(*j.MaxLosses))
		}
		if j.Delay > 0 {
			c.delay.set(n, i, max(1, j.Delay.Microseconds()))
		}
		if !j.RunAt.IsZero() {
			c.at.set(n, i, j.RunAt)
		}
		if j.StartWithin > 0 {
			c.startWithin.set(n, i, j.StartWithin.Microseconds())
		}
		if !j.StartBy.IsZero() {
			c.startBy.set(n, i, j.StartBy)
		}
		if len(j.Tags) > 0 {
			c.tags.set(n, i, arrayText(j.Tags))
		}
		c.urn.setText(n, i, j.URN)
		c.source.setText(n, i, j.Source)
		c.metadata.setText(n, i, string(j.Metadata))
		c.correlation.setText(n, i, j.Correlation)
		c.keys.setText(n, i, j.IdempotencyKey)
		c.unique.setText(n, i, j.Unique)
	}
	return c
}

// always are the columns of enqueueSQL.
func (c *batchColumns) always(known dictionary) []any {
	return []any{known.ids, known.bodies, c.lane, c.queue, c.priority, c.kind, c.args, c.policy.column,
		c.timeout.column, c.urn.column, c.source.column, c.metadata.column, c.losses.column, c.correlation.column, c.limits.column}
}

// all are the columns of dictSQL and columnsSQL.
func (c *batchColumns) all(known dictionary) []any {
	return append(c.always(known), c.at.column, c.delay.column, c.tags.column, c.startBy.column, c.startWithin.column)
}

// lanes are those of a batch, each computed once.
type lanes map[laneKey]int64

type laneKey struct {
	queue    string
	priority int
	limits   string
}

// of is the lane of the job at a place of the batch, of whose jobs the limits are nil if none has any.
func (l lanes) of(limits []string, j *stint.NewJob, i int) int64 {
	key := laneKey{queue: j.Queue, priority: j.Priority}
	if limits != nil {
		key.limits = limits[i]
	}
	id, ok := l[key]
	if !ok {
		id = int64(store.LimitedLane(j.Queue, j.Priority, store.PartNormal, "", key.limits).ID)
		l[key] = id
	}
	return id
}

// sparse is a column that stays nil until a value is set.
type sparse[T any] struct{ column []*T }

func (c *sparse[T]) set(n, i int, v T) {
	if c.column == nil {
		c.column = make([]*T, n)
	}
	c.column[i] = &v
}

func (c *sparse[T]) setText(n, i int, v T) {
	if any(v) != any("") {
		c.set(n, i, v)
	}
}

// arrayText is the text form of an array of strings.
func arrayText(values []string) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, v := range values {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('"')
		b.WriteString(arrayEscaper.Replace(v))
		b.WriteByte('"')
	}
	b.WriteByte('}')
	return b.String()
}

var arrayEscaper = strings.NewReplacer(`\`, `\\`, `"`, `\"`)
