package sqlite

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const (
	rerunSQL = `
	insert into stint_reruns (gate, job, failed) values (?, ?, ?)
	on conflict (gate, job) do update set failed = 1 where excluded.failed`

	// A job that was deleted has ended.
	openRerun = `
	exists (select 1 from stint_entries e where e.pos = r.job and e.job is null)
	and not exists (select 1 from stint_executions x where x.pos = r.job and x.job is null and x.final)
	and not exists (select 1 from stint_executions x where x.job = r.job and x.final)`

	orderSQL = `
	select ifnull(min(r.job) filter (where r.failed is null), 0), ifnull(min(r.job) filter (where r.failed), 0)
	from stint_reruns r where r.gate = ? and (r.failed or ` + openRerun + `)`

	againSQL     = `select 1 from stint_reruns where job = ? limit 1`
	retriedSQL   = `update stint_reruns set job = ?1, failed = null where job = ?2 and failed`
	goesFirstSQL = `update stint_entries set lane = ?2 where pos = ?1 and lane >= 0`
	unblockSQL   = `delete from stint_reruns where gate = ? and failed returning job`
	noRerunSQL   = `select r.gate, r.job from stint_reruns r where r.failed is null and not (` + openRerun + `) limit ?`
	tidyOrderSQL = `delete from stint_reruns where (gate, job) in (` + noRerunSQL + `)`

	gatesInOrderSQL = `
	select distinct r.gate from stint_reruns r where (r.gate = ?1 or r.gate >= ?1 || '=' and r.gate < ?1 || '>')
	  and (r.failed or ` + openRerun + `) order by r.gate`
)

// order writes down that a job comes again, or that it failed, for the gates whose rules want to know.
func (r *recorder) order(x *store.Completion) error {
	if x.Limits == "" || x.Final && x.Outcome.State() != stint.Failed {
		return nil
	}
	for _, gate := range store.GatesIn(x.Limits) {
		rule, err := r.rule(gate)
		if err != nil {
			return err
		}
		if rule.Halt || rule.InOrder && !x.Final {
			if _, err := r.exec(rerunSQL, gate, int64(x.Job), nilInt(flag(x.Final))); err != nil {
				return err
			}
		}
	}
	return nil
}

// orderOf reads what holds up the jobs of a gate.
func (c *conn) orderOf(gate string) (o store.GateOrder, err error) {
	err = c.query(orderSQL, []any{gate}, func(q *stmt) error {
		o.Again, o.Failed = stint.ID(q.ColumnInt64(0)), stint.ID(q.ColumnInt64(1))
		return nil
	})
	return o, err
}

// withOrder adds to gates in use what holds up their jobs, and the gates that nobody uses for that.
func (c *conn) withOrder(gates []store.GateInfo, limit string) ([]store.GateInfo, error) {
	names, err := allRows(c, firstText[string], gatesInOrderSQL, limit)
	for _, name := range names {
		rule, ruleErr := c.rule(name)
		if err = cmp.Or(err, ruleErr); !rule.InOrder {
			continue
		}
		i := slices.IndexFunc(gates, func(g store.GateInfo) bool { return g.Gate == name })
		if i < 0 {
			_, key, _ := strings.Cut(name, "=")
			i, gates = len(gates), append(gates, store.GateInfo{Gate: name, Key: key, Holds: []store.GateHolding{}})
		}
		if err == nil {
			gates[i].GateOrder, err = c.orderOf(name)
		}
	}
	return gates, err
}

// readyLane is the lane of a job that waited, or runs again.
func (c *conn) readyLane(lanes *laneCache, job int64, queue string, priority int, limits string) (store.LaneID, error) {
	if limits != "" {
		if again, err := c.found(againSQL, job); err != nil {
			return 0, err
		} else if again {
			return store.LimitedLane(queue, priority, store.PartFront, "", limits).ID, nil
		}
	}
	return lanes.normal(queue, priority, limits), nil
}

// goFirst has a job go before all others of its gates that is the retry of one that they wait for, if it is in
// a lane, or else once it is.
func (c *conn) goFirst(job int64, failed stint.ID, w *newWait, lane store.LaneID) error {
	n, err := c.exec(retriedSQL, job, int64(failed))
	if err == nil && n > 0 && lane != store.NoLane {
		_, err = c.exec(goesFirstSQL, job, int64(store.LimitedLane(w.queue, w.priority, store.PartFront, "", w.limits).ID))
	}
	return err
}

// Unblock implements [store.Limiter].
func (s *Store) Unblock(ctx context.Context, gate string) ([]stint.ID, error) {
	failed, err := writing(ctx, s, "unblock "+gate, func(c *conn) ([]stint.ID, bool, error) {
		failed, err := allRows(c, firstNumber[stint.ID], unblockSQL, gate)
		return failed, false, err
	})
	if err == nil {
		s.inboxes.put([]store.News{{Permits: gate}})
	}
	return failed, err
}

// haltedFirst sorts gates.
func haltedFirst(g store.GateInfo) int {
	if g.Failed != 0 {
		return 0
	}
	return 1
}
