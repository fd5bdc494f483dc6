package postgres

import (
	"cmp"
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
// transaction of their own; only then the jobs are looked for, and ended.
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
	for some := range slices.Chunk(sorted, settledAtOnce) {
		if err := s.settle(ctx, some, answers); err != nil {
			return fail(err)
		}
	}
	for _, id := range sorted {
		s.waits.Nudge(id)
	}
	if err := s.once(ctx, nil, s.sql.notify); err != nil {
		return fail(err)
	}
	return answers, nil
}

// settledAtOnce is how many jobs are ended by one transaction: it holds the locks of
// their lanes for as long as it takes.
const settledAtOnce = 200

// settle ends those of the jobs that no engine has, and adds what is to be said of each.
func (s *Store) settle(ctx context.Context, ids []stint.ID, answers map[stint.ID]stint.CancelStatus) error {
	for try := 0; len(ids) > 0; try++ {
		texts, err := retryExplicit(s, func() (texts []*stint.CancelStatus, err error) {
			err = s.once(ctx, func(row pgx.Row) error { return row.Scan(&texts) }, s.sql.in(`select stint.settle($1)`), ids)
			return texts, err
		})
		if err != nil {
			return err
		}
		var moving []stint.ID
		for i, id := range ids {
			// Whoever moves it sees the marker from now on. So there is no second time,
			// or hardly any.
			if texts[i] == nil && try < 10 {
				moving = append(moving, id)
			} else {
				answers[id] = cmp.Or(deref(texts[i]), stint.CancelledNow)
			}
		}
		ids = moving
	}
	return nil
}

// Cancelling implements [store.Canceller].
func (s *Store) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	return collect(ctx, s.work(), "look for cancelled jobs", s.sql.in(`
		select u.job from unnest($1::bigint[]) as u(job)
		where exists (select from stint.cancellations)
		  and ((select c.job from stint.cancellations c where c.job = u.job) is not null
		    or (select c.job from stint.cancellations c where c.job = (select e.flow from stint.entries e where e.pos = u.job)) is not null
		      and (select o.outcome from stint.end_of(u.job) as o) is null)
		order by 1`), []any{ids}, pgx.RowTo[stint.ID])
}
