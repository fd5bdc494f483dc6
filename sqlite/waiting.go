package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint/store"
)

const (
	nextDueSQL = `
	select * from (select due from stint_waiting where due >= ? order by due, job limit 1)
	union all
	select * from (select deadline from stint_flows where deadline is not null order by deadline limit 1)
	order by due limit 1`

	dueSQL = `
	select ` + waitColumns + ` from stint_waiting
	where due between ? and ? order by due, job limit ?`

	waitColumns = `job, due, body, attempt, priority, losses, suspect, queue, kind, faulty, limits`

	promotedSQL = `delete from stint_waiting where job = ?`
)

// Promote implements [store.Promoter]. When nothing is due it reads a row or
// two and writes nothing.
func (s *Store) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	p, err := s.promote(ctx, from, limit)
	if err != nil {
		return store.Promotion{}, fmt.Errorf("promote %d jobs: %w", limit, err)
	}
	return p, nil
}

func (s *Store) promote(ctx context.Context, from time.Time, limit int) (p store.Promotion, err error) {
	bound := int64(-1 << 62)
	if !from.IsZero() {
		bound = micro(from)
	}
	left := false
	err = s.read(ctx, func(c *conn) (err error) {
		if left, err = c.found(anyLeftSQL); err != nil {
			return err
		}
		return c.nextDue(&p, bound)
	})
	if err != nil || p.Next != 0 && !left {
		return p, err
	}
	err = s.write(ctx, func(c *conn) (bool, error) {
		p = store.Promotion{}
		late, err := c.cancelLateFlows(limit)
		if err != nil {
			return false, err
		}
		left = left || late
		moved, err := c.promote(bound, limit)
		if err != nil {
			return false, err
		}
		if p.Moved = len(moved); p.Moved > 0 {
			bound = moved[p.Moved-1].due
			p.Until = fromMicro(bound)
			p.More = p.Moved == limit
		}
		if err = c.nextDue(&p, bound); err == nil && left {
			err = c.lookAtLeft(&p, limit)
		}
		return left || p.Moved > 0, err
	})
	return p, err
}

// promote moves due jobs to the log, each with a fresh position, in the order
// of due times. Reusing the ID as position would run a job due at 11 before
// one due at 10 that was enqueued later.
func (c *conn) promote(bound int64, limit int) ([]newWait, error) {
	if err := c.cancelMarked(max(0, limit)); err != nil {
		return nil, err
	}
	now := micro(time.Now())
	moved, err := allRows(c, scanWait, dueSQL, bound, now, max(0, limit))
	if err != nil {
		return nil, err
	}
	lanes := laneCache{}
	entries := make([]newEntry, len(moved))
	for i := range moved {
		w := &moved[i]
		if _, err := c.exec(promotedSQL, w.job); err != nil {
			return nil, err
		}
		lane, err := c.readyLane(&lanes, w.job, w.queue, w.priority, w.limits)
		if err != nil {
			return nil, err
		}
		entries[i] = *w.entry(lane, now)
		entries[i].due = w.due
	}
	if _, err := c.appendAll(entries); err != nil {
		return nil, err
	}
	return moved, nil
}

// lookAtLeft decides about jobs that wait for others, and looks whether something of the kind is left. What was
// cancelled before was noted.
func (c *conn) lookAtLeft(p *store.Promotion, limit int) error {
	begun, err := c.lookAtNotes(limit)
	if p.Moved += begun; err != nil {
		return err
	}
	left, err := c.found(anyLeftSQL)
	if left {
		p.Next = 0
	}
	return err
}

func scanWait(q *stmt) newWait {
	return newWait{
		job: q.ColumnInt64(0), due: q.ColumnInt64(1), body: q.ColumnInt64(2), attempt: q.ColumnInt(3), priority: q.ColumnInt(4),
		losses: q.ColumnInt(5), suspect: q.ColumnInt(6), queue: q.name(7), kind: q.name(8), faulty: q.ColumnInt64(9) != 0,
		limits: q.words(10),
	}
}

// nextDue finds out how long it is until the next job is due.
func (c *conn) nextDue(p *store.Promotion, bound int64) error {
	p.Next = -1
	return c.query(nextDueSQL, []any{bound}, func(q *stmt) error {
		p.Next = max(0, time.Until(fromMicro(q.ColumnInt64(0))))
		return nil
	})
}
