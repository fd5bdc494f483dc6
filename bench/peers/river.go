package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/stint-go/stint/internal/contest"
)

// riverSettings are those that matter to how fast River is. Zero ones are
// River's defaults.
type riverSettings struct {
	workers  int // River has no default: its examples say 100
	cooldown time.Duration
	poll     time.Duration
	conns    int // of the pool
	batch    int // of InsertManyFast
}

var (
	// riverBest is what was fastest of all that was tried; README.md has what.
	riverBest = riverSettings{workers: 2000, cooldown: 2 * time.Millisecond, poll: 50 * time.Millisecond, conns: 20, batch: 5000}

	riverDefault = riverSettings{workers: 100, batch: 5000}
)

// river makes a contestant of it.
func (o riverSettings) contestant(name string) contestant {
	settings := fmt.Sprintf("%d workers, InsertManyFast of %d by 2 producers", o.workers, o.batch)
	if o.cooldown > 0 {
		settings += fmt.Sprintf(", fetch cooldown %v, poll %v, %d connections", o.cooldown, o.poll, o.conns)
	} else {
		settings += ", else its defaults"
	}
	return contestant{name: name, settings: settings, bulk: contest.Bulk{Batch: o.batch}, open: o.open}
}

func (o riverSettings) open(ctx context.Context, url string) (contest.Queue, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	if o.conns > 0 {
		config.MaxConns = int32(o.conns)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	q := &riverQueue{pool: pool}
	if err := q.set(ctx, o); err != nil {
		pool.Close()
		return nil, err
	}
	return q, nil
}

// riverQueue is River. Its cleaner deletes completed jobs after a day, so no
// history goes missing here.
type riverQueue struct {
	pool   *pgxpool.Pool
	client *river.Client[pgx.Tx]
	handle func(int) // set before the client starts
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "numbered" }

func (q *riverQueue) set(ctx context.Context, o riverSettings) error {
	driver := riverpgxv5.New(q.pool)
	migrator, err := rivermigrate.New(driver, nil)
	if err != nil {
		return err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, river.WorkFunc(func(_ context.Context, job *river.Job[args]) error {
		q.handle(job.Args.N)
		return nil
	}))
	q.client, err = river.NewClient(driver, &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.workers}},
		Workers:           workers,
		FetchCooldown:     o.cooldown,
		FetchPollInterval: o.poll,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	return err
}

// Enqueue implements contest.Queue.
func (q *riverQueue) Enqueue(ctx context.Context, first, n int) error {
	if n == 1 {
		_, err := q.client.Insert(ctx, args{first}, nil)
		return err
	}
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
	err = q.pool.QueryRow(ctx, "select count(*) from river_job where state = 'completed'").Scan(&n)
	return n, err
}

// Close implements contest.Queue.
func (q *riverQueue) Close() error {
	q.pool.Close()
	return nil
}
