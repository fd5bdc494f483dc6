package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riversqlite"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/stint-go/stint/bench/contest"
)

// riverBest is River with what was fastest of all that was tried. One
// connection is what its driver advises.
func riverBest(workers int) contestant {
	return contestant{
		name:     "River",
		settings: fmt.Sprintf("InsertManyFast of 5,000; %d workers, fetch cooldown 1ms, poll 10ms; mattn/go-sqlite3, 1 connection", workers),
		open: func(ctx context.Context, path string) (contest.Queue, error) {
			db, err := openFile(ctx, path)
			if err != nil {
				return nil, err
			}
			q := &riverQueue{db: db}
			if err := q.set(ctx, workers); err != nil {
				return nil, errors.Join(err, db.Close())
			}
			return q, nil
		},
	}
}

// riverQueue is River. Its cleaner deletes completed jobs after a day, so no
// history goes missing here.
type riverQueue struct {
	db     *sql.DB
	client *river.Client[*sql.Tx]
	handle func(int) // set before the client starts
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "numbered" }

func (q *riverQueue) set(ctx context.Context, workers int) error {
	driver := riversqlite.New(q.db)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	all := river.NewWorkers()
	river.AddWorker(all, river.WorkFunc(func(_ context.Context, job *river.Job[args]) error {
		q.handle(job.Args.N)
		return nil
	}))
	q.client, err = river.NewClient(driver, &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           all,
		FetchCooldown:     time.Millisecond,
		FetchPollInterval: 10 * time.Millisecond,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	return err
}

// Enqueue implements contest.Queue.
func (q *riverQueue) Enqueue(ctx context.Context, first, n int) error {
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i].Args = args{first + i}
	}
	_, err := q.client.InsertManyFast(ctx, params)
	return err
}

// Work implements contest.Queue.
func (q *riverQueue) Work(ctx context.Context, handle func(int)) (stop func() error, err error) {
	q.handle = handle
	// Its context is the one that aborts the work; Stop lets it end.
	if err := q.client.Start(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	return func() error { return q.client.Stop(context.WithoutCancel(ctx)) }, nil
}

// Completed implements contest.Queue.
func (q *riverQueue) Completed(ctx context.Context) (n int, err error) {
	err = q.db.QueryRowContext(ctx, "select count(*) from river_job where state = 'completed'").Scan(&n)
	return n, err
}

// Close implements contest.Queue.
func (q *riverQueue) Close() error { return q.db.Close() }
