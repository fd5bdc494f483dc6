package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/stint-go/stint/bench/contest"
)

// contestant is a queue at some settings.
type contestant struct {
	name     string
	settings string // what a reader must know to do the same

	// open makes its tables in a new file. Close of the queue closes the file.
	open func(ctx context.Context, path string) (contest.Queue, error)
}

// args are those of a job, the same for everyone.
type args struct {
	N int `json:"n"`
}

// bulk is how all of them take in many jobs: a file has one writer.
var bulk = contest.Bulk{Batch: 5000, Producers: 1}

// on opens the contestant on a file of its own, hands it to f, and removes the
// file.
func (c contestant) on(ctx context.Context, dir string, f func(q contest.Queue) error) (err error) {
	own, err := os.MkdirTemp(dir, "stint-peers-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	q, err := c.open(ctx, filepath.Join(own, "jobs.db"))
	if err != nil {
		return err
	}
	err = f(q)
	if closed := q.Close(); err == nil {
		err = closed
	}
	return err
}

// openFile opens a file for the peers: each commit is flushed to the disk, as
// stint's are. It refuses a driver that did not understand so. With more than one
// connection both peers fail now and then, as the database is locked.
func openFile(ctx context.Context, path string) (*sql.DB, error) {
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() + "?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=10000&_txlock=immediate"
	db, err := sql.Open("sqlite3", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	var journal string
	var synchronous int
	err = db.QueryRowContext(ctx, "select journal_mode, synchronous from pragma_journal_mode, pragma_synchronous").Scan(&journal, &synchronous)
	if err == nil && (journal != "wal" || synchronous != 2) {
		err = fmt.Errorf("journal_mode is %s and synchronous %d, want wal and 2", journal, synchronous)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}
