package floor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// open opens a file that commits to the disk, once to write and once to read.
// What sets it up may be several statements.
func open(path, schema string) (writes, reads *sqlite3.Conn, err error) {
	// A WAL of 16 MB before each checkpoint writes pages that many commits
	// touch less often.
	writes, err = connect(path, `
		pragma journal_mode = wal;
		pragma synchronous = full;
		pragma wal_autocheckpoint = 4000;
		pragma cache_size = -16000;
		pragma temp_store = memory;`+schema)
	if err != nil {
		return nil, nil, err
	}
	if reads, err = connect(path, `pragma query_only = on`); err != nil {
		return nil, nil, errors.Join(err, writes.Close())
	}
	return writes, reads, nil
}

func connect(path, setup string) (*sqlite3.Conn, error) {
	c, err := sqlite3.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	if err = c.BusyTimeout(10 * time.Second); err == nil {
		err = c.Exec(setup)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("set up %s: %w", path, err), c.Close())
	}
	return c, nil
}

// prepare prepares a statement that is kept.
func prepare(c *sqlite3.Conn, text string) (*sqlite3.Stmt, error) {
	s, _, err := c.PrepareFlags(text, sqlite3.PREPARE_PERSISTENT)
	return s, err
}

// transact runs do in a transaction, which is on the disk when it returns.
func transact(ctx context.Context, c *sqlite3.Conn, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.Exec("begin immediate"); err != nil {
		return err
	}
	if err := do(); err != nil {
		return errors.Join(err, c.Exec("rollback"))
	}
	return c.Exec("commit")
}
