package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Jobs implements [store.Inspector].
func (s *Store) Jobs(ctx context.Context, f store.Filter) ([]stint.JobInfo, error) {
	few, err := s.few(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	text, args := jobsQuery(jobColumns, f, few)
	list, err := page(ctx, s, text, args, func(row pgx.CollectableRow) (stint.JobInfo, error) { return scanJob(row) })
	if err != nil {
		return nil, fmt.Errorf("list jobs: %w", err)
	}
	return list, nil
}

// Find implements [store.Operator].
func (s *Store) Find(ctx context.Context, f store.Filter) ([]stint.ID, error) {
	few, err := s.few(ctx, f)
	if err != nil {
		return nil, fmt.Errorf("find jobs: %w", err)
	}
	text, args := jobsQuery("j.id", f, few)
	list, err := page(ctx, s, text, args, pgx.RowTo[stint.ID])
	if err != nil {
		return nil, fmt.Errorf("find jobs: %w", err)
	}
	return list, nil
}

// fewJobs is up to how many jobs are looked at that may be available, or whose URN begins with
// a text. With more of them a walk from the newest job on finds some soon.
const fewJobs = 20_000

// few reports whether few jobs have a URN in the filter's range or, without one, are available,
// where that decides how to look.
func (s *Store) few(ctx context.Context, f store.Filter) (few bool, err error) {
	args := []any{fewJobs + 1}
	value := func(v any) string { args = append(args, v); return fmt.Sprintf("$%d", len(args)) }
	of := mayBe[stint.Available]
	if _, _, ok := f.URNRange(); ok {
		of = "select from stint.entries e where " + about(f, "e", value)
	} else if !slices.Contains(f.States, stint.Available) || rare(f, func(any) string { return "null" }, true) == "" {
		return false, nil
	}
	counts, err := page(ctx, s, "select count(*) from ("+of+" limit $1) a", args, pgx.RowTo[int64])
	return len(counts) == 1 && counts[0] <= fewJobs, err
}

// about is the condition on the URN of an entry, or of a job; empty without one.
func about(f store.Filter, of string, value func(v any) string) string {
	from, to, ok := f.URNRange()
	switch {
	case f.URN == "":
		return ""
	case !ok:
		return of + ".urn = " + value(f.URN)
	case to == "":
		return of + ".urn >= " + value(from)
	}
	return of + ".urn >= " + value(from) + " and " + of + ".urn < " + value(to)
}

func page[V any](ctx context.Context, s *Store, text string, args []any, scan pgx.RowToFunc[V]) (list []V, err error) {
	batch := &pgx.Batch{}
	batch.Queue(pageSQL)
	batch.Queue(s.sql.in(text), args...).Query(func(rows pgx.Rows) (err error) {
		list, err = pgx.CollectRows(rows, scan)
		return err
	})
	return list, translate(s.pool.SendBatch(ctx, batch).Close())
}

// pageSQL lets a page of jobs be found by keys only. Without fresh statistics
// the planner would hash the whole log for 50 rows of it. It holds for the
// transaction that it is sent in, together with the query.
const pageSQL = `select set_config(name, 'off', true)
from unnest('{enable_hashjoin,enable_mergejoin,enable_seqscan,enable_bitmapscan,jit}'::text[]) as name`

// mayBe finds the jobs that may be in a state, where that is less than all, in
// the order of an index. Each is in it once.
var mayBe = map[stint.State]string{
	stint.Scheduled: `select w.job as id from stint.waiting w where w.why = 'scheduled'`,
	stint.Blocked:   `select w.job as id from stint.waiting w where w.why = 'blocked'`,
	stint.Retrying:  `select w.job as id from stint.waiting w where w.why = 'retrying'`,
	stint.Available: `select coalesce(e.job, e.pos) as id from stint.lanes() f cross join lateral (
		select l.job, l.pos from stint.entries l where l.lane = f.lane and (l.xid, l.pos) > (f.xid, f.pos)
		union all
		select l.job, l.pos from unnest(f.pending_xid, f.pending_pos) as p(xid, pos)
		cross join lateral (select * from stint.entries l where l.lane = f.lane and l.xid = p.xid and l.pos > p.pos offset 0) l
	) e`,
	stint.Running: `select c.job as id from stint.claimed c`,
	stint.Failed:  `select coalesce(x.job, x.pos) as id from stint.executions x where x.final and x.outcome in (2, 5, 7)`,
	stint.Cancelled: `select coalesce(x.job, x.pos) as id from stint.executions x where x.final and x.outcome in (6, 8)
		union all select k.job as id from stint.cancellations k
		  where not exists (select from stint.executions x where x.pos = k.job and x.final and x.job is null)
		    and not exists (select from stint.executions x where x.job = k.job and x.final)`,
}

// jobsQuery lists jobs by falling ID. Where the filter names something that is
// rare, or may be (few says so of available jobs), it starts from there and looks
// the jobs up; otherwise it walks them from the newest on.
func jobsQuery(columns string, f store.Filter, few bool) (text string, args []any) {
	var where []string
	value := func(v any) string {
		args = append(args, v)
		return fmt.Sprintf("$%d", len(args))
	}
	add := func(condition string, v any) { where = append(where, fmt.Sprintf(condition, value(v))) }
	equal := func(column, v string) {
		if v != "" {
			add("j."+column+" = %s", v)
		}
	}
	within := func(column string, span store.TimeRange) {
		if !span.From.IsZero() {
			add("j."+column+" >= %s", span.From)
		}
		if !span.To.IsZero() {
			add("j."+column+" < %s", span.To)
		}
	}
	equal("queue", f.Queue)
	if f.Faulty {
		where = append(where, "j.faulty")
	}
	if f.NotRetried {
		where = append(where, "not exists (select from stint.entries n where n.recovered = j.id)")
	}
	within("created", f.Created)
	within("due", f.Due)
	within("finished", f.Finished)
	if f.Attempts > 0 {
		add("j.attempt > %s", f.Attempts)
	}
	if f.Longer > 0 {
		longer := value(f.Longer) + "::interval"
		where = append(where, "(exists (select from stint.executions x where x.pos = j.id and x.finished - x.started > "+longer+
			") or exists (select from stint.executions x where x.job = j.id and x.finished - x.started > "+longer+"))")
	}
	if f.Outcome == stint.OutcomeCompleted {
		where = append(where, "j.state = 'completed'") // the last attempt of its job
	}
	if f.Tag != "" {
		// An array, read first: planned as a join it may come last.
		add("j.id = any (array(select t.job from stint.job_tags t where t.tag = %s))", f.Tag)
	}
	if f.Schedule != "" {
		add("j.id = any (array(select e.pos from stint.entries e where e.schedule = %s))", f.Schedule)
	}
	if f.Flow != 0 {
		add("j.id = any (array(select e.pos from stint.entries e where e.flow = %s))", f.Flow)
	}
	if f.Flows {
		where = append(where, "j.is_flow")
	}
	if f.Correlation != "" {
		id, _ := strconv.ParseInt(f.Correlation, 10, 64) // no job has 0
		correlation := value(f.Correlation)
		where = append(where, "j.correlation = "+correlation, "j.id = any (array(select e.pos from stint.entries e where e.correlation = "+
			correlation+") || "+value(id)+"::bigint)")
	}
	from, id := "stint.jobs j", "j.id"
	rare := rare(f, value, few)
	if len(f.States) > 0 && (rare == "" || !settled(f)) {
		add("j.state = any (%s)", f.States)
	}
	if begin := beginning(f, value, few); rare == "" && begin != "" {
		rare, f.URN = begin, ""
	}
	own := entered(f, value)
	switch {
	case rare != "":
		// What never changes is asked of the job's entry alone: where nothing
		// fits, every job that may is looked at, and the view costs more.
		if len(own) > 0 {
			rare = "select r.id from (" + rare + ") r where (select " + strings.Join(own, " and ") + " from stint.entries j where j.pos = r.id)"
		}
		// Offset 0 keeps the planner from turning it round, which it does
		// without statistics: then it walks all jobs in search of a few.
		from = "(select r.id from (" + rare + ") r order by r.id desc offset 0) "
		if columns == "j.id" && len(where) == 0 {
			// All that is asked of a job is known: it is looked up only because it may be on its way out.
			from += "j where exists (select from stint.entries e where e.pos = j.id)"
			break
		}
		from += "f cross join lateral (select * from stint.jobs j where j.id = f.id offset 0) j"
		id = "f.id"
	default:
		where = append(where, own...)
		if f.Before != 0 {
			add("j.id < %s", f.Before)
		}
		if f.After != 0 {
			add("j.id > %s", f.After)
		}
	}
	text = "select " + columns + " from " + from
	if len(where) > 0 {
		text += " where " + strings.Join(where, " and ")
	}
	return text + " order by " + id + " desc limit " + value(cmp.Or(f.Limit, 100)), args
}

// entered are conditions on what a job's entry says for ever, which the view
// shows under the same names.
func entered(f store.Filter, value func(v any) string) (conditions []string) {
	for _, c := range [...]struct{ column, want string }{{"kind", f.Kind}, {"source", f.Source}} {
		if c.want != "" {
			conditions = append(conditions, "j."+c.column+" = "+value(c.want))
		}
	}
	if urn := about(f, "j", value); urn != "" {
		conditions = append(conditions, urn)
	}
	return conditions
}

// rare is the query of the jobs that may fit, each once, or nothing where these
// could be all.
func rare(f store.Filter, value func(v any) string, few bool) string {
	if trouble := attempts(f, value); trouble != "" {
		return "select distinct coalesce(x.job, x.pos) as id from stint.executions x where x.outcome <> 1" + trouble + bounds(f, "coalesce(x.job, x.pos)", value)
	}
	if f.Longer >= store.LongAttempt {
		// The first condition is the index's.
		return "select distinct coalesce(x.job, x.pos) as id from stint.executions x where x.finished - x.started > interval '5 seconds'" +
			" and x.finished - x.started > " + value(f.Longer) + "::interval" + bounds(f, "coalesce(x.job, x.pos)", value)
	}
	if f.Attempts > 0 {
		// What is charged failed or was lost, and another attempt follows it.
		return "select distinct coalesce(x.job, x.pos) as id from stint.executions x where x.outcome in (2, 5)" +
			" and not x.final and x.attempt >= " + value(f.Attempts) + bounds(f, "coalesce(x.job, x.pos)", value)
	}
	if f.Faulty {
		// A job has been faulty in several places, and it may have ended since.
		return between("select w.job as id from stint.waiting w where w.faulty union select e.job from stint.entries e where e.faulty", f, value)
	}
	if f.Tag != "" || f.URN != "" || f.Correlation != "" || f.Schedule != "" || f.Flow != 0 {
		return ""
	}
	if f.Flows {
		return "select w.flow as id from stint.flows w where true" + bounds(f, "w.flow", value)
	}
	if len(f.States) == 0 {
		return ""
	}
	if slices.Equal(f.States, []stint.State{stint.Completed}) {
		// In the order of two indexes, which are merged as far as a page wants:
		// each by itself, or both would be sorted. Together with other states all
		// of it would be.
		return "select * from (select x.pos as id from stint.executions x where x.job is null and x.outcome = 1" + bounds(f, "x.pos", value) +
			" order by x.pos desc offset 0) first union all select * from (select x.job as id from stint.executions x where x.job is not null and x.outcome = 1" +
			bounds(f, "x.job", value) + " order by x.job desc offset 0) later"
	}
	var parts []string
	marked := slices.Contains(f.States, stint.Cancelled) // those with a marker are found by that
	for _, state := range slices.Compact(slices.Sorted(slices.Values(f.States))) {
		part, ok := mayBe[state]
		if !ok || state == stint.Available && !few {
			return ""
		}
		if marked && !state.Final() {
			part = "select r.id from (" + part + ") r where not exists (select from stint.cancellations k where k.job = r.id)"
		}
		parts = append(parts, part)
	}
	return between(strings.Join(parts, " union all "), f, value)
}

// settled reports whether all that rare finds are in the filter's state: what failed or completed stays so.
func settled(f store.Filter) bool {
	if len(f.States) != 1 || f.States[0] != stint.Failed && f.States[0] != stint.Completed {
		return false
	}
	f.States = nil
	return rare(f, func(any) string { return "null" }, true) == "" // nothing else leads to them
}

// beginning is the query of the jobs whose URN begins with a text, if nothing else that the filter
// names leads to fewer: from the newest on by the key of the entries, unless few of them fit.
func beginning(f store.Filter, value func(v any) string, few bool) string {
	if _, _, ok := f.URNRange(); !ok || f.Tag != "" || f.Correlation != "" || f.Schedule != "" || f.Flow != 0 {
		return ""
	}
	ids := "select e.pos as id from stint.entries e where " + about(f, "e", value) + bounds(f, "e.pos", value)
	if few {
		return "select u.id from unnest(array(" + ids + ")) as u(id)"
	}
	return ids
}

// between takes of a query's ids those between the filter's two.
func between(query string, f store.Filter, value func(v any) string) string {
	if f.Before == 0 && f.After == 0 {
		return query
	}
	return "select r.id from (" + query + ") r where true" + bounds(f, "r.id", value)
}

// bounds are the conditions that lead to a page.
func bounds(f store.Filter, id string, value func(v any) string) (conditions string) {
	if f.Before != 0 {
		conditions += " and " + id + " < " + value(f.Before)
	}
	if f.After != 0 {
		conditions += " and " + id + " > " + value(f.After)
	}
	return conditions
}

// attempts are conditions on an execution that did not complete its job.
func attempts(f store.Filter, value func(v any) string) (conditions string) {
	if f.Outcome != 0 && f.Outcome != stint.OutcomeCompleted {
		conditions += " and x.outcome = " + value(int16(f.Outcome))
	}
	if f.Class != "" {
		class := value(f.Class)
		conditions += " and (x.error ->> 'class' = " + class + " or x.error -> 'classes' ? " + class + ")"
	}
	if f.Error != "" {
		conditions += " and strpos(x.error ->> 'message', " + value(f.Error) + ") > 0"
	}
	return conditions
}
