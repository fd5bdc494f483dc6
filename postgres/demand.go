package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/report"
)

var _ report.DemandStore = (*Store)(nil)

const (
	// demandedSQL reads the first jobs of each lane after its frontier, and counts all of them by the index; those that
	// were in progress when the frontier passed are taken first, and left out.
	demandedSQL = `
	select l.lane, c.jobs, c.first, c.last, h.pos, e.queue::text, e.kind::text, coalesce(e.limits, ''), count(*), 0::bigint, count(*) filter (where e.attempt > 1), 0::bigint, 0::bigint, 0::bigint,
	       min(coalesce(e.due, e.created))
	from stint.lanes() l
	cross join lateral (select n.queue, n.pos from stint.entries n where n.lane = l.lane order by n.xid desc, n.pos desc limit 1) h
	cross join lateral (select count(*) as jobs, coalesce(min(n.pos), 0) as first, coalesce(max(n.pos), 0) as last from (
	  select n.pos from stint.entries n where n.lane = l.lane and (n.xid, n.pos) > (l.xid, l.pos) order by n.xid, n.pos limit $2) n) c
	cross join lateral (
	  select n.queue, n.kind, n.limits, n.attempt, n.due, n.created from stint.entries n
	  where n.lane = l.lane and (n.xid, n.pos) > (l.xid, l.pos)
	  order by n.xid, n.pos limit $3) e
	where $1::text[] is null or h.queue = any ($1)
	group by 1, 2, 3, 4, 5, 6, 7, 8`

	// arrivedSQL reads the last jobs of each lane, claimed or not.
	arrivedSQL = `
	select e.queue::text, e.kind::text, coalesce(e.limits, ''), 0::bigint, 0::bigint, 0::bigint, 0::bigint, count(*), 0::bigint, null::timestamptz
	from stint.lanes() l
	cross join lateral (select n.created from stint.entries n where n.lane = l.lane order by n.xid desc, n.pos desc limit 1) h
	cross join lateral (
	  select n.queue, n.kind, n.limits, n.attempt, n.created from stint.entries n
	  where n.lane = l.lane order by n.xid desc, n.pos desc limit $1) e
	where h.created > $2 and e.created > $2 and e.attempt = 1
	group by 1, 2, 3`

	dueByThenSQL = `
	select w.queue, w.kind, coalesce(w.limits, ''), 0::bigint, count(*), 0::bigint, count(*) filter (where w.attempt > 1), 0::bigint, 0::bigint, null::timestamptz
	from (select * from stint.waiting w where w.due <= $1 order by w.due limit $2) w
	group by 1, 2, 3`
	claimedSQL = `
	select c.queue, c.kind, '', 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, count(*), null::timestamptz
	from stint.claimed c group by 1, 2`

	looksSQL = `
	select clock_timestamp(), (select count(*) from stint.lanes()),
	       exists (select from stint.notes) or exists (select from stint.waiting w where w.undecided is not null)`
)

// Demand implements [report.DemandStore].
func (s *Store) Demand(ctx context.Context, queues []string, within time.Duration) (d report.Demand, err error) {
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, opts, func(tx pgx.Tx) error { return s.demand(ctx, tx, &d, queues, within) })
	if err != nil {
		return report.Demand{}, fmt.Errorf("read what waits for engines: %w", translate(err))
	}
	_, d.Gates, _, _, err = s.gates(ctx, s.pool, 0, d.GatesOf())
	return d, err
}

func (s *Store) demand(ctx context.Context, tx pgx.Tx, d *report.Demand, queues []string, within time.Duration) error {
	if _, err := tx.Exec(ctx, walkSQL); err != nil {
		return err
	}
	lanes := 0
	if err := tx.QueryRow(ctx, s.sql.in(looksSQL)).Scan(&d.At, &lanes, &d.Looks); err != nil {
		return err
	}
	type row struct {
		Lane  int64
		Count report.LaneCount
		report.DemandGroup
	}
	if len(queues) == 0 {
		queues = nil
	}
	sample := report.SampleOf(lanes)
	rows, err := rowsOf[row](ctx, tx, s.sql.in(demandedSQL), queues, report.DemandLimit, sample)
	if err != nil {
		return err
	}
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.Lane, b.Lane) })
	for len(rows) > 0 {
		n := slices.IndexFunc(rows, func(r row) bool { return r.Lane != rows[0].Lane })
		if n < 0 {
			n = len(rows)
		}
		ready := make([]report.DemandGroup, n)
		for i := range ready {
			ready[i] = rows[i].DemandGroup
		}
		report.GrowDemand(ready, rows[0].Count)
		d.Groups, rows = append(d.Groups, ready...), rows[n:]
	}
	for _, q := range []struct {
		sql  string
		args []any
	}{
		{arrivedSQL, []any{sample, d.At.Add(-time.Minute)}},
		{dueByThenSQL, []any{d.At.Add(within), report.DemandLimit}},
		{claimedSQL, nil},
	} {
		some, err := rowsOf[report.DemandGroup](ctx, tx, s.sql.in(q.sql), q.args...)
		if err != nil {
			return err
		}
		d.Groups = append(d.Groups, some...)
	}
	d.Only(queues)
	return nil
}

// rowsOf returns the rows of a query, each read into the fields of a struct.
func rowsOf[T any](ctx context.Context, tx pgx.Tx, text string, args ...any) ([]T, error) {
	rows, err := tx.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, fieldsOf[T])
}
