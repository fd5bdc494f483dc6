package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
)

var (
	_ stint.Pauser      = (*Store)(nil)
	_ stint.PauseTeller = (*Store)(nil)
)

// Pause implements [stint.Pauser].
func (s *Store) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	if err := stint.CheckQueue(queue); err != nil {
		return false, err
	}
	changed := false
	err := s.operate(ctx, func(row pgx.Row) error { return row.Scan(&changed) },
		`select stint.pause($1, $2, $3)`, queue, stint.CleanText(by, 255), stint.CleanText(why, 1<<10))
	if err != nil {
		return false, fmt.Errorf("pause the queue %q: %w", queue, err)
	}
	return changed, nil
}

// Resume implements [stint.Pauser].
func (s *Store) Resume(ctx context.Context, queue string) (bool, error) {
	if err := stint.CheckQueue(queue); err != nil {
		return false, err
	}
	changed := false
	err := s.operate(ctx, func(row pgx.Row) error { return row.Scan(&changed) }, `select stint.resume($1)`, queue)
	if err != nil {
		return false, fmt.Errorf("resume the queue %q: %w", queue, err)
	}
	return changed, nil
}

// Paused implements [stint.Pauser].
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	rows, err := s.work().Query(ctx, s.sql.in(`select queue from stint.queues order by queue collate "C"`))
	if err != nil {
		return nil, fmt.Errorf("list paused queues: %w", translate(err))
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list paused queues: %w", translate(err))
	}
	return list, nil
}

// Pauses implements [stint.PauseTeller].
func (s *Store) Pauses(ctx context.Context) ([]stint.QueueInfo, error) {
	rows, err := s.work().Query(ctx, s.sql.in(`select queue, paused, by, why from stint.queues order by queue collate "C"`))
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", translate(err))
	}
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (q stint.QueueInfo, err error) {
		var by, why *string
		err = row.Scan(&q.Name, &q.Paused, &by, &why)
		q.By, q.Why = deref(by), deref(why)
		return q, err
	})
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", translate(err))
	}
	return list, nil
}

// queuesSQL is one statement, so that what is counted and what is paused are
// of one moment.
const queuesSQL = `
select queue, q.paused, q.by, q.why, j.state, j.n
from stint.queues q
full join (select j.queue, j.state, count(*) as n from stint.jobs j group by 1, 2) j using (queue)
order by queue collate "C"`

// Queues implements [stint.Pauser].
func (s *Store) Queues(ctx context.Context) ([]stint.QueueInfo, error) {
	rows, err := s.pool.Query(ctx, s.sql.in(queuesSQL))
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", translate(err))
	}
	var (
		list           []stint.QueueInfo
		name           string
		paused         *time.Time
		by, why, state *string
		n              *int64
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &paused, &by, &why, &state, &n}, func() error {
		if len(list) == 0 || list[len(list)-1].Name != name {
			list = append(list, stint.QueueInfo{
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
