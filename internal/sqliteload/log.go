package sqliteload

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
	"golang.org/x/sync/errgroup"
)

// Log is a queue stripped to what nobody can leave out who keeps a history of
// durable jobs: rows are inserted in bulk, read in order, and for each of them
// one row of history is inserted behind. Both tables have their key and no
// index, and no check. Nobody claims, dies, fails or waits, and the rows of
// history are made up without looking at the jobs.
//
// SQLite has one writer, so there is nothing to gain by doing two things at
// once but to read the next page while history is written, which one goroutine
// does.
type Log struct {
	writes, reads         *sqlite3.Conn
	insert, read, history *sqlite3.Stmt
	o                     LogOptions
	next                  int64 // the position up to which jobs were read
}

// LogOptions say how a [Log] works. All are required.
type LogOptions struct {
	Batch int // jobs in each transaction that inserts them
	Taken int // jobs in each page that is read, and in each batch of history
}

const logSchema = `
create table jobs (
  pos      integer primary key autoincrement,
  lane     integer not null,
  created  integer not null,
  attempt  integer not null,
  priority integer not null,
  queue    text    not null,
  kind     text    not null,
  args     text    not null
) strict;
create table history (
  pos      integer primary key,
  attempt  integer not null,
  nonce    integer not null,
  engine   integer not null,
  slot     integer not null,
  started  integer not null,
  finished integer not null,
  outcome  integer not null,
  final    integer not null
) strict;`

const (
	logInsertSQL  = `insert into jobs (lane, created, attempt, priority, queue, kind, args) values (?, ?, 1, 0, 'default', 'load_noop', 'null')`
	logReadSQL    = `select pos, lane, created, attempt, priority, queue, kind, args from jobs where pos > ? order by pos limit ?`
	logHistorySQL = `insert into history (pos, attempt, nonce, engine, slot, started, finished, outcome, final) values (?, 1, ?, ?, 1, ?, ?, 1, 1)`
)

// NewLog creates an empty log in a file, which must not be there yet. Close it
// when done.
func NewLog(path string, o LogOptions) (l *Log, err error) {
	l = &Log{o: o}
	if l.writes, l.reads, err = open(path, logSchema); err != nil {
		return nil, err
	}
	var errs [3]error
	l.insert, errs[0] = prepare(l.writes, logInsertSQL)
	l.history, errs[1] = prepare(l.writes, logHistorySQL)
	l.read, errs[2] = prepare(l.reads, logReadSQL)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Append inserts n equal jobs and tells done of each batch that was committed.
// Only one call of the log's methods may be under way.
func (l *Log) Append(ctx context.Context, n int, done func(int)) error {
	for n > 0 {
		size := min(n, l.o.Batch)
		now := time.Now().UnixMicro()
		err := transact(ctx, l.writes, func() error {
			err := errors.Join(l.insert.BindInt64(1, 1<<60), l.insert.BindInt64(2, now))
			for range size {
				if err = errors.Join(err, l.insert.Exec()); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("insert %d jobs: %w", size, err)
		}
		done(size)
		n -= size
	}
	return nil
}

// Work reads the next n jobs, which must have been appended, and writes a row of
// history for each. It tells done of each batch that was committed.
func (l *Log) Work(ctx context.Context, n int, done func(int)) error {
	pages := make(chan []int64, 1)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(pages)
		return l.pages(ctx, n, pages)
	})
	g.Go(func() error {
		for page := range pages {
			if err := l.record(ctx, page); err != nil {
				return err
			}
			done(len(page))
		}
		return nil
	})
	return g.Wait()
}

// pages sends on the positions of the next n jobs.
func (l *Log) pages(ctx context.Context, n int, to chan<- []int64) error {
	for n > 0 {
		page, err := l.page(min(n, l.o.Taken))
		switch {
		case err != nil:
			return fmt.Errorf("read jobs: %w", err)
		case len(page) == 0:
			return fmt.Errorf("read jobs: %d of them are not there", n)
		}
		n -= len(page)
		select {
		case to <- page:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// page reads every column of so many jobs, as who performs them would.
func (l *Log) page(n int) ([]int64, error) {
	err := errors.Join(l.read.BindInt64(1, l.next), l.read.BindInt64(2, int64(n)))
	if err != nil {
		return nil, err
	}
	page, seen := make([]int64, 0, n), int64(0)
	for l.read.Step() {
		l.next = l.read.ColumnInt64(0)
		for number := 1; number <= 4; number++ {
			seen += l.read.ColumnInt64(number)
		}
		for text := 5; text <= 7; text++ {
			seen += int64(len(l.read.ColumnRawText(text)))
		}
		page = append(page, l.next)
	}
	return page, errors.Join(l.read.Err(), l.read.Reset())
}

func (l *Log) record(ctx context.Context, page []int64) error {
	now := time.Now().UnixMicro()
	err := transact(ctx, l.writes, func() error {
		h := l.history
		err := errors.Join(h.BindInt64(2, 1<<61), h.BindInt64(3, 1<<62), h.BindInt64(4, now), h.BindInt64(5, now))
		for _, pos := range page {
			if err = errors.Join(err, h.BindInt64(1, pos), h.Exec()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the history of %d jobs: %w", len(page), err)
	}
	return nil
}

// Close closes the file.
func (l *Log) Close() error { return closeAll(l.reads, l.writes, l.insert, l.read, l.history) }

// closeAll closes a file's connections, the one that writes last: it tidies up.
func closeAll(reads, writes *sqlite3.Conn, stmts ...*sqlite3.Stmt) error {
	var errs []error
	for _, s := range stmts {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(append(errs, reads.Close(), writes.Close())...)
}
