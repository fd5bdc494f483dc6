package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// writer is the connection that writes, and the queue before it.
//
// There is no lasting goroutine: the caller that finds the queue at rest starts one,
// and it ends with the queue. It begins a transaction first, which may mean to
// wait for another process, and only then takes what has gathered meanwhile;
// so a caller that gives up waiting has written nothing.
type writer struct {
	ring func() // called after a commit that may give engines work

	conn *conn // belongs to the running goroutine

	mu      sync.Mutex // guards what follows; never held while anything waits
	queue   []*part
	running bool
	closed  bool
	resting chan struct{} // closed when closed and not running
}

// part is what one caller wants written.
type part struct {
	do   func(c *conn) (wake bool, err error)
	wake bool
	err  error
	done chan struct{} // closed when err is final
}

func newWriter(c *conn, ring func()) *writer {
	return &writer{conn: c, ring: ring, resting: make(chan struct{})}
}

// do has one part written and waits until it is durable.
func (w *writer) do(ctx context.Context, do func(c *conn) (bool, error)) error {
	p, err := w.submit(ctx, do)
	if err != nil {
		return err
	}
	return w.wait(ctx, p)
}

// here is do for what must run on the caller's goroutine, because it calls
// the caller back: the connection comes to it, and the writer waits.
func (w *writer) here(ctx context.Context, do func(c *conn) (bool, error)) error {
	type result struct {
		wake bool
		err  error
	}
	grant, back := make(chan *conn), make(chan result)
	p, err := w.submit(ctx, func(c *conn) (bool, error) {
		grant <- c
		r := <-back
		return r.wake, r.err
	})
	if err != nil {
		return err
	}
	for {
		select {
		case c := <-grant:
			func() {
				// A callback that panics, or ends its goroutine as t.Fatal
				// does, must not leave the writer waiting.
				r := result{err: errors.New("the callback did not return")}
				defer func() { back <- r }()
				r.wake, r.err = do(c)
			}()
		case <-p.done:
			return p.err
		case <-ctx.Done():
			if w.withdraw(p) {
				return ctx.Err()
			}
			ctx = context.WithoutCancel(ctx)
		}
	}
}

// submit queues a part, unless its caller has given up already.
func (w *writer) submit(ctx context.Context, do func(c *conn) (bool, error)) (*part, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	p := &part{do: do, done: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return nil, errClosed
	}
	w.queue = append(w.queue, p)
	if !w.running {
		w.running = true
		go w.run()
	}
	return p, nil
}

func (w *writer) wait(ctx context.Context, p *part) error {
	select {
	case <-p.done:
	case <-ctx.Done():
		if w.withdraw(p) {
			return ctx.Err()
		}
		<-p.done // it is being written
	}
	return p.err
}

// withdraw takes a part out of the queue, if it is still there.
func (w *writer) withdraw(p *part) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.Index(w.queue, p)
	if i >= 0 {
		w.queue = slices.Delete(w.queue, i, i+1)
	}
	return i >= 0
}

// close waits until everything in the queue is written.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	if !w.running {
		close(w.resting)
	}
	w.mu.Unlock()
	<-w.resting
	return w.conn.close()
}

// run writes until the queue is empty.
func (w *writer) run() {
	for {
		err := w.conn.control(`begin immediate`)
		parts := w.take()
		if err == nil {
			w.together(parts)
		}
		wake := false
		for _, p := range parts {
			if err != nil {
				p.err = err
			}
			wake = wake || p.wake && p.err == nil
			close(p.done)
		}
		if wake {
			w.ring()
		}
		if w.rest() {
			return
		}
	}
}

func (w *writer) take() []*part {
	w.mu.Lock()
	defer w.mu.Unlock()
	parts := w.queue
	w.queue = nil
	return parts
}

// rest reports whether there is nothing more to do.
func (w *writer) rest() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		return false
	}
	w.running = false
	if w.closed {
		close(w.resting)
	}
	return true
}

// together runs parts in the transaction that has begun and commits them.
// Should SQLite undo the transaction as a whole, as when the disk is full,
// each part is tried again in one of its own.
func (w *writer) together(parts []*part) {
	if len(parts) == 1 {
		w.finish(parts[0])
		return
	}
	for _, p := range parts {
		if !w.apart(p) {
			w.oneByOne(parts)
			return
		}
	}
	if err := w.conn.control(`commit`); err != nil {
		w.undo()
		w.oneByOne(parts)
	}
}

// apart runs one part of several. It reports whether the transaction still
// stands.
func (w *writer) apart(p *part) bool {
	if err := w.conn.control(`savepoint part`); err != nil {
		return false
	}
	if p.wake, p.err = p.do(w.conn); p.err != nil {
		if w.conn.db.GetAutocommit() || w.conn.control(`rollback to part`) != nil {
			return false
		}
	}
	return w.conn.control(`release part`) == nil
}

func (w *writer) oneByOne(parts []*part) {
	w.undo()
	for _, p := range parts {
		if p.err = w.conn.control(`begin immediate`); p.err == nil {
			w.finish(p)
		}
	}
}

// finish runs a part that has the transaction for itself.
func (w *writer) finish(p *part) {
	if p.wake, p.err = p.do(w.conn); p.err == nil {
		p.err = w.conn.control(`commit`)
	}
	if p.err != nil {
		w.undo()
	}
}

// undo ends a transaction that is still open. It cannot fail in a way that
// matters: the next begin would.
func (w *writer) undo() {
	if !w.conn.db.GetAutocommit() {
		_ = w.conn.control(`rollback`)
	}
}
