package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
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
	{sqlite3.FULL, nil, "the disk is full"},
	{sqlite3.READONLY, nil, "the file may not be written to"},
	{sqlite3.NOTADB, nil, "it is not an SQLite database"},
	{sqlite3.CORRUPT, nil, "the database is damaged"},
}

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
		default:
			return fmt.Errorf("%s: %w", m.words, err)
		}
	}
	if text := err.Error(); strings.Contains(text, "no such table") || strings.Contains(text, "no such index") {
		return fmt.Errorf("%w: it is not installed, or part of it is missing, which stint doctor finds: %w", stint.ErrSchema, err)
	}
	return err
}
