package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Canceller = (*Store)(nil)

// Cancel implements [store.Canceller]. The markers are committed first, by a
// transaction of their own; only then the jobs are looked for.
// Looking in waiting and then in the log would miss one that is just being
// promoted, had the promoter not seen the marker.
func (s *Store) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	sorted := slices.Compact(slices.Sorted(slices.Values(ids)))
	answers := make(map[stint.ID]stint.CancelStatus, len(sorted))
	fail := func(err error) (map[stint.ID]stint.CancelStatus, error) {
		return nil, fmt.Errorf("cancel %d jobs: %w", len(ids), err)
	}
	err := s.once(ctx, nil, s.sql.in(`
		insert into stint.cancellations (job, why)
		select j.id, nullif($2, '') from unnest($1::bigint[]) as j(id) where exists (select from stint.entries e where e.pos = j.id)
		order by 1 on conflict do nothing`), sorted, valid.CleanText(why, 1<<10))
	if err != nil {
		return fail(err)
	}
	for _, id := range sorted {
		var state string
		err := s.once(ctx, func(row pgx.Row) error { return row.Scan(&state) }, s.sql.in(`select stint.settle($1)`), id)
		if err != nil {
			return fail(err)
		}
		answers[id] = stint.CancelStatus(state)
	}
	for _, id := range sorted {
		s.waits.Nudge(id)
	}
	if err := s.once(ctx, nil, s.sql.notify); err != nil {
		return fail(err)
	}
	return answers, nil
}

// Cancelling implements [store.Canceller].
func (s *Store) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	return collect(ctx, s.work(), "look for cancelled jobs", s.sql.in(`select job from stint.cancellations where job = any($1) order by job`), []any{ids}, pgx.RowTo[stint.ID])
}
