package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

const (
	diskFull = "the disk is full"
	damaged  = "the database is damaged (stint doctor --deep tells where)"
)

// meanings says in stint's words what SQLite says by code; the first that
// matches counts. A nil condition has words only.
var meanings = []struct {
	code      error
	condition error
	words     string
}{
	// The same value will be refused each time.
	{sqlite3.CONSTRAINT_CHECK, stint.ErrUnstorable, ""},
	{sqlite3.CONSTRAINT_DATATYPE, stint.ErrUnstorable, ""},
	{sqlite3.CONSTRAINT_NOTNULL, stint.ErrUnstorable, ""},
	{sqlite3.TOOBIG, stint.ErrUnstorable, ""},
	{sqlite3.MISMATCH, stint.ErrUnstorable, ""},
	{sqlite3.BUSY, nil, "another connection kept the file locked for too long"},
	{sqlite3.FULL, nil, diskFull + ", or 2^63 positions are used up"},
	{sqlite3.READONLY, nil, "the file may not be written to"},
	{sqlite3.NOTADB, nil, "it is not an SQLite database"},
	{sqlite3.CORRUPT, nil, damaged},
	{sqlite3.IOERR_DATA, nil, damaged},
	{sqlite3.IOERR_SHORT_READ, nil, damaged},
}

// wrap adds to the error that a function returns what was tried.
func wrap(err *error, what string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), *err)
	}
}

// explain is translate for what the store's own connections say. The driver takes
// a disk that is full for any error of the disk, so the disk is asked.
func (s *Store) explain(err error) error {
	if errors.Is(err, sqlite3.IOERR) && s.path != Memory {
		if _, free, ok := diskOf(filepath.Dir(s.path)); ok && free < aWrite {
			return fmt.Errorf("%s: %w", diskFull, err)
		}
	}
	return translate(err)
}

// aWrite is more than SQLite writes at once.
const aWrite = 1 << 20

// translate adds what SQLite's error means. That stays inside.
func translate(err error) error {
	if err == nil {
		return nil
	}
	for _, m := range meanings {
		switch {
		case !errors.Is(err, m.code):
		case m.condition != nil:
			return fmt.Errorf("%w: %w", m.condition, err)
		case strings.Contains(err.Error(), m.words): // it was translated already
			return err
		default:
			return fmt.Errorf("%s: %w", m.words, err)
		}
	}
	text := err.Error()
	has := func(s string) bool { return strings.Contains(text, s) }
	switch {
	case !errors.Is(err, sqlite3.ERROR):
	case has("no such "), has("unknown function"): // table, index, column; a function that the schema names
		return fmt.Errorf("%w: it is not installed, or part of it is missing, which stint doctor finds: %w", store.ErrSchema, err)
	case has("unsupported file format"), has("malformed JSON"):
		return fmt.Errorf("%s: %w", damaged, err)
	}
	return err
}
