package sqlite

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/ncruces/go-sqlite3"
	"github.com/stint-go/stint/event"
)

const defaultPrefix = "stint_"

// conn is a connection with its prepared statements. One goroutine at a time
// uses it.
//
// It is the driver's own connection and not one of database/sql: appending
// rows is a third faster so (docs/design has the measurements).
type conn struct {
	db    *sqlite3.Conn
	named func(string) string
	tell  func(event.Query)   // nil without a hook
	stmts map[statement]*stmt // what is prepared
}

// statement is a text as it stands in this package, and how often its row of
// values is repeated.
type statement struct {
	text string
	rows int
}

func (c *conn) close() error {
	for _, s := range c.stmts {
		_ = s.Close()
	}
	return c.db.Close()
}

// named puts the store's table names into a text.
func (s *Store) named(text string) string {
	if s.config.Prefix == defaultPrefix {
		return text
	}
	return strings.ReplaceAll(text, defaultPrefix, s.config.Prefix)
}

// prepare returns the statement of a text, ready to be bound.
func (c *conn) prepare(text string) (*stmt, error) { return c.prepareRows(text, 1) }

// prepareRows returns an insert of so many rows, from the text of one that
// inserts one; see [stmt.set].
func (c *conn) prepareRows(text string, rows int) (*stmt, error) {
	key := statement{text, rows}
	if s, ok := c.stmts[key]; ok {
		s.err = nil
		return s, nil
	}
	var (
		p    *sqlite3.Stmt
		tail string
	)
	err := caught(func() (err error) {
		p, tail, err = c.db.PrepareFlags(repeated(c.named(text), rows), sqlite3.PREPARE_PERSISTENT)
		return err
	})
	if err != nil {
		return nil, err
	} else if strings.TrimSpace(tail) != "" {
		return nil, fmt.Errorf("more than one statement: %q", tail)
	}
	s := &stmt{Stmt: p, conn: c, source: text, bound: make([]binding, p.BindCount()+1)}
	c.stmts[key] = s
	return s, nil
}

// script runs statements without arguments.
func (c *conn) script(text string) error {
	return caught(func() error { return c.db.Exec(text) })
}

// caught has the driver read statements. It panics where the schema of a damaged
// file does not parse: it takes a place in that text for one in the statement.
func caught(do func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case runtime.Error:
			err = fmt.Errorf("%w: its schema cannot be read: %w", sqlite3.CORRUPT, p)
		default:
			panic(p)
		}
	}()
	return do()
}

// exec runs a statement that returns nothing, and returns how many rows it
// changed.
func (c *conn) exec(text string, args ...any) (changed int64, err error) {
	s, err := c.prepare(text)
	if err != nil {
		return 0, err
	}
	s.bind(args...)
	if err := s.run(); err != nil {
		return 0, err
	}
	return c.db.Changes(), nil
}

// query hands each row of a statement to row. The bytes that a row shows are
// SQLite's and gone when row returns.
func (c *conn) query(text string, args []any, row func(s *stmt) error) error {
	s, err := c.prepare(text)
	if err != nil {
		return err
	}
	s.bind(args...)
	return s.each(row)
}

// found reports whether a statement returns a row.
func (c *conn) found(text string, args ...any) (bool, error) {
	found := false
	err := c.query(text, args, func(*stmt) error { found = true; return nil })
	return found, err
}
