package floor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sync/errgroup"

	"github.com/stint-go/stint/bench/contest"
)

// PostgresLog is a queue stripped to what nobody can leave out who keeps a history of
// durable jobs: rows are copied in, read in order, and for each of them one row
// of history is copied in behind. Both tables have a primary key and no other
// index. Nobody claims, so a second reader would do everything twice; nobody
// dies, nothing fails, nothing is scheduled, and the rows of history are made
// up without looking at the jobs. What an engine reaches of this is what it
// pays for everything that this one does not do.
//
//	producers ── COPY, a batch each ──▶ jobs ── select … order by pos ──▶ one reader
//	                                                                          │
//	             history ◀── COPY, a batch each ── two writers ◀──────────────┘
//
// Every batch is a transaction and is flushed to the disk before it counts. The
// reader is ahead of the writers, so that server and client are busy at once.
type PostgresLog struct {
	*site
	next int64 // the position up to which jobs were read
}

var _ contest.Queue = (*PostgresLog)(nil)

// taken is how many jobs are in each page that is read, and in each batch of
// history: as many as an engine claims at most at a time.
const taken = 2000

// logWriters is how many copy history side by side: while one waits for the
// disk, the other one's rows are on their way.
const logWriters = 2

// The columns are those that a job without any options needs, and those of its
// outcome.
const (
	logJobsSQL = `
create table %s.jobs (
  pos      bigint      generated always as identity primary key,
  lane     bigint      not null,
  created  timestamptz not null default clock_timestamp(),
  attempt  integer     not null,
  priority smallint    not null,
  queue    text        not null,
  kind     text        not null,
  args     jsonb       not null
)`
	logHistorySQL = `
create table %s.history (
  pos      bigint      primary key,
  nonce    bigint      not null,
  engine   bigint      not null,
  started  timestamptz not null,
  finished timestamptz not null,
  attempt  integer     not null,
  slot     smallint    not null,
  outcome  smallint    not null,
  final    boolean     not null
)`
)

// NewPostgresLog creates an empty log in a schema of its own, which must not be
// there yet, for so many that enqueue side by side.
func NewPostgresLog(ctx context.Context, url, schema string, producers int) (*PostgresLog, error) {
	s, err := build(ctx, url, schema, max(producers, logWriters+1), logJobsSQL, logHistorySQL)
	if err != nil {
		return nil, err
	}
	return &PostgresLog{site: s}, nil
}

// Enqueue copies n equal jobs in, in one transaction.
func (l *PostgresLog) Enqueue(ctx context.Context, _, n int) error {
	row := []any{int64(1) << 60, int32(1), int16(0), "default", "load_noop", []byte("null")}
	_, err := l.pool.CopyFrom(ctx, l.table("jobs"), []string{"lane", "attempt", "priority", "queue", "kind", "args"},
		pgx.CopyFromSlice(n, func(int) ([]any, error) { return row, nil }))
	if err != nil {
		return fmt.Errorf("copy %d jobs in: %w", n, err)
	}
	return nil
}

// Work reads jobs and copies a row of history for each, until it is stopped.
// Only one call may be under way.
func (l *PostgresLog) Work(ctx context.Context, handle func(int)) (stop func() error, err error) {
	return work(ctx, logWriters, handle, l.page, l.copyHistory)
}

// Completed counts the history.
func (l *PostgresLog) Completed(ctx context.Context) (n int, err error) {
	err = l.pool.QueryRow(ctx, l.in("select count(*) from %s.history")).Scan(&n)
	return n, err
}

// work has pages of positions read by one goroutine and recorded by some others,
// until it is stopped. Handle is told of each job once it is recorded.
func work(ctx context.Context, writers int, handle func(int), read func(context.Context) ([]int64, error),
	record func(context.Context, []int64) error) (stop func() error, err error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // only stop ends the work
	pages := make(chan []int64, writers)
	g, working := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(pages)
		for working.Err() == nil {
			page, err := read(working)
			switch {
			case working.Err() != nil:
				return nil
			case err != nil:
				return fmt.Errorf("read jobs: %w", err)
			case len(page) == 0:
				time.Sleep(time.Millisecond)
				continue
			}
			select {
			case pages <- page:
			case <-working.Done():
			}
		}
		return nil
	})
	for range writers {
		g.Go(func() error {
			for page := range pages {
				if err := record(context.WithoutCancel(working), page); err != nil {
					return fmt.Errorf("record %d jobs: %w", len(page), err)
				}
				for range page {
					handle(contest.Unnumbered)
				}
			}
			return nil
		})
	}
	return func() error {
		cancel()
		return g.Wait()
	}, nil
}

const logReadSQL = `
select pos, lane, created, attempt, priority, queue, kind, args
from %s.jobs where pos > $1 order by pos limit $2`

// page reads every column of the next jobs, as who performs them would.
func (l *PostgresLog) page(ctx context.Context) ([]int64, error) {
	rows, err := l.pool.Query(ctx, l.in(logReadSQL), l.next, taken)
	if err != nil {
		return nil, err
	}
	page := make([]int64, 0, taken)
	var (
		lane        int64
		attempt     int32
		priority    int16
		created     time.Time
		queue, kind string
		args        pgtype.DriverBytes // not copied
	)
	for rows.Next() {
		if err := rows.Scan(&l.next, &lane, &created, &attempt, &priority, &queue, &kind, &args); err != nil {
			break // rows tells
		}
		page = append(page, l.next)
	}
	return page, rows.Err()
}

func (l *PostgresLog) copyHistory(ctx context.Context, page []int64) error {
	now := time.Now()
	row := []any{nil, int64(1) << 61, int64(1) << 62, now, now, int32(1), int16(1), int16(1), true}
	_, err := l.pool.CopyFrom(ctx, l.table("history"),
		[]string{"pos", "nonce", "engine", "started", "finished", "attempt", "slot", "outcome", "final"},
		pgx.CopyFromSlice(len(page), func(i int) ([]any, error) {
			row[0] = page[i]
			return row, nil
		}))
	return err
}
