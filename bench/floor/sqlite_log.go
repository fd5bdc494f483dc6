package floor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint/bench/contest"
)

// SQLiteLog is to a file what [PostgresLog] is to a server. SQLite has one
// writer, so there is nothing to gain by doing two things at once but to read the
// next page while history is written.
type SQLiteLog struct {
	mu                    sync.Mutex // guards what writes
	writes, reads         *sqlite3.Conn
	insert, read, history *sqlite3.Stmt
	next                  int64 // the position up to which jobs were read
}

var _ contest.Queue = (*SQLiteLog)(nil)

const fileSchema = `
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
	fileInsertSQL  = `insert into jobs (lane, created, attempt, priority, queue, kind, args) values (?, ?, 1, 0, 'default', 'load_noop', 'null')`
	fileReadSQL    = `select pos, lane, created, attempt, priority, queue, kind, args from jobs where pos > ? order by pos limit ?`
	fileHistorySQL = `insert into history (pos, attempt, nonce, engine, slot, started, finished, outcome, final) values (?, 1, ?, ?, 1, ?, ?, 1, 1)`
)

// NewSQLiteLog creates an empty log in a file, which must not be there yet.
func NewSQLiteLog(path string) (l *SQLiteLog, err error) {
	l = &SQLiteLog{}
	if l.writes, l.reads, err = open(path, fileSchema); err != nil {
		return nil, err
	}
	var errs [3]error
	l.insert, errs[0] = prepare(l.writes, fileInsertSQL)
	l.history, errs[1] = prepare(l.writes, fileHistorySQL)
	l.read, errs[2] = prepare(l.reads, fileReadSQL)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// Enqueue inserts n equal jobs, in one transaction.
func (l *SQLiteLog) Enqueue(ctx context.Context, _, n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UnixMicro()
	err := transact(ctx, l.writes, func() error {
		err := errors.Join(l.insert.BindInt64(1, 1<<60), l.insert.BindInt64(2, now))
		for range n {
			if err = errors.Join(err, l.insert.Exec()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("insert %d jobs: %w", n, err)
	}
	return nil
}

// Work reads jobs and writes a row of history for each, until it is stopped.
// Only one call may be under way.
func (l *SQLiteLog) Work(ctx context.Context, handle func(int)) (stop func() error, err error) {
	return work(ctx, 1, handle, l.page, l.record)
}

// Completed counts the history.
func (l *SQLiteLog) Completed(context.Context) (n int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, _, err := l.writes.Prepare("select count(*) from history")
	if err != nil {
		return 0, err
	}
	if s.Step() {
		n = s.ColumnInt(0)
	}
	return n, errors.Join(s.Err(), s.Close())
}

// page reads every column of the next jobs, as who performs them would.
func (l *SQLiteLog) page(context.Context) ([]int64, error) {
	err := errors.Join(l.read.BindInt64(1, l.next), l.read.BindInt64(2, taken))
	if err != nil {
		return nil, err
	}
	page, seen := make([]int64, 0, taken), int64(0)
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

func (l *SQLiteLog) record(ctx context.Context, page []int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now().UnixMicro()
	return transact(ctx, l.writes, func() error {
		h := l.history
		err := errors.Join(h.BindInt64(2, 1<<61), h.BindInt64(3, 1<<62), h.BindInt64(4, now), h.BindInt64(5, now))
		for _, pos := range page {
			if err = errors.Join(err, h.BindInt64(1, pos), h.Exec()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes the file.
func (l *SQLiteLog) Close() error { return closeAll(l.reads, l.writes, l.insert, l.read, l.history) }

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
