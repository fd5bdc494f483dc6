package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/store"
)

// Config says how a file is opened. The zero value is right for most.
type Config struct {
	// Prefix begins the name of every table, by default "stint_". Lower-case
	// letters, digits and underscores.
	Prefix string

	// Upgrade lets opening bring an older schema up to date, even though it
	// holds jobs. Installing into a file that has none is always done.
	Upgrade bool

	// NoInstall leaves the schema as it is: opening fails with
	// [store.ErrSchema] when it is missing, and creates no file.
	NoInstall bool

	// SkipCheck opens without looking at the schema at all, for programs that
	// migrate. Other methods may fail until that was done.
	SkipCheck bool

	// ReadOnly opens for looking only: whatever writes answers with an error.
	// The file must exist.
	ReadOnly bool

	// Busy is how long to wait for another process that writes, by default
	// 10 s. After it the operation fails.
	Busy time.Duration

	// Poll is how often a listener asks whether another process wrote, by
	// default 10 ms; asking costs a few microseconds. Negative: never, for a
	// file that only this process writes.
	Poll time.Duration

	// OnQuery is told every statement that the store ran, how long that took and
	// what came of it, but for the steps of the schema: see [event.Query]. It is
	// called after each statement, often in the middle of a transaction, and
	// holds up its caller: it must not use the store. Statements in a
	// caller's transaction are the caller's to see, and the question whether the
	// file has changed, which Listen asks at each Poll, is not told. Nil costs nothing.
	OnQuery func(event.Query)

	// Readers is how many connections read at once, by default 4. Each is opened
	// when it is needed first, and keeps up to 2 MB of the file's pages in memory;
	// the one that writes keeps up to 4 MB.
	Readers int
}

// Memory is a path that opens a private database in memory, gone when it is
// closed: for tests and trials. It has a single connection, so no transaction
// of the caller's can reach it.
const Memory = ":memory:"

// Store is an SQLite file with stint's schema. Make one with [Open]. Its
// methods may be called concurrently.
type Store struct {
	path     string
	system   system
	file     os.FileInfo // which file that was when it was opened; nil in memory
	config   Config
	steps    []steps.Step // of the schema, oldest first
	writer   *writer      // nil when read-only
	readers  *readers     // nil in memory
	changed  signal       // rung after every commit that may give engines work
	inboxes  inboxes      // of listeners: for news of permits
	policies policies
	places   livenessLocks
	waits    store.Waits // calls that wait for jobs to end

	mu        sync.Mutex // guards the closing of closed, and joining listening
	closed    chan struct{}
	listening sync.WaitGroup
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Inspector = (*Store)(nil)
	_ store.Listener  = (*Store)(nil)
	_ store.Migrator  = (*Store)(nil)
	_ store.Auditor   = (*Store)(nil)
)

// Close ends listening, waits for what is being written and lets go of the
// file. Later calls of the store's methods fail. An engine that has not left is
// gone for others from then on.
func (s *Store) Close() error {
	if !s.shut() {
		return nil
	}
	s.waits.Close()
	// The last connection to close tidies up, so it is the one that writes.
	s.listening.Wait()
	var errs []error
	if s.readers != nil {
		errs = append(errs, s.readers.close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	errs = append(errs, s.places.close())
	return errors.Join(errs...)
}

// shut closes closed, and reports whether it was the first to do so.
func (s *Store) shut() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return false
	default:
		close(s.closed)
		return true
	}
}

// listen counts one more listener, unless the store is closed.
func (s *Store) listen() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return errClosed
	default:
		s.listening.Add(1)
		return nil
	}
}

var (
	errClosed   = fmt.Errorf("the store is closed: %w", fs.ErrClosed)
	errReadOnly = errors.New("the store was opened for reading only")
)

// write runs do in a transaction of the writer's, which others may share, and
// returns when that is durable. Do may run more than once, and what it did
// when it returns an error is undone.
func (s *Store) write(ctx context.Context, do func(c *conn) (wake bool, err error)) error {
	if s.writer == nil {
		return errReadOnly
	}
	return s.explain(s.writer.do(ctx, do))
}

// read runs do in a transaction that reads: it sees one moment.
func (s *Store) read(ctx context.Context, do func(c *conn) error) error {
	if s.readers == nil {
		return s.write(ctx, func(c *conn) (bool, error) { return false, do(c) })
	}
	return s.explain(s.readers.do(ctx, do))
}
