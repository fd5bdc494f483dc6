package pgload

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sync/errgroup"
)

// Log is a queue stripped to what nobody can leave out who keeps a history of
// durable jobs: rows are copied in, read in order, and for each of them one row
// of history is copied in behind. Both tables have a primary key and no other
// index. Nobody claims, so a second reader would do everything twice; nobody
// dies, nothing fails, nothing is scheduled, and the rows of history are made
// up without looking at the jobs. What an engine reaches of this is what it
// pays for everything that Log does not do.
//
//	producers ── COPY, a batch each ──▶ jobs ── select … order by pos ──▶ one reader
//	                                                                          │
//	             history ◀── COPY, a batch each ── two writers ◀──────────────┘
//
// Every batch is a transaction and is flushed to the disk before it counts. The
// reader is ahead of the writers, so that server and client are busy at once.
type Log struct {
	*site
	o    LogOptions
	next int64 // the position up to which jobs were read
}

// LogOptions say how a [Log] works. All are required.
type LogOptions struct {
	Producers int // that copy jobs in side by side
	Batch     int // jobs in each of their transactions
	Taken     int // jobs in each page that is read, and in each batch of history
}

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

// NewLog creates an empty log in a schema of its own, which must not be there
// yet. Close it when done.
func NewLog(ctx context.Context, url, schema string, o LogOptions) (*Log, error) {
	s, err := build(ctx, url, schema, max(o.Producers, logWriters+1), logJobsSQL, logHistorySQL)
	if err != nil {
		return nil, err
	}
	return &Log{site: s, o: o}, nil
}

// Append copies n equal jobs in and tells done of each batch that was
// committed, from several goroutines.
func (l *Log) Append(ctx context.Context, n int, done func(int)) error {
	var from atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range l.o.Producers {
		g.Go(func() error {
			for {
				begin := from.Add(int64(l.o.Batch)) - int64(l.o.Batch)
				size := min(int64(n)-begin, int64(l.o.Batch))
				if size <= 0 {
					return nil
				}
				if err := l.copyJobs(ctx, int(size)); err != nil {
					return err
				}
				done(int(size))
			}
		})
	}
	return g.Wait()
}

func (l *Log) copyJobs(ctx context.Context, n int) error {
	row := []any{int64(1) << 60, int32(1), int16(0), "default", "load_noop", []byte("null")}
	_, err := l.pool.CopyFrom(ctx, l.table("jobs"), []string{"lane", "attempt", "priority", "queue", "kind", "args"},
		pgx.CopyFromSlice(n, func(int) ([]any, error) { return row, nil }))
	if err != nil {
		return fmt.Errorf("copy %d jobs in: %w", n, err)
	}
	return nil
}

// Work reads the next n jobs, which must have been appended, and copies a row
// of history for each. It tells done of each batch that was committed, from
// several goroutines. Only one call may be under way.
func (l *Log) Work(ctx context.Context, n int, done func(int)) error {
	pages := make(chan []int64, logWriters)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(pages)
		return l.read(ctx, n, pages)
	})
	for range logWriters {
		g.Go(func() error {
			for page := range pages {
				if err := l.copyHistory(ctx, page); err != nil {
					return err
				}
				done(len(page))
			}
			return nil
		})
	}
	return g.Wait()
}

const logReadSQL = `
select pos, lane, created, attempt, priority, queue, kind, args
from %s.jobs where pos > $1 order by pos limit $2`

// read sends on the positions of the next n jobs, in pages.
func (l *Log) read(ctx context.Context, n int, pages chan<- []int64) error {
	for text := l.in(logReadSQL); n > 0; {
		rows, err := l.pool.Query(ctx, text, l.next, min(n, l.o.Taken))
		if err != nil {
			return fmt.Errorf("read jobs: %w", err)
		}
		page := make([]int64, 0, l.o.Taken)
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
		switch err := rows.Err(); {
		case err != nil:
			return fmt.Errorf("read jobs: %w", err)
		case len(page) == 0:
			return fmt.Errorf("read jobs: %d of them are not there", n)
		}
		n -= len(page)
		select {
		case pages <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (l *Log) copyHistory(ctx context.Context, page []int64) error {
	now := time.Now()
	row := []any{nil, int64(1) << 61, int64(1) << 62, now, now, int32(1), int16(1), int16(1), true}
	_, err := l.pool.CopyFrom(ctx, l.table("history"),
		[]string{"pos", "nonce", "engine", "started", "finished", "attempt", "slot", "outcome", "final"},
		pgx.CopyFromSlice(len(page), func(i int) ([]any, error) {
			row[0] = page[i]
			return row, nil
		}))
	if err != nil {
		return fmt.Errorf("copy the history of %d jobs in: %w", len(page), err)
	}
	return nil
}
