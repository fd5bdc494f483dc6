package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
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
	// [stint.ErrSchema] when it is missing, and creates no file.
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

	// Readers is how many connections read at once, by default 4.
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
	config   Config
	steps    []string // of the schema, oldest first
	writer   *writer  // nil when read-only
	readers  *readers // nil in memory
	changed  signal   // rung after every commit that may give engines work
	policies policies
	closed   chan struct{}
	closing  sync.Once
}

var (
	_ stint.Store     = (*Store)(nil)
	_ stint.Inspector = (*Store)(nil)
	_ stint.Listener  = (*Store)(nil)
	_ stint.Migrator  = (*Store)(nil)
	_ stint.Auditor   = (*Store)(nil)
)

// Open opens a file, creating it and the schema when there is none. Any number
// of processes may do so at once. Close the store when done.
//
// The path is a path, never a URI; see also [Memory]. A file that needs
// another version of the schema gives [stint.ErrSchema].
func Open(ctx context.Context, path string, config ...Config) (*Store, error) {
	var c Config
	if len(config) > 0 {
		c = config[0]
	}
	return openSteps(ctx, path, c, schemaSteps())
}

// openSteps opens with a schema that tests may choose.
func openSteps(ctx context.Context, path string, c Config, steps []string) (*Store, error) {
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.Busy = cmp.Or(c.Busy, 10*time.Second)
	c.Poll = cmp.Or(c.Poll, 10*time.Millisecond)
	c.Readers = max(1, cmp.Or(c.Readers, 4))
	if !prefixForm.MatchString(c.Prefix) || strings.HasPrefix(c.Prefix, "sqlite_") {
		return nil, &stint.InvalidError{Field: "prefix", Problem: fmt.Sprintf("%q is not lower-case letters, digits and underscores, 1 to 48", c.Prefix)}
	}
	s := &Store{path: path, config: c, steps: steps, closed: make(chan struct{})}
	if err := s.open(ctx); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

var prefixForm = regexp.MustCompile(`^[a-z_][a-z0-9_]{0,47}$`)

func (s *Store) open(ctx context.Context) error {
	if s.path != Memory {
		if err := s.checkPath(); err != nil {
			return err
		}
		s.readers = newReaders(s.config.Readers, func() (*conn, error) { return s.connect(false) })
	}
	if !s.config.ReadOnly {
		c, err := s.connect(true)
		if err != nil {
			return err
		}
		s.writer = newWriter(c, s.changed.ring)
	}
	if s.config.SkipCheck {
		return nil
	}
	return s.ready(ctx)
}

// checkPath finds out what SQLite would not say: its answer to most mistakes
// is that it was unable to open the database file.
func (s *Store) checkPath() error {
	switch {
	case s.path == "":
		return errors.New("the path is empty")
	case strings.HasPrefix(s.path, "file:"):
		return errors.New("give a path, not a URI")
	}
	path, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	s.path = path
	dir, err := os.Stat(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("its directory: %w", err)
	} else if !dir.IsDir() {
		return fmt.Errorf("%s is not a directory", filepath.Dir(path))
	}
	file, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && s.config.NoInstall:
		return fmt.Errorf("%w: there is no such file: %w", stint.ErrSchema, err)
	case errors.Is(err, fs.ErrNotExist) && !s.config.ReadOnly:
		return nil
	case err != nil:
		return err
	case file.IsDir():
		return errors.New("it is a directory")
	}
	return nil
}

// connect opens a connection and settles how it behaves.
func (s *Store) connect(writes bool) (*conn, error) {
	flags := sqlite3.OPEN_READONLY
	if !s.config.ReadOnly {
		// A reader of a WAL file writes too: to the index of the WAL.
		flags = sqlite3.OPEN_READWRITE
	}
	if writes && !s.config.NoInstall {
		flags |= sqlite3.OPEN_CREATE
	}
	db, err := sqlite3.OpenFlags(s.path, flags)
	if err != nil {
		return nil, translate(err)
	}
	c := &conn{db: db, named: s.named, stmts: map[string]*stmt{}}
	if err := c.settle(s.config, writes); err != nil {
		_ = c.close()
		return nil, translate(err)
	}
	return c, nil
}

// Close waits for what is being written, lets go of the file and ends
// listening. Later calls of the store's methods fail.
func (s *Store) Close() error {
	var errs []error
	s.closing.Do(func() {
		close(s.closed)
		if s.readers != nil {
			errs = append(errs, s.readers.close())
		}
		if s.writer != nil {
			errs = append(errs, s.writer.close())
		}
	})
	return errors.Join(errs...)
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
	return translate(s.writer.do(ctx, do))
}

// read runs do in a transaction that reads: it sees one moment.
func (s *Store) read(ctx context.Context, do func(c *conn) error) error {
	if s.readers == nil {
		return s.write(ctx, func(c *conn) (bool, error) { return false, do(c) })
	}
	return translate(s.readers.do(ctx, do))
}
