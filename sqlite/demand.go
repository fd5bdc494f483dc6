package sqlite

import (
	"context"
	"slices"
	"time"

	"github.com/stint-go/stint/report"
	"github.com/stint-go/stint/store"
)

var _ report.DemandStore = (*Store)(nil)

const (
	// demandedSQL reads the first jobs of a lane after its frontier, and demandCountSQL counts all of them by the index.
	demandedSQL = `
	select queue, kind, ifnull(limits, ''), count(*), 0, sum(attempt > 1), 0, 0, 0, min(ifnull(due, created))
	from (select queue, kind, limits, attempt, due, created from stint_entries indexed by stint_entries_lane
	      where lane = ?1 and pos > ?2 order by pos limit ?3)
	group by 1, 2, 3`
	demandCountSQL = `
	select count(*), min(pos), max(pos), (select max(pos) from stint_entries indexed by stint_entries_lane where lane = ?1)
	from (select pos from stint_entries indexed by stint_entries_lane where lane = ?1 and pos > ?2 order by pos limit ?3)`

	// arrivedSQL reads the last jobs of a lane, claimed or not.
	arrivedSQL = `
	select queue, kind, ifnull(limits, ''), 0, 0, 0, 0, count(*), 0, null
	from (select queue, kind, limits, attempt, created from stint_entries indexed by stint_entries_lane where lane = ?1 order by pos desc limit ?2)
	where created > ?3 and attempt = 1
	group by 1, 2, 3`
	lastOfLaneSQL = `select queue, created from stint_entries indexed by stint_entries_lane where lane = ?1 order by pos desc limit 1`

	dueByThenSQL = `
	select queue, kind, ifnull(limits, ''), 0, count(*), 0, sum(attempt > 1), 0, 0, null
	from (select queue, kind, limits, attempt from stint_waiting indexed by stint_waiting_due where due <= ?1 order by due limit ?2)
	group by 1, 2, 3`
	claimedSQL = `select queue, kind, '', 0, 0, 0, 0, 0, count(*), null from (` + openSQL + `) group by 1, 2`
	looksSQL   = `select exists (select 1 from stint_notes) or exists (select 1 from stint_waiting where undecided is not null)`
)

// Demand implements [report.DemandStore].
func (s *Store) Demand(ctx context.Context, queues []string, within time.Duration) (report.Demand, error) {
	return reading(ctx, s, "read what waits for engines", func(c *conn) (report.Demand, error) {
		now := time.Now()
		d := report.Demand{At: fromMicro(micro(now))}
		type lane struct{ ID, Frontier int64 }
		lanes, err := fieldsOf[lane](c, frontiersSQL)
		if err != nil {
			return d, err
		}
		sample := report.SampleOf(len(lanes))
		for _, l := range lanes {
			some, err := c.demandOf(l.ID, l.Frontier, sample, queues, now)
			if err != nil {
				return d, err
			}
			d.Groups = append(d.Groups, some...)
		}
		due, err := fieldsOf[report.DemandGroup](c, dueByThenSQL, micro(now.Add(within)), report.DemandLimit)
		if err != nil {
			return d, err
		}
		running, err := fieldsOf[report.DemandGroup](c, claimedSQL)
		if err != nil {
			return d, err
		}
		d.Groups = slices.Concat(d.Groups, due, running)
		d.Only(queues)
		if d.Looks, err = oneRow(c, func(q *stmt) bool { return q.ColumnInt64(0) != 0 }, looksSQL); err != nil {
			return d, err
		}
		roster, err := c.instances()
		for _, gate := range d.GatesOf() {
			if err != nil {
				return d, err
			}
			var state store.GateState
			state, err = c.gate(gate, roster)
			d.Gates = append(d.Gates, state)
		}
		return d, err
	})
}

// demandOf is what waits in a lane, and arrived there lately.
func (c *conn) demandOf(lane, frontier int64, sample int, queues []string, now time.Time) ([]report.DemandGroup, error) {
	queue, since := "", now.Add(-time.Minute)
	var newest time.Time
	err := c.query(lastOfLaneSQL, []any{lane}, func(q *stmt) error { queue, newest = q.name(0), q.time(1); return nil })
	if err != nil || len(queues) > 0 && !slices.Contains(queues, queue) {
		return nil, err
	}
	ready, err := fieldsOf[report.DemandGroup](c, demandedSQL, lane, frontier, sample)
	if err != nil {
		return nil, err
	}
	counts, err := fieldsOf[report.LaneCount](c, demandCountSQL, lane, frontier, report.DemandLimit)
	if err != nil {
		return nil, err
	}
	report.GrowDemand(ready, counts[0])
	if !newest.After(since) {
		return ready, nil
	}
	arrived, err := fieldsOf[report.DemandGroup](c, arrivedSQL, lane, sample, micro(since))
	return append(ready, arrived...), err
}
