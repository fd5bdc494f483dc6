package sqlite

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// Jobs implements [store.Inspector]. A page costs what it shows and what it
// has to pass over; the filters by tag, by urn, by correlation id, by faulty, by what
// went wrong and by every state but completed look only at jobs that may fit, so
// that a long history costs them nothing.
func (s *Store) Jobs(ctx context.Context, f store.Filter) ([]stint.JobInfo, error) {
	text, args := jobsQuery(jobColumns, f)
	return reading(ctx, s, "list jobs", func(c *conn) ([]stint.JobInfo, error) {
		return readRows(c, func(j *stint.JobInfo, q *stmt) error { return s.scanJob(c, q, j) }, text, args...)
	})
}

// Find implements [store.Operator].
func (s *Store) Find(ctx context.Context, f store.Filter) ([]stint.ID, error) {
	text, args := jobsQuery("j.id", f)
	return collect(ctx, s, "find jobs", text, args, firstNumber[stint.ID])
}

// mayBe finds the jobs that may be in a state.
var mayBe = map[stint.State]string{
	stint.Scheduled: `select job from stint_waiting where why = 'scheduled'`,
	stint.Blocked:   `select job from stint_waiting where why = 'blocked'`,
	stint.Retrying:  `select job from stint_waiting where why = 'retrying'`,
	stint.Available: `select ifnull(e.job, e.pos) from (` + frontiersSQL + `) f
		cross join stint_entries e indexed by stint_entries_lane on e.lane = f.lane and e.pos > f.frontier`,
	stint.Running: `select ifnull(e.job, e.pos) from stint_beats b
		cross join stint_claims c indexed by stint_claims_engine on c.engine = b.token and c.serial >= b.low
		cross join stint_entries e indexed by stint_entries_lane on e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier
		where not exists (select 1 from stint_executions x where x.pos = e.pos)`,
	stint.Failed: `select ifnull(job, pos) from stint_executions indexed by stint_executions_rare
		where outcome <> 1 and outcome in (2, 5, 7) and final = 1`,
	stint.Cancelled: `select ifnull(job, pos) from stint_executions indexed by stint_executions_rare
		where outcome <> 1 and outcome in (6, 8) and final = 1
		union all select job from stint_cancellations`,
}

// frontiersSQL is the lanes that have entries, each with its frontier.
const frontiersSQL = `
with recursive lanes (lane) as (
  select min(lane) from stint_entries where lane >= 0
  union all
  select (select min(e.lane) from stint_entries e where e.lane > l.lane) from lanes l where l.lane is not null
)
select l.lane, ifnull((select c.frontier from stint_claims c where c.lane = l.lane order by c.n desc limit 1), 0) as frontier
from lanes l where l.lane is not null`

const correlatedSQL = `
select pos from stint_entries where correlation = ?
union all
select pos from stint_entries where pos = ? and job is null and correlation is null and cast(pos as text) = ?`

