package sqlite

import (
	"context"
	"fmt"
	"slices"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/store"
)

const (
	// graphRow is a job of a flow with the attempt of its first entry. Whether what does not wait is available, running or
	// ended by a later attempt is asked for afterwards, of those alone.
	graphRow = `e.pos, ifnull(e.flow, 0), e.kind, exists (select 1 from stint_flows f where f.flow = e.pos),
	  case when w.job is null then ''
	       when exists (select 1 from stint_cancellations k where k.job = w.job) and not exists (select 1 from stint_flows f where f.flow = w.job) then 'cancelled'
	       else w.why end,
	  ifnull(e.recovered, 0), e.created, e.due, ifnull(x.outcome, 0), ifnull(x.final, 0), ifnull(x.slot > 0, 0), x.started, x.finished,
	  w.verdict is null and ifnull(x.final, 0) = 0 and (x.pos is not null or e.lane = -1)`

	graphTables = `cross join stint_entries e left join stint_waiting w on w.job = e.pos left join stint_executions x on x.pos = e.pos`

	graphByFlowSQL = `select ` + graphRow + `, '' from (select ?1 as flow) f ` + graphTables + ` where e.flow = f.flow order by e.pos limit ?2`
	graphByIDSQL   = `select ` + graphRow + `, ifnull((select n.name from stint_nodes n where n.job = e.pos and n.flow = e.flow), '') from json_each(?) j ` + graphTables + ` where e.pos = j.value and e.job is null`
	graphNamesSQL  = `select n.job, n.name from json_each(?) f cross join stint_nodes n on n.flow = f.value limit ?`
	graphNeedsSQL  = `
	select n.child, n.parent, n.wants from json_each(?) f
	cross join stint_entries e on e.flow = f.value cross join stint_needs n on n.child = e.pos limit ?`
	graphLaterSQL  = `select job, outcome, final, slot > 0, started, finished from stint_executions where job = ? order by pos desc limit ?`
	graphStatesSQL = `select id, state from stint_jobs where id = ?`
)

// FlowGraph implements [store.FlowGrapher], in one transaction.
func (s *Store) FlowGraph(ctx context.Context, flow stint.ID, jobs, needs int) (store.FlowGraph, error) {
	return reading(ctx, s, fmt.Sprintf("read the graph of flow %d", flow), func(c *conn) (store.FlowGraph, error) {
		return rows.ReadFlowGraph(c.flowTables(), flow, jobs, needs)
	})
}

func (c *conn) flowTables() rows.FlowTables {
	return rows.FlowTables{
		ByFlow: func(flows []stint.ID, limit int) (all []rows.FlowRow, err error) {
			for _, flow := range flows {
				some, err := allRows(c, flowRow, graphByFlowSQL, int64(flow), limit-len(all))
				if all = append(all, some...); err != nil {
					return nil, err
				}
			}
			return all, nil
		},
		ByID: func(ids []stint.ID) ([]rows.FlowRow, error) { return allRows(c, flowRow, graphByIDSQL, arrayOf(ids)) },
		Names: func(flows []stint.ID, limit int) (map[stint.ID]string, error) {
			names := map[stint.ID]string{}
			err := c.query(graphNamesSQL, []any{arrayOf(flows), limit}, func(q *stmt) error {
				names[stint.ID(q.ColumnInt64(0))] = q.ColumnText(1)
				return nil
			})
			return names, err
		},
		Needs: func(flows []stint.ID, limit int) ([]store.FlowNeed, error) {
			return allRows(c, func(q *stmt) store.FlowNeed {
				return store.FlowNeed{Child: stint.ID(q.ColumnInt64(0)), Parent: stint.ID(q.ColumnInt64(1)), Wants: stint.Want(q.ColumnInt(2))}
			}, graphNeedsSQL, arrayOf(flows), limit)
		},
		Later: func(ids []stint.ID) (all []rows.LaterRun, err error) {
			for _, id := range ids {
				some, err := allRows(c, func(q *stmt) rows.LaterRun {
					return rows.LaterRun{Job: stint.ID(q.ColumnInt64(0)), FlowRun: flowRun(q, 1)}
				}, graphLaterSQL, int64(id), store.MostFlowRuns)
				slices.Reverse(some)
				if all = append(all, some...); err != nil {
					return nil, err
				}
			}
			return all, nil
		},
		States: func(ids []stint.ID) (map[stint.ID]stint.State, error) {
			states := map[stint.ID]stint.State{}
			for _, id := range ids {
				if err := c.query(graphStatesSQL, []any{int64(id)}, func(q *stmt) error {
					states[id] = stint.State(q.ColumnText(1))
					return nil
				}); err != nil {
					return nil, err
				}
			}
			return states, nil
		},
	}
}

func flowRow(q *stmt) rows.FlowRow {
	return rows.FlowRow{
		FlowJob: store.FlowJob{
			ID: stint.ID(q.ColumnInt64(0)), Flow: stint.ID(q.ColumnInt64(1)), Kind: q.name(2), IsFlow: q.ColumnInt(3) != 0,
			State: stint.State(q.name(4)), Recovered: stint.ID(q.ColumnInt64(5)), Created: q.time(6), Due: q.time(7), Node: q.ColumnText(14),
		},
		First: flowRun(q, 8), Again: q.ColumnInt(13) != 0,
	}
}

// flowRun reads an attempt, from a column on.
func flowRun(q *stmt, col int) store.FlowRun {
	return store.FlowRun{Outcome: stint.Outcome(q.ColumnInt(col)), Final: q.ColumnInt(col+1) != 0, Begun: q.ColumnInt(col+2) != 0, Started: q.time(col + 3), Finished: q.time(col + 4)}
}
