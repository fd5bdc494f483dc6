package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const storeFlowSQL = `select id, duplicate, same, fresh, state, old from stint.store_flow($1::text::jsonb, $2::bigint[], $3::text[], $4::boolean)`

// flowJob is one job of a flow as stint.store_flow takes it: lengths of time are microseconds, but
// for the timeout.
type flowJob struct {
	Within      *int            `json:"within,omitempty"` // the place of its flow in the batch
	Flow        stint.ID        `json:"flow,omitempty"`   // or that flow's id
	Name        string          `json:"name,omitempty"`
	Root        bool            `json:"root,omitempty"`
	Lane        int64           `json:"lane"`
	Queue       string          `json:"queue"`
	Priority    int             `json:"priority"`
	Kind        string          `json:"kind"`
	Args        json.RawMessage `json:"args"`
	Policy      int32           `json:"policy,omitempty"`
	Timeout     int64           `json:"timeout,omitempty"` // milliseconds
	URN         string          `json:"urn,omitempty"`
	Source      string          `json:"source,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	MaxLosses   *int            `json:"max_losses,omitempty"`
	Correlation string          `json:"correlation,omitempty"`
	Limits      string          `json:"limits,omitempty"`
	At          time.Time       `json:"at,omitzero"`
	Delay       int64           `json:"delay,omitempty"`
	Tags        []string        `json:"tags,omitempty"`
	StartBy     time.Time       `json:"start_by,omitzero"`
	StartWithin int64           `json:"start_within,omitempty"`
	Key         string          `json:"key,omitempty"`
	Unique      string          `json:"unique,omitempty"`
	Call        bool            `json:"call,omitempty"`  // Flow is the job that calls it
	Needs       [][3]any        `json:"needs,omitempty"` // a place in the batch or an id, and what is wanted
}

// flowStatement stores jobs of which the first belongs to a flow.
func flowStatement(text string, jobs []stint.NewJob, limits []string, known dictionary) (statement, error) {
	lanes := lanes{}
	all := make([]flowJob, len(jobs))
	for i := range jobs {
		j := &jobs[i]
		f := flowJob{
			Lane: lanes.of(limits, j, i), Queue: j.Queue, Priority: j.Priority, Kind: j.Kind, Args: j.Args, Policy: known.place(j.Retry),
			Timeout: j.Timeout.Milliseconds(), URN: j.URN, Source: j.Source, Metadata: j.Metadata, MaxLosses: j.MaxLosses,
			Correlation: j.Correlation, At: j.RunAt, Delay: j.Delay.Microseconds(), Tags: j.Tags, StartBy: j.StartBy,
			StartWithin: j.StartWithin.Microseconds(), Key: j.IdempotencyKey, Unique: j.Unique,
			Name: j.Member.Name, Root: j.Member.Root, Flow: j.Member.Into, Call: j.Member.Call,
		}
		if limits != nil {
			f.Limits = limits[i]
		}
		if j.Member.Place >= 0 {
			f.Within = &j.Member.Place
		}
		for _, need := range j.Member.Needs {
			if need.Job != 0 {
				f.Needs = append(f.Needs, [3]any{nil, need.Job, int(need.Wants)})
			} else {
				f.Needs = append(f.Needs, [3]any{need.Place, nil, int(need.Wants)})
			}
		}
		all[i] = f
	}
	encoded, err := json.Marshal(all)
	if err != nil {
		return statement{}, fmt.Errorf("encode a flow of %d jobs: %w", len(jobs), err)
	}
	return statement{text, []any{string(encoded), known.ids, known.bodies}}, nil
}

var _ store.FlowReader = (*Store)(nil)

const (
	nodeSQL = `select n.job from stint.nodes n where n.flow = $1 and n.name = $2`

	neededSQL = `
	select n.parent, coalesce(e.kind::text, ''), coalesce((select d.name from stint.nodes d where d.job = e.pos and d.flow = e.flow), ''),
	  n.wants, coalesce(x.outcome, y.outcome, 0), coalesce(x.result, y.result)
	from stint.needs n left join stint.entries e on e.pos = n.parent
	left join stint.executions x on x.pos = n.parent and x.job is null and x.final
	left join stint.executions y on y.job = n.parent and y.final
	where n.child = $1 and n.parent > $2 order by n.child, n.parent limit $3`
)

// Node implements [store.FlowReader].
func (s *Store) Node(ctx context.Context, flow stint.ID, name string) (stint.ID, error) {
	all, err := collect(ctx, s.pool, fmt.Sprintf("look for %q in flow %d", name, flow), s.sql.in(nodeSQL), []any{int64(flow), name}, pgx.RowTo[stint.ID])
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("flow %d has no job %q: %w", flow, name, stint.ErrNotFound)
	}
	if err != nil {
		return 0, err
	}
	return all[0], nil
}

// Needed implements [store.FlowReader].
func (s *Store) Needed(ctx context.Context, job, after stint.ID, limit int) ([]stint.NeededJob, error) {
	return collect(ctx, s.pool, fmt.Sprintf("read what job %d needs", job), s.sql.in(neededSQL), []any{int64(job), int64(after), limit},
		func(row pgx.CollectableRow) (n stint.NeededJob, err error) {
			err = scan(row, &n.ID, &n.Kind, &n.Name, &n.Wants, &n.Outcome, &n.Result)
			return n, err
		})
}
