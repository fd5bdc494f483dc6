package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

const jobColumns = `j.id, j.kind, j.state, j.begun, j.queue, j.priority, j.args, j.attempt, j.losses, j.reason, j.tags,
  j.urn, j.source, j.metadata, j.retry, j.timeout, j.start_by, j.max_losses, j.created, j.due, j.started, j.finished,
  j.faulty, j.undecided, j.recovered, j.schedule, j.nth, j.occurrence, j.correlation`

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
	rows, err := s.pool.Query(ctx, s.sql.in(`
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
	jobs, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (*stint.JobInfo, error) {
		var (
			text []byte
			next *stint.ID
		)
		job, err := scanJob(row, &text, &next)
		if err != nil {
			return nil, err
		}
		job.RetriedAs = deref(next)
		job.Attempts, err = decodeExecutions(text)
		store.ShowCancelled(job)
		return job, err
	})
	return jobs, translate(err)
}

func decodeExecutions(text []byte) ([]stint.Attempt, error) {
	if text == nil {
		return nil, nil
	}
	var list []stint.Attempt
	err := json.Unmarshal(text, &list)
	for i := range list {
		if string(list[i].Result) == "null" {
			list[i].Result = nil
		}
		list[i].Derive()
	}
	return list, err
}

// scanJob reads jobColumns and what the caller selected after them.
func scanJob(row pgx.CollectableRow, more ...any) (*stint.JobInfo, error) {
	var (
		j                     stint.JobInfo
		reason, urn, source   *string
		args, metadata, retry []byte
		timeout               *int64
		started, finished     *time.Time
		startBy               *time.Time
		undecided             *string
		recovered             *stint.ID
		schedule              *string
		nth                   *int64
		occurrence            *time.Time
	)
	err := row.Scan(append([]any{&j.ID, &j.Kind, &j.State, &j.Begun, &j.Queue, &j.Priority, &args, &j.Attempt, &j.Losses,
		&reason, &j.Tags, &urn, &source, &metadata, &retry, &timeout, &startBy, &j.MaxLosses, &j.Created, &j.Due, &started, &finished,
		&j.Faulty, &undecided, &recovered, &schedule, &nth, &occurrence, &j.Correlation}, more...)...)
	if err != nil {
		return nil, err
	}
	j.Args, j.Metadata = args, metadata
	j.Reason, j.URN, j.Source, j.PendingRetry = deref(reason), deref(urn), deref(source), deref(undecided)
	j.Timeout = time.Duration(deref(timeout)) * time.Millisecond
	j.Started, j.Finished, j.StartBy = deref(started), deref(finished), deref(startBy)
	j.Origin = stint.Origin{Recovered: deref(recovered), Schedule: deref(schedule), Nth: deref(nth), Occurrence: deref(occurrence)}
	j.Retry, err = policyName(retry)
	return &j, err
}

func policyName(text []byte) (string, error) {
	var p retry.Policy
	if text != nil {
		if err := json.Unmarshal(text, &p); err != nil {
			return string(text), nil // show what is there
		}
	}
	return p.String(), nil
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

// Kinds implements [store.Inspector].
func (s *Store) Kinds(ctx context.Context) ([]stint.KindInfo, error) {
	return collect(ctx, s.pool, "list kinds",
		s.sql.in(`select kind, queue, priority, timeout, tags, retry, max_losses, start_within, declared from stint.kinds order by kind`), nil,
		func(row pgx.CollectableRow) (stint.KindInfo, error) {
			var (
				d       stint.KindInfo
				timeout *int64
				within  *int64
				policy  []byte
			)
			if err := row.Scan(&d.Name, &d.Queue, &d.Priority, &timeout, &d.Tags, &policy, &d.MaxLosses, &within, &d.Declared); err != nil {
				return d, err
			}
			d.Timeout = time.Duration(deref(timeout)) * time.Millisecond
			d.StartWithin = time.Duration(deref(within)) * time.Millisecond
			if policy != nil {
				return d, json.Unmarshal(policy, &d.Retry)
			}
			return d, nil
		})
}
