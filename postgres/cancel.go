package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

var _ stint.Canceller = (*Store)(nil)

// Cancel implements [stint.Canceller]. The markers are committed first, by a
// transaction of their own; only then is it looked where the jobs are.
// Looking in waiting and then in the log would miss one that is just being
// promoted, had the promoter not seen the marker.
func (s *Store) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.Cancellation, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	answers := make(map[stint.ID]stint.Cancellation, len(sorted))
	fail := func(err error) (map[stint.ID]stint.Cancellation, error) {
		return nil, fmt.Errorf("cancel %d jobs: %w", len(ids), err)
	}
	err := s.once(ctx, nil, s.sql.in(`
		insert into stint.cancellations (job, why)
		select j.id, nullif($2, '') from unnest($1::bigint[]) as j(id) where exists (select from stint.entries e where e.pos = j.id)
		order by 1 on conflict do nothing`), sorted, stint.CleanText(why, 1<<10))
	if err != nil {
		return fail(err)
	}
	for _, id := range sorted {
		var state string
		err := s.once(ctx, func(row pgx.Row) error { return row.Scan(&state) }, s.sql.in(`select stint.settle($1)`), id)
		if err != nil {
			return fail(err)
		}
		answers[id] = stint.Cancellation(state)
	}
	if err := s.once(ctx, nil, s.sql.notify); err != nil {
		return fail(err)
	}
	return answers, nil
}

// Cancelling implements [stint.Canceller].
func (s *Store) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	rows, err := s.work().Query(ctx, s.sql.in(`select job from stint.cancellations where job = any($1) order by job`), ids)
	if err != nil {
		return nil, fmt.Errorf("look for cancelled jobs: %w", translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[stint.ID])
	if err != nil {
		return nil, fmt.Errorf("look for cancelled jobs: %w", translate(err))
	}
	return list, nil
}
