package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Decider = (*Store)(nil)

// undecidedSQL finds the jobs that wait for a retry function, each with its
// last execution: the failure that is to be judged.
const undecidedSQL = `
select w.undecided, w.attempt, w.losses, w.priority, w.queue, l.pos, l.finished - l.started, l.error
from stint_waiting w indexed by stint_waiting_undecided
join stint_executions l on l.pos = ifnull((select max(x.pos) from stint_executions x where x.job = w.job), w.job)
where w.undecided is not null and w.undecided in (select value from json_each(?)) and w.job > ?
order by w.job limit ?`

// Undecided implements [stint.Decider].
func (s *Store) Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) ([]stint.Undecided, error) {
	var list []stint.Undecided
	err := s.read(ctx, func(c *conn) (err error) {
		list, err = s.undecided(c, funcs, after, limit)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list undecided failures: %w", err)
	}
	return list, nil
}

func (s *Store) undecided(c *conn, funcs []string, after stint.ID, limit int) ([]stint.Undecided, error) {
	var list []stint.Undecided
	var at []stint.Position
	err := c.query(undecidedSQL, []any{arrayOf(funcs), int64(after), max(0, limit)}, func(q *stmt) error {
		u := stint.Undecided{Func: q.ColumnText(0), Took: time.Duration(q.ColumnInt64(6)) * time.Microsecond}
		u.Attempt, u.Losses, u.Priority, u.Queue = q.ColumnInt(1), q.ColumnInt(2), q.ColumnInt(3), q.name(4)
		at = append(at, stint.Position(q.ColumnInt64(5)))
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
	}
	return list, nil
}

const leftUndecidedSQL = `select ` + waitColumns + ` from stint_waiting where job = ? and attempt = ? and undecided is not null`

// Decide implements [stint.Decider]. Nobody else writes meanwhile, so a row
// that is there is for this call to decide.
func (s *Store) Decide(ctx context.Context, engine stint.Token, done []stint.Execution) ([]stint.ID, error) {
	var decided []stint.ID
	err := s.write(ctx, func(c *conn) (wake bool, err error) {
		decided = nil
		if err := c.fence(engine); err != nil {
			return false, err
		}
		r, err := c.recorder(engine, time.Now())
		if err != nil {
			return false, err
		}
		for _, x := range done {
			added, err := r.decide(x)
			if err != nil {
				return false, fmt.Errorf("job %d: %w", x.Job, err)
			}
			if added {
				decided = append(decided, x.Job)
				wake = wake || x.Next != nil
			}
		}
		return wake, nil
	})
	if err != nil {
		return nil, fmt.Errorf("decide about %d failures: %w", len(done), err)
	}
	return decided, nil
}

// decide moves a job that waits undecided to the lane that nobody claims,
// where the decision is recorded with what follows from it.
func (r *recorder) decide(x stint.Execution) (bool, error) {
	var w newWait
	err := r.query(leftUndecidedSQL, []any{int64(x.Job), x.Attempt}, func(q *stmt) error {
		w = scanWait(q)
		return nil
	})
	if err != nil || w.job == 0 {
		return false, err
	}
	if _, err := r.exec(promotedSQL, w.job); err != nil {
		return false, err
	}
	pos, err := r.append(&newEntry{
		lane: stint.NoLane, created: micro(r.now), job: w.job, body: w.body,
		attempt: w.attempt, priority: w.priority, losses: w.losses, suspect: w.suspect, queue: w.queue, kind: w.kind, faulty: w.faulty,
	})
	if err != nil {
		return false, err
	}
	x.Pos, x.Nonce, x.Ended = stint.Position(pos), 0, r.now
	return r.record(&x)
}
