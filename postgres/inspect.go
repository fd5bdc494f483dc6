package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// A timeout is stored in milliseconds.
var jobColumns = strings.Replace(rows.JobColumns, "j.timeout", "j.timeout * 1000", 1) + ", j.retry"

// Job implements [store.Inspector].
func (s *Store) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	jobs, err := s.show(ctx, "j.id = $1", id)
	if err != nil {
		return nil, fmt.Errorf("show job %d: %w", id, err)
	} else if len(jobs) == 0 {
		return nil, fmt.Errorf("%w with id %d", stint.ErrNotFound, id)
	}
	return jobs[0], nil
}

// show shows the jobs that fit a condition, with their executions. It is one
// statement, so all of it tells of one moment.
func (s *Store) show(ctx context.Context, where string, arg any) ([]*stint.JobInfo, error) {
	list, err := s.pool.Query(ctx, s.sql.in(`
		select `+jobColumns+`, (
		  select json_agg(x order by x.pos) from (
		    select x.pos, x.attempt, stint.outcome_name(x.outcome) as outcome, x.final, x.reason, x.started, x.finished, x.engine::text as engine,
		           h.instance, h.host, h.pid, x.slot, x.result, x.error
		    from stint.executions x left join stint.engine_history h on h.token = x.engine
		    where x.pos = j.id or x.job = j.id) x),
		  (select max(e.pos) from stint.entries e where e.recovered = j.id)
		from stint.jobs j where `+where), arg)
	if err != nil {
		return nil, translate(err)
	}
	jobs, err := pgx.CollectRows(list, func(row pgx.CollectableRow) (*stint.JobInfo, error) {
		var (
			text []byte
			next stint.ID
		)
		job, err := scanJob(row, &text, &next)
		if err == nil {
			job.RetriedAs = next
			job.Attempts, err = decodeExecutions(text)
			store.ShowCancelled(&job)
		}
		return &job, err
	})
	return jobs, translate(err)
}

func decodeExecutions(text []byte) (list []stint.Attempt, err error) {
	if text != nil {
		err = json.Unmarshal(text, &list)
	}
	for i := range list {
		if string(list[i].Result) == "null" {
			list[i].Result = nil
		}
		list[i].Derive()
	}
	return list, err
}

// scanJob reads jobColumns and what the caller selected after them.
func scanJob(row pgx.CollectableRow, more ...any) (j stint.JobInfo, err error) {
	var policy []byte
	if err = scan(row, slices.Concat(rows.Job(&j), []any{&policy}, more)...); err != nil {
		return j, err
	}
	var p retry.Policy
	if policy != nil && json.Unmarshal(policy, &p) != nil {
		j.Retry = string(policy) // show what is there
	} else {
		j.Retry = p.String()
	}
	return j, nil
}

// Counts implements [store.Inspector].
func (s *Store) Counts(ctx context.Context) (map[stint.State]int64, error) {
	type count struct {
		State stint.State
		N     int64
	}
	all, err := collect(ctx, s.pool, "count jobs", s.sql.in(`select state, count(*) from stint.jobs group by state`), nil, pgx.RowToStructByPos[count])
	counts := map[stint.State]int64{}
	for _, c := range all {
		counts[c.State] = c.N
	}
	return counts, err
}

// aheadSQL counts what is between the frontier of a job's lane and its entry.
const aheadSQL = `
	select count(a.*) from stint.jobs j
	join stint.entries v on v.pos = j.pos
	cross join lateral stint.frontier(v.lane) f
	cross join lateral (
	  select e.pos from stint.entries e
	  where e.lane = v.lane and (e.xid, e.pos) > (f.xid, f.pos) and (e.xid, e.pos) < (v.xid, v.pos)
	  order by e.xid, e.pos limit $2) a
	where j.id = $1 and j.state = 'available'`

// Ahead implements [store.Inspector].
func (s *Store) Ahead(ctx context.Context, id stint.ID, most int) (int, error) {
	all, err := collect(ctx, s.pool, "count jobs", s.sql.in(aheadSQL), []any{id, most}, pgx.RowTo[int])
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// Kinds implements [store.Inspector].
func (s *Store) Kinds(ctx context.Context) ([]stint.KindInfo, error) {
	return collect(ctx, s.pool, "list kinds", s.sql.in(`select kind, `+kindColumns+` from stint.kinds order by kind`), nil,
		func(row pgx.CollectableRow) (d stint.KindInfo, err error) {
			err = scan(row, rows.Kind(&d)...)
			return d, err
		})
}

// The times of a kind are stored in milliseconds too.
var kindColumns = strings.NewReplacer("timeout", "timeout * 1000", "start_within", "start_within * 1000").Replace(rows.KindColumns)

var _ store.Awaiter = (*Store)(nil)

// endedSQL chooses those jobs that may have ended or are gone, by keys alone: the
// view, which tells exactly, is asked about those only. A job has ended with a final
// execution; one that is cancelled may have ended by its marker.
const endedSQL = `
	select a.id from unnest($1::bigint[]) as a(id)
	where exists (select from stint.executions x where x.pos = a.id and x.final)
	   or exists (select from stint.executions x where x.job = a.id and x.final)
	   or exists (select from stint.cancellations k where k.job = a.id)
	   or not exists (select from stint.entries e where e.pos = a.id and e.job is null)`

// Await implements [store.Awaiter].
func (s *Store) Await(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	return s.waits.Await(ctx, id)
}

// ended returns those of the jobs that ended; nil for those that do not exist.
func (s *Store) ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(endedSQL), ids)
	if err != nil {
		return nil, translate(err)
	}
	maybe, err := pgx.CollectRows(rows, pgx.RowTo[stint.ID])
	if err != nil || len(maybe) == 0 {
		return nil, translate(err)
	}
	jobs, err := s.show(ctx, "j.id = any($1)", maybe)
	if err != nil {
		return nil, err
	}
	ended := make(map[stint.ID]*stint.JobInfo, len(maybe))
	for _, id := range maybe {
		ended[id] = nil
	}
	for _, job := range jobs {
		if ended[job.ID] = job; !job.State.Final() {
			delete(ended, job.ID)
		}
	}
	return ended, nil
}
