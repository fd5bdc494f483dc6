package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/store"
)

// graphRow is a job of a flow with the attempt of its first entry. Whether what does not wait is available, running or
// ended by a later attempt is asked for afterwards, of those alone.
const graphRow = `e.pos, coalesce(e.flow, 0), e.kind::text, exists (select from stint.flows f where f.flow = e.pos),
	  case when w.job is null then ''
	       when exists (select from stint.cancellations k where k.job = w.job) and not exists (select from stint.flows f where f.flow = w.job) then 'cancelled'
	       else w.why end,
	  coalesce(e.recovered, 0), e.created, e.due, coalesce(x.outcome, 0), coalesce(x.final, false), coalesce(x.slot > 0, false), x.started, x.finished,
	  w.verdict is null and x.final is not true and (x.pos is not null or e.lane = -1)`

const (
	graphTables = `stint.entries e left join stint.waiting w on w.job = e.pos left join stint.executions x on x.pos = e.pos`

	// A limit for each flow keeps the planner with the order of the index.
	graphByFlowSQL = `
	select r.* from unnest($1::bigint[]) as f(flow) cross join lateral (
	  select ` + graphRow + `, '' from ` + graphTables + ` where e.flow = f.flow order by e.flow, e.pos limit $2) r limit $2`

	graphByIDSQL = `select ` + graphRow + `, coalesce((select n.name from stint.nodes n where n.job = e.pos and n.flow = e.flow), '')
	from unnest($1::bigint[]) as j(id) join ` + graphTables + ` on e.pos = j.id where e.job is null`

	graphNamesSQL = `select n.job, n.name from stint.nodes n where n.flow = any ($1::bigint[]) limit $2`

	graphNeedsSQL = `
	select n.child, n.parent, n.wants from unnest($1::bigint[]) as f(flow)
	join stint.entries e on e.flow = f.flow join stint.needs n on n.child = e.pos limit $2`

	graphLaterSQL = `
	select j.id, x.* from unnest($1::bigint[]) as j(id) cross join lateral (
	  select y.outcome, y.final, y.slot > 0, y.started, y.finished from stint.executions y where y.job = j.id order by y.job desc, y.pos desc limit $2) x`

	graphStatesSQL = `select j.id, j.state from stint.jobs j where j.id = any ($1::bigint[])`
)

// FlowGraph implements [store.FlowGrapher], in one snapshot.
func (s *Store) FlowGraph(ctx context.Context, flow stint.ID, jobs, needs int) (g store.FlowGraph, err error) {
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, opts, func(tx pgx.Tx) (err error) {
		if _, err = tx.Exec(ctx, pageSQL); err == nil {
			g, err = rows.ReadFlowGraph(s.flowTables(ctx, tx), flow, jobs, needs)
		}
		return err
	})
	if err != nil {
		return store.FlowGraph{}, fmt.Errorf("read the graph of flow %d: %w", flow, translate(err))
	}
	return g, nil
}

func (s *Store) flowTables(ctx context.Context, tx pgx.Tx) rows.FlowTables {
	return rows.FlowTables{
		ByFlow: func(flows []stint.ID, limit int) ([]rows.FlowRow, error) {
			return manyRows(ctx, tx, s.sql.in(graphByFlowSQL), readFlowRow, flows, limit)
		},
		ByID: func(ids []stint.ID) ([]rows.FlowRow, error) {
			return manyRows(ctx, tx, s.sql.in(graphByIDSQL), readFlowRow, ids)
		},
		Names: func(flows []stint.ID, limit int) (map[stint.ID]string, error) {
			names := map[stint.ID]string{}
			_, err := manyRows(ctx, tx, s.sql.in(graphNamesSQL), func(r pgx.Rows, _ *struct{}) error {
				var (
					id   stint.ID
					name string
				)
				err := r.Scan(&id, &name)
				names[id] = name
				return err
			}, flows, limit)
			return names, err
		},
		Needs: func(flows []stint.ID, limit int) ([]store.FlowNeed, error) {
			return manyRows(ctx, tx, s.sql.in(graphNeedsSQL), func(r pgx.Rows, n *store.FlowNeed) error { return r.Scan(&n.Child, &n.Parent, &n.Wants) }, flows, limit)
		},
		Later: func(ids []stint.ID) ([]rows.LaterRun, error) {
			all, err := manyRows(ctx, tx, s.sql.in(graphLaterSQL), func(r pgx.Rows, x *rows.LaterRun) error {
				return r.Scan(&x.Job, &x.Outcome, &x.Final, &x.Begun, &x.Started, &x.Finished)
			}, ids, store.MostFlowRuns)
			slices.Reverse(all) // the last of a job comes first
			return all, err
		},
		States: func(ids []stint.ID) (map[stint.ID]stint.State, error) {
			states := map[stint.ID]stint.State{}
			_, err := manyRows(ctx, tx, s.sql.in(graphStatesSQL), func(r pgx.Rows, _ *struct{}) error {
				var (
					id    stint.ID
					state stint.State
				)
				err := r.Scan(&id, &state)
				states[id] = state
				return err
			}, ids)
			return states, err
		},
	}
}

func readFlowRow(r pgx.Rows, j *rows.FlowRow) error {
	var due, started, finished *time.Time
	x := &j.First
	err := r.Scan(&j.ID, &j.Flow, &j.Kind, &j.IsFlow, &j.State, &j.Recovered, &j.Created, &due, &x.Outcome, &x.Final, &x.Begun, &started, &finished, &j.Again, &j.Node)
	j.Due, x.Started, x.Finished = deref(due), deref(started), deref(finished)
	return err
}

// manyRows reads rows of which there may be very many, without reflection.
func manyRows[V any](ctx context.Context, tx pgx.Tx, text string, read func(r pgx.Rows, v *V) error, args ...any) (all []V, err error) {
	r, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	for r.Next() {
		var v V
		if err := read(r, &v); err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, r.Err()
}