// jobsQuery lists jobs by falling ID.
func jobsQuery(columns string, f store.Filter) (text string, args []any) {
	where := []string{"true"}
	add := func(condition string, values ...any) {
		where, args = append(where, condition), append(args, values...)
	}
	if len(f.States) > 0 {
		add("j.state in (select value from json_each(?))", arrayOf(f.States))
	}
	if f.Kind != "" {
		add("j.kind = ?", f.Kind)
	}
	if f.Queue != "" {
		add("j.queue = ?", f.Queue)
	}
	if f.Tag != "" {
		add("j.id in (select job from stint_job_tags where tag = ?)", f.Tag)
	}
	if from, to, ok := f.URNRange(); ok {
		ids, values := "select pos from stint_entries where urn >= ?", []any{from}
		if to != "" {
			ids, values = ids+" and urn < ?", append(values, to)
		}
		if alone := (store.Filter{URN: f.URN, Before: f.Before, After: f.After, Limit: f.Limit}); reflect.DeepEqual(f, alone) {
			// Of many that fit only a page is looked up.
			ids, values = ids+" and pos < ? and pos > ? order by pos desc limit ?", append(values, int64(cmp.Or(f.Before, math.MaxInt64)), int64(f.After), max(0, cmp.Or(f.Limit, 100)))
		}
		add("j.id in ("+ids+")", values...)
	} else if f.URN != "" {
		add("j.id in (select ifnull(job, pos) from stint_entries where urn = ?)", f.URN)
	}
	if f.Schedule != "" {
		add("j.id in (select pos from stint_entries where schedule = ?)", f.Schedule)
	}
	if f.Flow != 0 {
		add("j.id in (select pos from stint_entries where flow = ?)", int64(f.Flow))
	}
	if f.Flows {
		add("j.id in (select flow from stint_flows)")
	}
	if f.Correlation != "" {
		id, _ := strconv.ParseInt(f.Correlation, 10, 64) // no job has 0
		add("j.id in ("+correlatedSQL+")", f.Correlation, id, f.Correlation)
	}
	if f.Faulty {
		where = append(where, "j.faulty", `j.id in (select job from stint_waiting indexed by stint_waiting_faulty where faulty is not null
			union all select job from stint_entries indexed by stint_entries_faulty where faulty is not null)`)
	}
	if f.NotRetried {
		add("not exists (select 1 from stint_entries n where n.recovered = j.id)")
	}
	if f.Before != 0 {
		add("j.id < ?", int64(f.Before))
	}
	if f.After != 0 {
		add("j.id > ?", int64(f.After))
	}
	waits := len(f.States) > 0
	for _, state := range f.States {
		waits = waits && (state == stint.Scheduled || state == stint.Retrying || state == stint.Blocked)
	}
	limit := max(0, cmp.Or(f.Limit, 100))
	if waits && shallow(f) {
		// What waits is found without a look at the log.
		ids := "select j.id from (select job as id, why as state, kind, queue, faulty is not null as faulty from stint_waiting" +
			" where not exists (select 1 from stint_cancellations k where k.job = stint_waiting.job and k.job not in (select flow from stint_flows))) j where " + strings.Join(where, " and ") + " order by j.id desc limit ?"
		return "select " + columns + " from stint_jobs j where j.id in (" + ids + ") order by j.id desc", append(args, limit)
	}
	if f.Source != "" {
		add("j.source = ?", f.Source)
	}
	between := func(column string, span store.TimeRange) {
		if !span.From.IsZero() {
			add("j."+column+" >= ?", ceilMicro(span.From))
		}
		if !span.To.IsZero() {
			add("j."+column+" < ?", ceilMicro(span.To))
		}
	}
	between("created", f.Created)
	between("due", f.Due)
	between("finished", f.Finished)
	if f.Longer > 0 {
		long := ""
		if f.Longer >= store.LongAttempt {
			long = "finished - started > 5000000 and " // what the index is of
		}
		add("j.id in (select ifnull(job, pos) from stint_executions where "+long+"finished - started > ?)", f.Longer.Microseconds())
	}
	if f.Attempts > 0 {
		// What is charged failed or was lost, and another attempt follows it.
		add("j.attempt > ?", f.Attempts)
		add(`j.id in (select ifnull(job, pos) from stint_executions indexed by stint_executions_rare
			where outcome <> 1 and outcome in (2, 5) and final = 0 and attempt >= ?)`, f.Attempts)
	}
	if f.Outcome == stint.OutcomeCompleted {
		add("j.state = 'completed'") // the last attempt of its job
	}
	if trouble, values := attempts(f); trouble != "" {
		add("j.id in ("+trouble+")", values...)
	} else if ids := candidates(f.States); ids != "" {
		add("j.id in (" + ids + ")")
	}
	return "select " + columns + " from stint_jobs j where " + strings.Join(where, " and ") + " order by j.id desc limit ?", append(args, limit)
}

// shallow reports whether a waiting row has all that a filter asks for.
func shallow(f store.Filter) bool {
	return f.Source == "" && f.Created.IsZero() && f.Due.IsZero() && f.Finished.IsZero() && f.Outcome == 0 && f.Class == "" && f.Error == "" && f.Attempts == 0 && f.Longer == 0
}

// candidates finds the jobs that may be in one of the states, where that is
// less than all.
func candidates(states []stint.State) string {
	var parts []string
	for _, state := range states {
		ids, ok := mayBe[state]
		if !ok {
			return ""
		}
		parts = append(parts, "select * from ("+ids+")")
	}
	return strings.Join(parts, " union all ")
}

// attempts finds the jobs with an attempt that did not complete them and ended
// in a certain way.
func attempts(f store.Filter) (text string, args []any) {
	var where []string
	add := func(condition string, value any) { where, args = append(where, condition), append(args, value) }
	if f.Outcome != 0 && f.Outcome != stint.OutcomeCompleted {
		add("outcome = ?", int(f.Outcome))
	}
	if f.Class != "" {
		add("? in (select error ->> '$.class' union all select value from json_each(error, '$.classes'))", f.Class)
	}
	if f.Error != "" {
		add("instr(error ->> '$.message', ?) > 0", f.Error)
	}
	if len(where) == 0 {
		return "", nil
	}
	return "select ifnull(job, pos) from stint_executions indexed by stint_executions_rare where outcome <> 1 and " + strings.Join(where, " and "), args
}
