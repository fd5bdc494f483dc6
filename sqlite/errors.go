package sqlite

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
)

// translate says in stint's words what SQLite said by code. Its error stays
// inside.
func translate(err error) error {
	var e *sqlite3.Error
	if !errors.As(err, &e) {
		if errors.Is(err, sqlite3.TOOBIG) {
			return fmt.Errorf("%w: %w", stint.ErrUnstorable, err)
		}
		return err
	}
	switch e.ExtendedCode() {
	case sqlite3.CONSTRAINT_CHECK, sqlite3.CONSTRAINT_DATATYPE, sqlite3.CONSTRAINT_NOTNULL:
		return fmt.Errorf("%w: %w", stint.ErrUnstorable, err)
	}
	switch e.Code() {
	case sqlite3.TOOBIG, sqlite3.MISMATCH, sqlite3.RANGE:
		return fmt.Errorf("%w: %w", stint.ErrUnstorable, err)
	case sqlite3.BUSY:
		return fmt.Errorf("another connection kept the file locked for too long: %w", err)
	case sqlite3.FULL:
		return fmt.Errorf("the disk is full: %w", err)
	case sqlite3.READONLY:
		return fmt.Errorf("the file may not be written to: %w", err)
	case sqlite3.NOTADB, sqlite3.CORRUPT:
		return fmt.Errorf("it is not an SQLite database, or damaged: %w", err)
	}
	if strings.Contains(e.Error(), "no such table") {
		return fmt.Errorf("%w: is it installed? %w", stint.ErrSchema, err)
	}
	return err
}
