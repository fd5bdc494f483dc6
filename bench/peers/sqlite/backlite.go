package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	_ "github.com/mattn/go-sqlite3" // River's and backlite's driver
	"github.com/mikestefanello/backlite"

	"github.com/stint-go/stint/bench/contest"
)

// backliteBest is backlite with what was fastest of all that was tried.
func backliteBest(workers int) contestant {
	return contestant{
		name:     "backlite",
		settings: fmt.Sprintf("Add of 5,000; %d workers; completed tasks retained for ever with their data; mattn/go-sqlite3, 1 connection", workers),
		open: func(ctx context.Context, path string) (contest.Queue, error) {
			db, err := openFile(ctx, path)
			if err != nil {
				return nil, err
			}
			q := &backliteQueue{db: db}
			q.client, err = backlite.NewClient(backlite.ClientConfig{DB: db, NumWorkers: workers, ReleaseAfter: time.Hour, Logger: q})
			if err == nil {
				err = q.client.Install()
			}
			if err != nil {
				return nil, errors.Join(err, db.Close())
			}
			return q, nil
		},
	}
}

type backliteQueue struct {
	db     *sql.DB
	client *backlite.Client
	failed atomic.Pointer[error] // the first that it told
}

// Config implements backlite.Task. Without retention, backlite would delete what
// is done.
func (args) Config() backlite.QueueConfig {
	return backlite.QueueConfig{
		Name: "numbered", MaxAttempts: 3, Timeout: time.Minute,
		Retention: &backlite.Retention{Data: &backlite.RetainData{}},
	}
}

// Info implements backlite.Logger.
func (q *backliteQueue) Info(string, ...any) {}

// Error implements backlite.Logger. It is the one way to learn of what failed.
func (q *backliteQueue) Error(message string, params ...any) {
	err := fmt.Errorf("backlite: %s %v", message, params)
	q.failed.CompareAndSwap(nil, &err)
}

// Enqueue implements contest.Queue.
func (q *backliteQueue) Enqueue(ctx context.Context, first, n int) error {
	tasks := make([]backlite.Task, n)
	for i := range tasks {
		tasks[i] = args{first + i}
	}
	_, err := q.client.Add(tasks...).Ctx(ctx).Save()
	return err
}

// Work implements contest.Queue.
func (q *backliteQueue) Work(ctx context.Context, handle func(int)) (stop func() error, err error) {
	q.client.Register(backlite.NewQueue(func(_ context.Context, a args) error {
		handle(a.N)
		return nil
	}))
	ctx, abort := context.WithCancel(context.WithoutCancel(ctx))
	q.client.Start(ctx)
	return func() error {
		defer abort()
		limit, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if !q.client.Stop(limit) {
			return errors.New("backlite did not stop within a minute")
		}
		if failed := q.failed.Load(); failed != nil {
			return *failed
		}
		return nil
	}, nil
}

// Completed implements contest.Queue.
func (q *backliteQueue) Completed(ctx context.Context) (n int, err error) {
	err = q.db.QueryRowContext(ctx, "select count(*) from backlite_tasks_completed where succeeded").Scan(&n)
	return n, err
}

// Close implements contest.Queue.
func (q *backliteQueue) Close() error { return q.db.Close() }
