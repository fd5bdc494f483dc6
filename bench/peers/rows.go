package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/bench/contest"
)

// rows is a queue as anyone would write it: a table of jobs with a state, and
// workers that lock rows and skip what others have locked.
func rows(name string, workers, batch int) contestant {
	return contestant{
		name:     name,
		settings: fmt.Sprintf("COPY of 5,000 by 2 producers; %d workers, each claims and completes %d at a time by update", workers, batch),
		open: func(ctx context.Context, url string) (contest.Queue, error) {
			config, err := pgxpool.ParseConfig(url)
			if err != nil {
				return nil, err
			}
			config.MaxConns = int32(workers + 4) // each worker has one, and producers
			pool, err := pgxpool.NewWithConfig(ctx, config)
			if err != nil {
				return nil, err
			}
			if _, err := pool.Exec(ctx, rowsSchema); err != nil {
				pool.Close()
				return nil, err
			}
			return &rowQueue{pool: pool, workers: workers, batch: batch}, nil
		},
	}
}

//go:embed rows.sql
var rowsSchema string

// The locked rows come as an array: with "in (select …)" the planner may run the
// subquery again for each row, and lock more than was asked for.
const (
	claimRowsSQL = `
		update jobs set state = 'running', attempt = attempt + 1, started_at = clock_timestamp()
		where id = any (array(
			select id from jobs
			where queue = 'default' and state = 'available' and run_at <= clock_timestamp()
			order by priority, run_at, id
			for update skip locked
			limit $1
		))
		returning id, args`

	completeRowsSQL = `
		update jobs set state = 'completed', finished_at = clock_timestamp()
		where id = any ($1) and state = 'running'`
)

type rowQueue struct {
	pool           *pgxpool.Pool
	workers, batch int
}

// Enqueue implements contest.Queue.
func (q *rowQueue) Enqueue(ctx context.Context, first, n int) error {
	_, err := q.pool.CopyFrom(ctx, pgx.Identifier{"jobs"}, []string{"args"}, pgx.CopyFromSlice(n, func(i int) ([]any, error) {
		text, err := json.Marshal(args{first + i})
		return []any{text}, err
	}))
	return err
}

// Work implements contest.Queue.
func (q *rowQueue) Work(ctx context.Context, handle func(int)) (stop func() error, err error) {
	working, enough := context.WithCancel(context.WithoutCancel(ctx))
	errs := make([]error, q.workers)
	var wg sync.WaitGroup
	for i := range q.workers {
		wg.Go(func() { errs[i] = q.worker(working, handle) })
	}
	return func() error {
		enough()
		wg.Wait()
		return errors.Join(errs...)
	}, nil
}

// worker works on a connection of its own until its context ends. What it has
// claimed it completes.
func (q *rowQueue) worker(ctx context.Context, handle func(int)) error {
	last := context.WithoutCancel(ctx)
	c, err := q.pool.Acquire(last)
	if err != nil {
		return err
	}
	defer c.Release()
	for ctx.Err() == nil {
		ids, numbers, err := q.claim(last, c)
		if err != nil {
			return fmt.Errorf("claim: %w", err)
		}
		if len(ids) == 0 {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for _, n := range numbers {
			handle(n)
		}
		if _, err := c.Exec(last, completeRowsSQL, ids); err != nil {
			return fmt.Errorf("complete: %w", err)
		}
	}
	return nil
}

func (q *rowQueue) claim(ctx context.Context, c *pgxpool.Conn) (ids []int64, numbers []int, err error) {
	claimed, err := c.Query(ctx, claimRowsSQL, q.batch)
	if err != nil {
		return nil, nil, err
	}
	var id int64
	var text []byte
	_, err = pgx.ForEachRow(claimed, []any{&id, &text}, func() error {
		var a args
		if err := json.Unmarshal(text, &a); err != nil {
			return err
		}
		ids, numbers = append(ids, id), append(numbers, a.N)
		return nil
	})
	return ids, numbers, err
}

// Completed implements contest.Queue.
func (q *rowQueue) Completed(ctx context.Context) (n int, err error) {
	err = q.pool.QueryRow(ctx, "select count(*) from jobs where state = 'completed'").Scan(&n)
	return n, err
}

// Close implements contest.Queue.
func (q *rowQueue) Close() error {
	q.pool.Close()
	return nil
}
