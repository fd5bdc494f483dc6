package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var (
	_ store.Pauser      = (*Store)(nil)
	_ store.PauseTeller = (*Store)(nil)
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

// Pause implements [store.Pauser].
func (s *Store) Pause(ctx context.Context, queue, by, why string) (bool, error) {
	return s.changeQueue(ctx, "pause", queue, pauseSQL, micro(time.Now()), orNil(valid.CleanText(by, 255)), orNil(valid.CleanText(why, 1<<10)))
}

// Resume implements [store.Pauser].
func (s *Store) Resume(ctx context.Context, queue string) (bool, error) {
	return s.changeQueue(ctx, "resume", queue, resumeSQL)
}

func (s *Store) changeQueue(ctx context.Context, doing, queue, text string, args ...any) (bool, error) {
	if err := valid.Queue(queue); err != nil {
		return false, err
	}
	return writing(ctx, s, fmt.Sprintf("%s the queue %q", doing, queue), func(c *conn) (changed, wake bool, err error) {
		n, err := c.exec(text, append([]any{queue}, args...)...)
		return n > 0, n > 0, err
	})
}

// Paused implements [store.Pauser].
func (s *Store) Paused(ctx context.Context) ([]string, error) {
	return collect(ctx, s, "list paused queues", pausedSQL, nil, firstText[string])
}

// Pauses implements [store.PauseTeller].
func (s *Store) Pauses(ctx context.Context) ([]store.QueueInfo, error) {
	return collect(ctx, s, "list pauses", pausesSQL, nil, func(q *stmt) store.QueueInfo {
		return store.QueueInfo{Name: q.ColumnText(0), Paused: q.time(1), By: q.ColumnText(2), Why: q.ColumnText(3)}
	})
}

// Queues implements [store.Pauser].
func (s *Store) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	return reading(ctx, s, "list queues", func(c *conn) (queues []store.QueueInfo, err error) {
		err = c.query(queuesSQL, nil, func(q *stmt) error {
			if name := q.ColumnText(0); len(queues) == 0 || queues[len(queues)-1].Name != name {
				queues = append(queues, store.QueueInfo{Name: name, Counts: map[stint.State]int64{}})
			}
			info := &queues[len(queues)-1]
			if q.isNull(4) {
				info.Paused, info.By, info.Why = q.time(1), q.ColumnText(2), q.ColumnText(3)
			} else {
				info.Counts[stint.State(q.ColumnText(4))] = q.ColumnInt64(5)
			}
			return nil
		})
		return queues, err
	})
}
