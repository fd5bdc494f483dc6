package sqlite

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// backlogSQL counts what is ready of a lane behind its frontier, up to a limit.
const backlogSQL = `
select r.queue, r.priority, r.kind, count(*), sum(ifnull(r.start_by < ?4, 0)), min(r.created), q.paused, q.by, q.why
from (select queue, priority, kind, start_by, created from stint_entries indexed by stint_entries_lane
      where lane = ?1 and pos > ?2 order by pos limit ?3) r
left join stint_queues q on q.queue = r.queue
group by r.queue, r.priority, r.kind`

func (x *examination) ready(ctx context.Context) error {
	type lane struct{ id, frontier int64 }
	return x.read(ctx, func(c *conn) error {
		x.signs.Backlogs = nil
		var lanes []lane
		err := c.query(frontiersSQL, nil, func(q *stmt) error {
			lanes = append(lanes, lane{q.ColumnInt64(0), q.ColumnInt64(1)})
			return nil
		})
		for _, l := range lanes {
			if err != nil {
				break
			}
			err = c.query(backlogSQL, []any{l.id, l.frontier, stint.BacklogLimit, micro(time.Now())}, func(q *stmt) error {
				b := stint.Backlog{
					Queue: q.name(0), Priority: q.ColumnInt(1), Kind: q.name(2), Jobs: q.ColumnInt(3), Late: q.ColumnInt(4), Oldest: q.time(5),
					By: q.ColumnText(7), Why: q.ColumnText(8),
				}
				if !q.isNull(6) {
					b.Paused = q.time(6)
				}
				x.signs.Backlogs = append(x.signs.Backlogs, b)
				return nil
			})
		}
		return err
	})
}

// undecidedBacklogSQL goes through the partial index on what is undecided. A
// job failed when its last execution ended.
const undecidedBacklogSQL = `
select u.undecided, count(*), min((select x.finished from stint_executions x
  where x.pos = ifnull((select max(l.pos) from stint_executions l where l.job = u.job), u.job)))
from (select job, undecided from stint_waiting indexed by stint_waiting_undecided where undecided is not null order by job limit ?) u
group by u.undecided order by u.undecided`

func (x *examination) undecided(ctx context.Context) error {
	return x.read(ctx, func(c *conn) error {
		x.signs.Undecided = nil
		return c.query(undecidedBacklogSQL, []any{stint.BacklogLimit}, func(q *stmt) error {
			x.signs.Undecided = append(x.signs.Undecided, stint.UndecidedBacklog{Func: q.name(0), Jobs: q.ColumnInt(1), Oldest: q.time(2)})
			return nil
		})
	})
}

// holdsSQL begins at the bound that the engine's last beat told.
const holdsSQL = `
select count(*) from (
  select 1 from stint_beats b
  cross join stint_claims c indexed by stint_claims_engine on c.engine = b.token and c.serial >= b.low
  cross join stint_entries e indexed by stint_entries_lane on e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier
  where b.token = ? and not exists (select 1 from stint_executions x where x.pos = e.pos)
  limit ?)`

func (x *examination) holds(ctx context.Context) error {
	engines, err := x.Engines(ctx)
	if err != nil {
		return err
	}
	x.signs.Holds = map[stint.Token]int{}
	return x.read(ctx, func(c *conn) error {
		for _, e := range engines {
			if !e.Silent(time.Now()) {
				continue
			}
			n, err := c.number(holdsSQL, int64(e.Token), stint.HoldsLimit)
			if err != nil {
				return err
			}
			x.signs.Holds[e.Token] = int(n)
		}
		return nil
	})
}
