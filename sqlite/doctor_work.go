package sqlite

import (
	"context"
	"time"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

// backlogSQL counts what is ready of a lane after its frontier, up to a limit.
const backlogSQL = `
select r.queue, r.priority, r.kind, count(*), sum(ifnull(r.start_by < ?4, 0)), min(r.created), q.paused, q.by, q.why
from (select queue, priority, kind, start_by, created from stint_entries indexed by stint_entries_lane
      where lane = ?1 and pos > ?2 order by pos limit ?3) r
left join stint_queues q on q.queue = r.queue
group by r.queue, r.priority, r.kind`

func (x *examination) ready(ctx context.Context) error {
	type lane struct{ ID, Frontier int64 }
	return x.read(ctx, func(c *conn) error {
		x.signs.Backlogs = nil
		lanes, err := fieldsOf[lane](c, frontiersSQL)
		for _, l := range lanes {
			if err == nil {
				var some []report.Backlog
				some, err = fieldsOf[report.Backlog](c, backlogSQL, l.ID, l.Frontier, report.BacklogLimit, micro(time.Now()))
				x.signs.Backlogs = append(x.signs.Backlogs, some...)
			}
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
	return x.read(ctx, func(c *conn) (err error) {
		x.signs.Undecided, err = fieldsOf[report.UndecidedBacklog](c, undecidedBacklogSQL, report.BacklogLimit)
		return err
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
	x.signs.Holds = map[store.EngineID]int{}
	return x.read(ctx, func(c *conn) error {
		for _, e := range engines {
			if !e.Silent(time.Now()) {
				continue
			}
			n, err := oneRow(c, firstNumber[int], holdsSQL, int64(e.Token), report.HoldsLimit)
			if err != nil {
				return err
			}
			x.signs.Holds[e.Token] = n
		}
		return nil
	})
}
