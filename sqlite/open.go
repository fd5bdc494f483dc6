package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/store"
)

// Open opens a file, creating it and the schema when there is none. Any number
// of processes may do so at once. Close the store when done.
//
// The path is a path, never a URI; see also [Memory]. A file that needs
// another version of the schema gives [store.ErrSchema].
func Open(ctx context.Context, path string, config ...Config) (*Store, error) {
	var c Config
	if len(config) > 0 {
		c = config[0]
	}
	return openSteps(ctx, path, c, schemaSteps())
}

// openSteps opens with a schema that tests may choose.
func openSteps(ctx context.Context, path string, c Config, all []steps.Step) (*Store, error) {
	return openOn(ctx, system{}, path, c, all)
}

// openOn opens on a system that tests may choose.
func openOn(ctx context.Context, on system, path string, c Config, all []steps.Step) (*Store, error) {
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.Busy = cmp.Or(c.Busy, 10*time.Second)
	c.Poll = cmp.Or(c.Poll, 10*time.Millisecond)
	c.Readers = max(1, cmp.Or(c.Readers, 4))
	if !prefixForm.MatchString(c.Prefix) || strings.HasPrefix(c.Prefix, "sqlite_") {
		return nil, &stint.InvalidError{Field: "prefix", Problem: fmt.Sprintf("%q is not lower-case letters, digits and underscores, 1 to 48", c.Prefix)}
	}
	s := &Store{path: path, system: on, config: c, steps: all, closed: make(chan struct{})}
	s.waits = store.NewWaits(s.ended)
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
		s.places.path = s.path
		s.readers = newReaders(s.config.Readers, func(ctx context.Context) (*conn, error) { return s.connect(ctx, false) })
	}
	if !s.config.ReadOnly {
		c, err := s.connect(ctx, true)
		if err != nil {
			return err
		}
		s.writer = newWriter(c, s.changed.ring)
		if err := s.keepNames(); err != nil {
			return err
		}
	}
	if s.path != Memory {
		file, err := os.Stat(s.path)
		if err != nil {
			return err
		}
		s.file = file
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
		return fmt.Errorf("%w: there is no such file: %w", store.ErrSchema, err)
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
func (s *Store) connect(ctx context.Context, writes bool) (*conn, error) {
	flags := sqlite3.OPEN_READONLY
	if !s.config.ReadOnly {
		// A reader of a WAL file writes too: to the index of the WAL.
		flags = sqlite3.OPEN_READWRITE
	}
	if writes && !s.config.NoInstall {
		flags |= sqlite3.OPEN_CREATE
	}
	db, err := sqlite3.OpenFlags(s.system.filename(s.path), flags)
	if err != nil {
		return nil, cmp.Or(s.inPlace(), translate(err))
	}
	c := &conn{db: db, named: s.named, tell: s.config.OnQuery, stmts: map[statement]*stmt{}}
	err = c.settle(ctx, s.config, writes)
	if err == nil {
		// A connection that is opened later must be to the same file, and that must
		// be known before it reads: the WAL at that place is the other one's, and a
		// connection that used it would take it away when it closes.
		err = s.inPlace()
	}
	if err == nil {
		err = s.share(c)
	}
	if err == nil {
		err = s.inPlace()
	}
	if err != nil {
		_ = c.close()
		return nil, cmp.Or(s.inPlace(), s.kept(), s.explain(err))
	}
	return c, nil
}

// settle says how the connection behaves.
func (c *conn) settle(ctx context.Context, config Config, writes bool) error {
	if err := c.db.BusyTimeout(config.Busy); err != nil {
		return err
	}
	if !writes {
		return c.script(`pragma query_only = on; pragma temp_store = memory`)
	}
	if readOnly, _ := c.db.ReadOnly("main"); readOnly {
		return errors.New("the file, or its directory, may not be written to")
	}
	// NORMAL would lose commits at a power cut, and on macOS, where a plain sync
	// leaves them in the drive's cache, so would FULL without fullfsync. The file
	// is written to when it goes over to WAL, so that comes after it.
	//
	// Going over needs the file alone, and SQLite does not wait for that: a few
	// in a thousand of those who create a file together with others are told
	// that it is busy, as is whoever meets a transaction.
	for deadline := time.Now().Add(config.Busy); ; {
		err := c.script(`
			pragma synchronous = full;
			pragma fullfsync = on;
			pragma journal_mode = wal`)
		if err == nil {
			break
		} else if !errors.Is(err, sqlite3.BUSY) || time.Now().After(deadline) || ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		time.Sleep(time.Millisecond + rand.N(5*time.Millisecond))
	}
	// A WAL of 16 MB before each checkpoint, instead of 4, writes pages that many
	// commits touch less often. A cache of 4 MB holds the ends of all tables,
	// where everything is written; with 16 MB nothing was faster, and the process
	// was as much larger.
	return c.script(`
		pragma wal_autocheckpoint = 4000;
		pragma journal_size_limit = 67108864;
		pragma cache_size = -4000;
		pragma temp_store = memory`)
}

// errMoved says that the store has a file open that no other program will ever see.
var errMoved = errors.New("what is done here is lost when this process ends: put the file back, or start the program again")

// inPlace fails when the file that the store has open does not stand at its
// path any more. SQLite would not notice: an open file is there until it is
// closed, and goes on taking what no other program will read, while those that open
// the path later make or find another file there.
//
// It is asked by what is called now and then: engines ask at each beat, and
// so do checks of readiness. Frequent work does not pay for it. If it cannot be
// found out, the file counts as in place.
func (s *Store) inPlace() error {
	if s.file == nil {
		return nil
	}
	now, err := os.Stat(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed: %w", s.path, errMoved)
	case err == nil && !os.SameFile(now, s.file):
		return fmt.Errorf("%s was replaced by another file: %w", s.path, errMoved)
	}
	return nil
}
