package sqlite

import (
	"context"
	"fmt"
	"time"

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
	pausesSQL = `select queue, paused, by, why, null from stint_queues order by queue`
	pausedSQL = `select queue from stint_queues order by queue`

	// One statement, so that what is counted and what is paused are of one
	// moment.
	queuesSQL = `
	select queue, max(paused), max(by), max(why), json_group_object(state, n) filter (where n > 0)
	from (select queue, null as paused, null as by, null as why, state, count(*) as n from stint_jobs group by queue, state
	      union all select queue, paused, by, why, null, 0 from stint_queues)
	group by queue order by queue`
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
	return reading(ctx, s, "list pauses", func(c *conn) ([]store.QueueInfo, error) { return fieldsOf[store.QueueInfo](c, pausesSQL) })
}

// Queues implements [store.Pauser].
func (s *Store) Queues(ctx context.Context) ([]store.QueueInfo, error) {
	return reading(ctx, s, "list queues", func(c *conn) ([]store.QueueInfo, error) { return fieldsOf[store.QueueInfo](c, queuesSQL) })
}
