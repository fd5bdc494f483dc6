package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
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
	return collect(ctx, s.work(), "list pauses", s.sql.in(`select queue, paused, by, why from stint.queues order by queue collate "C"`), nil, func(row pgx.CollectableRow) (q store.QueueInfo, err error) {
		var by, why *string
		err = row.Scan(&q.Name, &q.Paused, &by, &why)
		q.By, q.Why = deref(by), deref(why)
		return q, err
	})
}

// queuesSQL is one statement, so that what is counted and what is paused are
// of one moment.
const queuesSQL = `
select queue, q.paused, q.by, q.why, j.state, j.n
from stint.queues q
full join (select j.queue, j.state, count(*) as n from stint.jobs j group by 1, 2) j using (queue)
order by queue collate "C"`

// Queues implements [store.Pauser].
func (s *Store) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(queuesSQL))
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", translate(err))
	}
	var (
		list           []store.QueueInfo
		name           string
		paused         *time.Time
		by, why, state *string
		n              *int64
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &paused, &by, &why, &state, &n}, func() error {
		if len(list) == 0 || list[len(list)-1].Name != name {
			list = append(list, store.QueueInfo{
				Name: name, Paused: deref(paused), By: deref(by), Why: deref(why), Counts: map[stint.State]int64{},
			})
		}
		if state != nil {
			list[len(list)-1].Counts[stint.State(*state)] = *n
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", translate(err))
	}
	return list, nil
}
