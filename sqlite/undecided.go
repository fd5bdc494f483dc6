package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.RetryDecider = (*Store)(nil)

// undecidedSQL finds the jobs that wait for a retry function, each with its
// last execution: the failure that is to be judged.
const undecidedSQL = `
select w.undecided, w.attempt, w.losses, w.priority, w.queue, l.pos, l.finished - l.started, l.error
from stint_waiting w indexed by stint_waiting_undecided
join stint_executions l on l.pos = ifnull((select max(x.pos) from stint_executions x where x.job = w.job), w.job)
where w.undecided is not null and w.undecided in (select value from json_each(?)) and w.job > ?
order by w.job limit ?`

// Undecided implements [store.RetryDecider].
func (s *Store) Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	return reading(ctx, s, "list undecided failures", func(c *conn) ([]store.PendingRetry, error) { return s.undecided(c, funcs, after, limit) })
}

func (s *Store) undecided(c *conn, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	var list []store.PendingRetry
	var at []store.Position
	err := c.query(undecidedSQL, []any{arrayOf(funcs), int64(after), max(0, limit)}, func(q *stmt) error {
		u := store.PendingRetry{Func: q.ColumnText(0), Took: time.Duration(q.ColumnInt64(6)) * time.Microsecond}
		u.Attempt, u.Losses, u.Priority, u.Queue = q.ColumnInt(1), q.ColumnInt(2), q.ColumnInt(3), q.name(4)
		at = append(at, store.Position(q.ColumnInt64(5)))
		list = append(list, u)
		if text := q.json(7); text != nil {
			return json.Unmarshal(text, &list[len(list)-1].Error)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	entries, err := s.fetch(c, at)
	if err != nil {
		return nil, err
	} else if len(entries) < len(at) {
		return nil, fmt.Errorf("%d of %d failures have no entry", len(at)-len(entries), len(at))
	}
	for i := range list {
		list[i] = list[i].Of(entries[i].Job)
		list[i].Limits = entries[i].Limits
	}
	return list, nil
}

const leftUndecidedSQL = `select ` + waitColumns + ` from stint_waiting where job = ? and attempt = ? and undecided is not null`

// Decide implements [store.RetryDecider]. No other transaction writes meanwhile, so a
// row that exists is for this call to decide.
func (s *Store) Decide(ctx context.Context, engine store.EngineID, done []store.Completion) ([]stint.ID, error) {
	return writing(ctx, s, fmt.Sprintf("decide about %d failures", len(done)), func(c *conn) (decided []stint.ID, wake bool, err error) {
		if err := c.fence(engine); err != nil {
			return nil, false, err
		}
		r, err := c.recorder(engine, time.Now())
		if err != nil {
			return nil, false, err
		}
		for _, x := range done {
			added, err := r.decide(x)
			if err != nil {
				return nil, false, fmt.Errorf("job %d: %w", x.Job, err)
			}
			if added {
				decided = append(decided, x.Job)
				wake = wake || x.Next != nil
			}
		}
		return decided, wake, nil
	})
}

// decide moves a job that waits undecided to the lane that no engine claims,
// where the decision is recorded with what follows from it.
func (r *recorder) decide(x store.Completion) (bool, error) {
	w, err := r.takeWait(leftUndecidedSQL, int64(x.Job), x.Attempt)
	if err != nil || w.job == 0 {
		return false, err
	}
	pos, err := r.append(w.entry(store.NoLane, micro(r.now)))
	if err != nil {
		return false, err
	}
	x.Pos, x.Nonce, x.Ended = store.Position(pos), 0, r.now
	return r.record(&x)
}
