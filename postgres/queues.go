package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var (
	_ store.Pauser      = (*Store)(nil)
	_ store.PauseTeller = (*Store)(nil)
)

// Pause implements [store.Pauser].
func (s *Store) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	if err := valid.Queue(queue); err != nil {
		return false, err
	}
	return answerOf[bool](ctx, s, fmt.Sprintf("pause the queue %q", queue), `select stint.pause($1, $2, $3)`, queue, valid.CleanText(by, 255), valid.CleanText(why, 1<<10))
}

// Resume implements [store.Pauser].
func (s *Store) Resume(ctx context.Context, queue string) (bool, error) {
	if err := valid.Queue(queue); err != nil {
		return false, err
	}
	return answerOf[bool](ctx, s, fmt.Sprintf("resume the queue %q", queue), `select stint.resume($1)`, queue)
}

// Paused implements [store.Pauser].
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	return collect(ctx, s.work(), "list paused queues", s.sql.in(`select queue from stint.queues order by queue collate "C"`), nil, pgx.RowTo[string])
}

// Pauses implements [store.PauseTeller].
func (s *Store) Pauses(ctx context.Context) ([]store.QueueInfo, error) {
	return collect(ctx, s.work(), "list pauses", s.sql.in(`select queue, paused, by, why, null::json from stint.queues order by queue collate "C"`), nil, fieldsOf[store.QueueInfo])
}

// queuesSQL is one statement, so that what is counted and what is paused are
// of one moment.
const queuesSQL = `
select queue, q.paused, q.by, q.why, json_object_agg(j.state, j.n) filter (where j.n > 0)
from stint.queues q
full join (select j.queue, j.state, count(*) as n from stint.jobs j group by 1, 2) j using (queue)
group by queue, q.paused, q.by, q.why order by queue collate "C"`

// Queues implements [store.Pauser].
func (s *Store) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	return collect(ctx, s.pool, "list queues", s.sql.in(queuesSQL), nil, func(row pgx.CollectableRow) (store.QueueInfo, error) {
		q := store.QueueInfo{Counts: map[stint.State]int64{}}
		err := scan(row, rows.Fields(&q)...)
		return q, err
	})
}
