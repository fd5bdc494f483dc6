package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"
	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint/bench/contest"
)

// riverSettings are those that matter to how fast River is. Zero ones are
// River's defaults.
type riverSettings struct {
	clients  int // each with a pool and workers of its own
	workers  int // of each client; River has no default: its examples say 100
	cooldown time.Duration
	poll     time.Duration
	conns    int  // of the pool
	unique   bool // by arguments, while a job is unfinished
	batch    int  // of InsertManyFast
}

var (
	// riverBest is what was fastest of all that the bout of tune tries.
	// A longer cooldown makes larger batches of what is fetched and completed.
	riverBest = riverSettings{clients: 2, workers: 2000, cooldown: 50 * time.Millisecond, poll: 50 * time.Millisecond, conns: 10, batch: 5000}

	// riverEager is for a client that has little to do.
	riverEager = riverSettings{clients: 1, workers: 2000, cooldown: 2 * time.Millisecond, poll: 50 * time.Millisecond, conns: 20, batch: 5000}

	riverDefault = riverSettings{clients: 1, workers: 100, batch: 5000}
)

// contestant makes one of it.
func (o riverSettings) contestant(name string) contestant {
	if o.unique {
		settings := fmt.Sprintf("Insert with UniqueOpts by arguments and the states of unfinished jobs; a pool of %d connections", o.conns)
		return contestant{name: name, settings: settings, open: o.open}
	}
	settings := fmt.Sprintf("%d workers, InsertManyFast of %d by 2 producers", o.workers, o.batch)
	if o.clients > 1 {
		settings = fmt.Sprintf("%d clients, each with ", o.clients) + settings
	}
	if o.cooldown > 0 {
		settings += fmt.Sprintf(", fetch cooldown %v, poll %v, %d connections", o.cooldown, o.poll, o.conns)
	} else {
		settings += ", else its defaults"
	}
	return contestant{name: name, settings: settings, bulk: contest.Bulk{Batch: o.batch}, slow: o.cooldown == 0, open: o.open}
}

func (o riverSettings) open(ctx context.Context, url string) (contest.Queue, error) {
	q := &riverQueue{}
	if o.unique {
		q.insert = &river.InsertOpts{UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning, rivertype.JobStateScheduled,
		}}}
	}
	for range o.clients {
		if err := q.add(ctx, o, url); err != nil {
			return nil, errors.Join(err, q.Close())
		}
	}
	return q, nil
}

// riverQueue is River. Its cleaner deletes completed jobs after a day, so no
// history goes missing here.
type riverQueue struct {
	pools   []*pgxpool.Pool
	clients []*river.Client[pgx.Tx]
	handle  func(int)         // set before the clients start
	insert  *river.InsertOpts // of single jobs; nil for River's defaults
}

// Kind implements river.JobArgs.
func (args) Kind() string { return "numbered" }

// add adds a client.
func (q *riverQueue) add(ctx context.Context, o riverSettings, url string) error {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	if o.conns > 0 {
		config.MaxConns = int32(o.conns)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}
	q.pools = append(q.pools, pool)
	driver := riverpgxv5.New(pool)
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
	client, err := river.NewClient(driver, &river.Config{
		ID:                fmt.Sprintf("peers-%d", len(q.clients)+1),
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: o.workers}},
		Workers:           workers,
		FetchCooldown:     o.cooldown,
		FetchPollInterval: o.poll,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	})
	if err != nil {
		return err
	}
	q.clients = append(q.clients, client)
	return nil
}

// Enqueue implements contest.Queue.
func (q *riverQueue) Enqueue(ctx context.Context, first, n int) error {
	if n == 1 {
		_, err := q.clients[0].Insert(ctx, args{first}, q.insert)
		return err
	}
	params := make([]river.InsertManyParams, n)
	for i := range params {
		params[i].Args = args{first + i}
	}
	_, err := q.clients[0].InsertManyFast(ctx, params)
	return err
}

// Work implements contest.Queue.
func (q *riverQueue) Work(ctx context.Context, handle func(int)) (stop func() error, err error) {
	q.handle = handle
	stop = func() error {
		var all errgroup.Group
		for _, c := range q.clients {
			all.Go(func() error { return c.Stop(context.WithoutCancel(ctx)) })
		}
		return all.Wait()
	}
	for _, c := range q.clients {
		// Its context is the one that aborts the work; Stop lets it end.
		if err := c.Start(context.WithoutCancel(ctx)); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return stop, nil
}

// Completed implements contest.Queue.
func (q *riverQueue) Completed(ctx context.Context) (n int, err error) {
	err = q.pools[0].QueryRow(ctx, "select count(*) from river_job where state = 'completed'").Scan(&n)
	return n, err
}

// Close implements contest.Queue.
func (q *riverQueue) Close() error {
	for _, pool := range q.pools {
		pool.Close()
	}
	return nil
}
