package sqlite

import (
	"context"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.History = (*Store)(nil)

// endedInSQL reads all attempts that there are.
const endedInSQL = `
select coalesce(x.job, x.pos) as id from stint_executions x where x.final = 1 and x.finished >= ? and x.finished < ? order by id`

// Oldest implements [store.History].
func (s *Store) Oldest(ctx context.Context) (time.Time, error) {
	return reading(ctx, s, "find the oldest job", func(c *conn) (oldest time.Time, err error) {
		err = c.query(`select created from stint_entries order by pos limit 1`, nil, func(q *stmt) error { return q.scan(&oldest) })
		return oldest, err
	})
}

// EndedIn implements [store.History].
func (s *Store) EndedIn(ctx context.Context, in store.TimeRange) ([]stint.ID, error) {
	return reading(ctx, s, "find what ended", func(c *conn) ([]stint.ID, error) {
		return allRows(c, firstNumber[stint.ID], endedInSQL, in.From.UnixMicro(), in.To.UnixMicro())
	})
}

// Ended implements [store.History].
func (s *Store) Ended(ctx context.Context, ids []stint.ID) (map[stint.ID]*stint.JobInfo, error) {
	return s.ended(ctx, ids)
}
