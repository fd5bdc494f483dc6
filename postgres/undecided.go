package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.RetryDecider = (*Store)(nil)

// undecidedSQL finds the jobs that wait for a retry function, each with its
// last execution: the failure that is to be judged.
const undecidedSQL = `
select w.undecided, w.attempt, w.losses, w.priority, w.queue, l.pos, l.finished - l.started, l.error
from stint.waiting w
join stint.executions l on l.pos = coalesce((select max(x.pos) from stint.executions x where x.job = w.job), w.job)
where w.undecided is not null and w.undecided = any ($1) and w.job > $2
order by w.job limit $3`

const anyUndecidedSQL = `
select exists (select from stint.waiting w where w.undecided is not null and w.undecided = any ($1) and w.job > $2)`

// Undecided implements [store.RetryDecider].
func (s *Store) Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) (list []store.PendingRetry, err error) {
	defer wrap(&err, "list undecided failures")
	some := false // nearly always: then this question is all
	err = s.once(ctx, func(row pgx.Row) error { return row.Scan(&some) }, s.sql.in(anyUndecidedSQL), funcs, after)
	if err != nil || !some {
		return nil, err
	}
	err = s.transactWork(ctx, func(tx pgx.Tx) error {
		list, err = s.undecided(ctx, tx, funcs, after, limit)
		return err
	})
	return list, err
}

func (s *Store) undecided(ctx context.Context, tx pgx.Tx, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	rows, err := tx.Query(ctx, s.sql.in(undecidedSQL), funcs, after, max(0, limit))
	if err != nil {
		return nil, err
	}
	var (
		u    store.PendingRetry
		pos  store.Position
		text []byte
		took time.Duration
		list []store.PendingRetry
		at   []store.Position
	)
	_, err = pgx.ForEachRow(rows, []any{&u.Func, &u.Attempt, &u.Losses, &u.Priority, &u.Queue, &pos, &took, &text}, func() error {
		u.Took, u.Error = took, stint.Failure{}
		at, list = append(at, pos), append(list, u)
		if text == nil {
			return nil
		}
		return json.Unmarshal(text, &list[len(list)-1].Error)
	})
	if err != nil || len(list) == 0 {
		return nil, err
	}
	entries, err := s.fetchIn(ctx, tx, at)
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

// Decide implements [store.RetryDecider]. The call that takes a waiting row decides:
// rows that another transaction has are passed over.
func (s *Store) Decide(ctx context.Context, engine store.EngineID, done []store.Completion) ([]stint.ID, error) {
	var decided []stint.ID
	err := s.transactWork(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.sql.in(`select stint.fence($1)`), engine); err != nil {
			return err
		}
		jobs, attempts := make([]int64, len(done)), make([]int32, len(done))
		for i := range done {
			jobs[i], attempts[i] = int64(done[i].Job), int32(done[i].Attempt)
		}
		rows, err := tx.Query(ctx, s.sql.in(`select job, pos from stint.take_undecided($1, $2)`), jobs, attempts)
		if err != nil {
			return err
		}
		places := map[stint.ID]store.Position{}
		var id stint.ID
		var pos store.Position
		if _, err := pgx.ForEachRow(rows, []any{&id, &pos}, func() error { places[id] = pos; return nil }); err != nil {
			return err
		}
		mine := slices.DeleteFunc(slices.Clone(done), func(x store.Completion) bool { return places[x.Job] == 0 })
		if decided = nil; len(mine) == 0 {
			return nil
		}
		for i := range mine {
			decided = append(decided, mine[i].Job)
			mine[i].Pos, mine[i].Nonce, mine[i].Ended = places[mine[i].Job], 0, time.Time{} // now
		}
		return s.recordIn(ctx, tx, engine, mine)
	})
	if err != nil {
		return nil, fmt.Errorf("decide about %d failures: %w", len(done), err)
	}
	return decided, nil
}
