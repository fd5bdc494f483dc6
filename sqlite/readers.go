package sqlite

import (
	"context"
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// readers are the connections that read. They are opened when needed.
type readers struct {
	open  func(ctx context.Context) (*conn, error)
	slots chan *conn // those that are free; nil for one that was never opened
}

func newReaders(n int, open func(context.Context) (*conn, error)) *readers {
	r := &readers{open: open, slots: make(chan *conn, n)}
	for range n {
		r.slots <- nil
	}
	return r
}

// do runs do in a transaction of a connection of its own. When the context
// ends, so does the query that is running.
func (r *readers) do(ctx context.Context, do func(c *conn) error) (err error) {
	var c *conn
	select {
	case slot, ok := <-r.slots:
		if !ok {
			return errClosed
		}
		c = slot
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { r.slots <- c }()
	if c == nil {
		if c, err = r.open(ctx); err != nil {
			return err
		}
	}
	// An interrupt of the begin could come when the transaction has begun: nothing would
	// end it. However the read ends, also by a panic, the next one begins again.
	if err = c.control(`begin`); err != nil {
		return err
	}
	defer func() {
		c.db.SetInterrupt(context.Background())
		if end := c.control(`rollback`); err == nil {
			err = end // there is nothing to roll back: it only read
		}
	}()
	c.db.SetInterrupt(ctx)
	if err = do(c); errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
		err = ctx.Err()
	}
	return err
}

// close waits for the reads under way and closes the connections.
func (r *readers) close() error {
	var errs []error
	for range cap(r.slots) {
		if c := <-r.slots; c != nil {
			errs = append(errs, c.close())
		}
	}
	close(r.slots)
	return errors.Join(errs...)
}
