package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
)

const jobColumns = `j.id, j.kind, j.state, j.begun, j.queue, j.priority, j.args, j.attempt, j.losses, j.reason, j.tags,
  j.urn, j.source, j.metadata, j.retry, j.timeout, j.start_by, j.max_losses, j.created, j.due, j.started, j.finished,
  j.faulty, j.undecided, j.recovered, j.schedule, j.nth, j.occurrence, j.correlation`

// Job implements [stint.Inspector]. The job and its executions are one
// statement, so they tell of one moment.
func (s *Store) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(`
		select `+jobColumns+`, (
		  select json_agg(x order by x.pos) from (
		    select x.pos, x.attempt, stint.outcome_name(x.outcome) as outcome, x.final, x.reason, x.started, x.finished, x.engine::text as engine,
		           h.instance, h.host, h.pid, x.slot, x.result, x.error
		    from stint.executions x left join stint.engine_history h on h.token = x.engine
		    where x.pos = $1 or x.job = $1) x)
		from stint.jobs j where j.id = $1`), id)
	if err != nil {
		return nil, fmt.Errorf("show job %d: %w", id, translate(err))
	}
	job, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (*stint.JobInfo, error) {
		var text []byte
		job, err := scanJob(row, &text)
		if err != nil {
			return nil, err
		}
		job.Executions, err = decodeExecutions(text)
		return job, err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fmt.Errorf("%w with id %d", stint.ErrNotFound, id)
	} else if err != nil {
		return nil, fmt.Errorf("show job %d: %w", id, translate(err))
	}
	return job, nil
}

func decodeExecutions(text []byte) ([]stint.ExecutionInfo, error) {
	if text == nil {
		return nil, nil
	}
	var list []stint.ExecutionInfo
	err := json.Unmarshal(text, &list)
	for i := range list {
		if string(list[i].Result) == "null" {
			list[i].Result = nil
		}
		list[i].Derive()
	}
	return list, err
}

// scanJob reads jobColumns and what the caller selected behind them.
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
	j.Reason, j.URN, j.Source, j.Undecided = deref(reason), deref(urn), deref(source), deref(undecided)
	j.Timeout = time.Duration(deref(timeout)) * time.Millisecond
	j.Started, j.Finished, j.StartBy = deref(started), deref(finished), deref(startBy)
	j.Provenance = stint.Provenance{Recovered: deref(recovered), Schedule: deref(schedule), Nth: deref(nth), Occurrence: deref(occurrence)}
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

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// Counts implements [stint.Inspector].
func (s *Store) Counts(ctx context.Context) (map[stint.State]int64, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(`select state, count(*) from stint.jobs group by state`))
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", translate(err))
	}
	counts := map[stint.State]int64{}
	var (
		state string
		n     int64
	)
	_, err = pgx.ForEachRow(rows, []any{&state, &n}, func() error {
		counts[stint.State(state)] = n
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", translate(err))
	}
	return counts, nil
}

// Kinds implements [stint.Inspector].
func (s *Store) Kinds(ctx context.Context) ([]stint.Declaration, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(`select kind, queue, priority, timeout, tags, retry, max_losses, start_within, declared from stint.kinds order by kind`))
	if err != nil {
		return nil, fmt.Errorf("list kinds: %w", translate(err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (stint.Declaration, error) {
		var (
			d       stint.Declaration
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
	if err != nil {
		return nil, fmt.Errorf("list kinds: %w", translate(err))
	}
	return list, nil
}
