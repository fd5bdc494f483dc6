package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/steps"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestOpenSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	write(t, garbage, strings.Repeat("this is no database\n", 500))
	plain := filepath.Join(dir, "plain")
	write(t, plain, "")
	other := filepath.Join(dir, "other.db") // somebody else's database
	if _, err := database(t, other).Exec(`create table theirs (x)`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		path   string
		config Config
		is     error
		says   string
	}{
		{"an empty path", "", Config{}, nil, "the path is empty"},
		{"a URI", "file:jobs.db?mode=ro", Config{}, nil, "a path, not a URI"},
		{"a directory that is not there", filepath.Join(dir, "none", "jobs.db"), Config{}, fs.ErrNotExist, "its directory"},
		{"a file for a directory", filepath.Join(plain, "jobs.db"), Config{}, nil, "not a directory"},
		{"a directory for a file", dir, Config{}, nil, "it is a directory"},
		{"a file that is no database", garbage, Config{}, nil, "not an SQLite database"},
		{"a file that is no database, to look at", garbage, Config{ReadOnly: true}, nil, "not an SQLite database"},
		{"no file to look at", filepath.Join(dir, "none.db"), Config{ReadOnly: true}, fs.ErrNotExist, "no such file"},
		{"no file, and none is to be made", filepath.Join(dir, "none.db"), Config{NoInstall: true}, store.ErrSchema, "no such file"},
		{"a database without the schema", other, Config{NoInstall: true}, store.ErrSchema, "no tables stint_*"},
		{"a database without the schema, to look at", other, Config{ReadOnly: true}, store.ErrSchema, "no tables stint_*"},
		{"a bad prefix", filepath.Join(dir, "x.db"), Config{Prefix: "a-b"}, stint.ErrInvalid, "prefix: \"a-b\" is not"},
		{"a prefix that SQLite keeps", filepath.Join(dir, "x.db"), Config{Prefix: "sqlite_x"}, stint.ErrInvalid, "prefix:"},
	} {
		s, err := Open(t.Context(), c.path, c.config)
		if err != nil && strings.Count(err.Error(), "not an SQLite database") > 1 {
			t.Errorf("%s: %v says it more than once", c.name, err)
		}
		if err == nil {
			s.Close()
			t.Errorf("%s: it opened", c.name)
			continue
		}
		if c.is != nil && !errors.Is(err, c.is) {
			t.Errorf("%s: %v does not match %v", c.name, err, c.is)
		}
		if !strings.Contains(err.Error(), c.says) || c.is != stint.ErrInvalid && !strings.HasPrefix(err.Error(), "open ") {
			t.Errorf("%s: %v does not say %q", c.name, err, c.says)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none.db")); err == nil {
		t.Errorf("a file was made that was not to be made")
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpeningNeverUpgradesJobsUnasked(t *testing.T) {
	newer := append(schemaSteps(), steps.Step{Version: 2, Oldest: 2, Text: `create table stint_later (x integer) strict;`})
	dir := t.TempDir()
	path := filepath.Join(dir, "jobs.db")
	old, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	enqueue(t, old, someJobs(1))

	if _, err := openSteps(t.Context(), path, Config{}, newer); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "version 1") {
		t.Errorf("a newer program opens it: %v", err)
	}
	if _, err := openSteps(t.Context(), path, Config{ReadOnly: true}, newer); !errors.Is(err, store.ErrSchema) {
		t.Errorf("a newer program opens it to look: %v", err)
	}
	enqueue(t, old, someJobs(1)) // nothing happened to it
	s, err := openSteps(t.Context(), path, Config{Upgrade: true}, newer)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if info, err := s.Schema(t.Context()); err != nil || info.Installed != 2 || info.Oldest != 2 {
		t.Errorf("after the upgrade the schema is %+v, error %v", info, err)
	}
	old.Close()
	if _, err := Open(t.Context(), path); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "version 2 or newer") {
		t.Errorf("an older program opens it: %v", err)
	}

	empty := filepath.Join(dir, "empty.db")
	open(t, empty)
	e, err := openSteps(t.Context(), empty, Config{}, newer)
	if err != nil {
		t.Fatalf("one without jobs is not upgraded: %v", err)
	}
	defer e.Close()
	if info, _ := e.Schema(t.Context()); info.Installed != 2 {
		t.Errorf("one without jobs has version %d", info.Installed)
	}
}

func TestReadOnlyLooksAndNeverWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	enqueue(t, open(t, path), someJobs(3))
	s := open(t, path, Config{ReadOnly: true})
	if jobs, err := s.Jobs(t.Context(), store.Filter{}); err != nil || len(jobs) != 3 {
		t.Errorf("it sees %d jobs, error %v", len(jobs), err)
	}
	if _, err := s.Enqueue(t.Context(), stint.Tx{}, someJobs(1)); !errors.Is(err, errReadOnly) {
		t.Errorf("an enqueue gives %v", err)
	}
	if _, err := s.Bury(t.Context(), store.Burial{}, nil); !errors.Is(err, errReadOnly) {
		t.Errorf("a burial gives %v", err)
	}
}

func TestPrefixesShareAFileAndNothingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	a, b, c := open(t, path), open(t, path, Config{Prefix: "stint_b_"}), open(t, path, Config{Prefix: "x_"})
	enqueue(t, b, someJobs(2))
	enqueue(t, c, someJobs(3))
	if err := a.Uninstall(t.Context()); err != nil {
		t.Fatal(err)
	}
	for s, want := range map[*Store]int{b: 2, c: 3} {
		w := storetest.Join(t, s, "noop")
		got := w.ClaimAll()
		w.Complete(got...)
		if len(got) != want {
			t.Errorf("prefix %s has %d jobs, want %d", s.config.Prefix, len(got), want)
		}
		storetest.Verify(t, s)
	}
	if text, err := c.PrintSchema(0); err != nil || strings.Contains(text, "stint_") {
		t.Errorf("the schema of prefix x_ speaks of stint_, error %v", err)
	}
}

func TestAStoreInMemoryWorks(t *testing.T) {
	s := open(t, Memory)
	enqueue(t, s, someJobs(5))
	w := storetest.Join(t, s, "noop")
	w.Complete(w.ClaimAll()...)
	storetest.Verify(t, s)
	if counts, err := s.Counts(t.Context()); err != nil || counts[stint.Completed] != 5 {
		t.Errorf("the counts are %v, error %v", counts, err)
	}
	if _, err := open(t, Memory).Job(t.Context(), 1); !errors.Is(err, stint.ErrNotFound) {
		t.Errorf("a second one is not empty: %v", err)
	}
}

func TestAfterCloseEverythingFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	s := open(t, path)
	listening := make(chan error, 1)
	begun := make(chan struct{}, 1)
	go func() {
		listening <- s.Listen(t.Context(), func(store.News) {
			select {
			case begun <- struct{}{}:
			default:
			}
		})
	}()
	<-begun
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Enqueue(t.Context(), stint.Tx{}, someJobs(1)); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("an enqueue gives %v", err)
	}
	if _, err := s.Look(t.Context(), store.LaneHints{}); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a look gives %v", err)
	}
	select {
	case err := <-listening:
		if !errors.Is(err, fs.ErrClosed) {
			t.Errorf("listening gives %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("it listens on")
	}
	if left, _ := filepath.Glob(path + "-*"); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// SQLite itself does not wait when it goes over to WAL.
func TestOpeningWaitsForATransactionOnAFileThatIsNotYetInWALMode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jobs.db")
	tx, err := database(t, path).Begin()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(`create table theirs (x)`); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { _ = tx.Commit() })
	s := open(t, path)
	enqueue(t, s, someJobs(1))
}
