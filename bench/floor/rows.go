package floor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Rows is a table that takes single rows, each in a transaction of its own:
// what storing a job would cost if nobody had to read it.
type Rows struct {
	mu            sync.Mutex // guards the connections
	writes, reads *sqlite3.Conn
	insert, read  *sqlite3.Stmt
}

// NewRows creates the table in a file, which must not be there yet. Its rows
// are those of [SQLiteLog]. Close it when done.
func NewRows(path string) (r *Rows, err error) {
	r = &Rows{}
	if r.writes, r.reads, err = open(path, fileSchema); err != nil {
		return nil, err
	}
	var errs [2]error
	r.insert, errs[0] = prepare(r.writes, fileInsertSQL)
	r.read, errs[1] = prepare(r.reads, `select queue, kind, args from jobs where pos = ?`)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Insert inserts one row durably. It may be called concurrently; SQLite writes
// one after the other.
func (r *Rows) Insert(ctx context.Context, _ int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.insertLocked(ctx)
}

func (r *Rows) insertLocked(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := errors.Join(r.insert.BindInt64(1, 1<<60), r.insert.BindInt64(2, time.Now().UnixMicro()))
	if err = errors.Join(err, r.insert.Exec()); err != nil {
		return fmt.Errorf("insert a row: %w", err)
	}
	return nil
}

// Round inserts one row durably and reads it over another connection. Nobody is
// told of it: SQLite cannot.
func (r *Rows) Round(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.insertLocked(ctx); err != nil {
		return err
	}
	if err := r.read.BindInt64(1, r.writes.LastInsertRowID()); err != nil {
		return err
	}
	found := r.read.Step()
	if err := errors.Join(r.read.Err(), r.read.Reset()); err != nil {
		return fmt.Errorf("read the row: %w", err)
	}
	if !found {
		return errors.New("read the row: it is not there")
	}
	return nil
}

// Close closes the file.
func (r *Rows) Close() error { return closeAll(r.reads, r.writes, r.insert, r.read) }
