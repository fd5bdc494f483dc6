package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

var (
	_ stint.Pauser      = (*Store)(nil)
	_ stint.PauseTeller = (*Store)(nil)
)

const (
	pauseSQL  = `insert into stint_queues (queue, paused, by, why) values (?, ?, ?, ?) on conflict do nothing`
	resumeSQL = `delete from stint_queues where queue = ?`
	pausesSQL = `select queue, paused, by, why from stint_queues order by queue`
	pausedSQL = `select queue from stint_queues order by queue`

	// One statement, so that what is counted and what is paused are of one
	// moment.
	queuesSQL = `
	select queue, null, null, null, state, count(*) from stint_jobs group by queue, state
	union all
	select queue, paused, by, why, null, 0 from stint_queues
	order by queue`
)

// Pause implements [stint.Pauser].
func (s *Store) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	if err := stint.CheckQueue(queue); err != nil {
		return false, err
	}
	changed := int64(0)
	err := s.write(ctx, func(c *conn) (_ bool, err error) {
		changed, err = c.exec(pauseSQL, queue, micro(time.Now()), orNil(stint.CleanText(by, 255)), orNil(stint.CleanText(why, 1<<10)))
		return changed > 0, err
	})
	if err != nil {
		return false, fmt.Errorf("pause the queue %q: %w", queue, err)
	}
	return changed > 0, nil
}

// Resume implements [stint.Pauser].
func (s *Store) Resume(ctx context.Context, queue string) (bool, error) {
	if err := stint.CheckQueue(queue); err != nil {
		return false, err
	}
	changed := int64(0)
	err := s.write(ctx, func(c *conn) (_ bool, err error) {
		changed, err = c.exec(resumeSQL, queue)
		return changed > 0, err
	})
	if err != nil {
		return false, fmt.Errorf("resume the queue %q: %w", queue, err)
	}
	return changed > 0, nil
}

// Paused implements [stint.Pauser].
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	var names []string
	err := s.read(ctx, func(c *conn) error {
		names = nil
		return c.query(pausedSQL, nil, func(q *stmt) error {
			names = append(names, q.ColumnText(0))
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list paused queues: %w", err)
	}
	return names, nil
}

// Pauses implements [stint.PauseTeller].
func (s *Store) Pauses(ctx context.Context) ([]stint.QueueInfo, error) {
	var list []stint.QueueInfo
	err := s.read(ctx, func(c *conn) error {
		list = nil
		return c.query(pausesSQL, nil, func(q *stmt) error {
			list = append(list, stint.QueueInfo{Name: q.ColumnText(0), Paused: q.time(1), By: q.ColumnText(2), Why: q.ColumnText(3)})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list pauses: %w", err)
	}
	return list, nil
}

// Queues implements [stint.Pauser].
func (s *Store) Queues(ctx context.Context) ([]stint.QueueInfo, error) {
	var queues []stint.QueueInfo
	err := s.read(ctx, func(c *conn) error {
		queues = nil
		return c.query(queuesSQL, nil, func(q *stmt) error {
			if name := q.ColumnText(0); len(queues) == 0 || queues[len(queues)-1].Name != name {
				queues = append(queues, stint.QueueInfo{Name: name, Counts: map[stint.State]int64{}})
			}
			info := &queues[len(queues)-1]
			if q.isNull(4) {
				info.Paused, info.By, info.Why = q.time(1), q.ColumnText(2), q.ColumnText(3)
			} else {
				info.Counts[stint.State(q.ColumnText(4))] = q.ColumnInt64(5)
			}
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("list queues: %w", err)
	}
	return queues, nil
}
