package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.History = (*Store)(nil)

// endedInSQL finds jobs by their last attempts, of which the index of times knows where they are. A cancellation is
// recorded as one, if not at once.
const endedInSQL = `
	select coalesce(x.job, x.pos) as id from stint.executions x where x.final and x.finished >= $1 and x.finished < $2 order by id`

// Oldest implements [store.History].
func (s *Store) Oldest(ctx context.Context) (time.Time, error) {
	all, err := collect(ctx, s.pool, "find the oldest job", s.sql.in(`select e.created from stint.entries e order by e.pos limit 1`), nil, pgx.RowTo[time.Time])
	if err != nil || len(all) == 0 {
		return time.Time{}, err
	}
	return all[0], nil
}

// EndedIn implements [store.History].
func (s *Store) EndedIn(ctx context.Context, in store.TimeRange) ([]stint.ID, error) {
	return collect(ctx, s.pool, "find what ended", s.sql.in(endedInSQL), []any{in.From, in.To}, pgx.RowTo[stint.ID])
}

// Ended implements [store.History].
func (s *Store) Ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error) {
	return s.ended(ctx, ids)
}
