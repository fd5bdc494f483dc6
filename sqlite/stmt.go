package sqlite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/stint-go/stint"
)

// stmt is a prepared statement that remembers its first error until it runs,
// so that binding twenty values reads as twenty lines.
type stmt struct {
	*sqlite3.Stmt
	conn   *conn
	source string
	bound  []value // by parameter, from 1
	rows   int     // that it inserts
	base   int     // the parameters before those of the row that is being bound
	names  map[string]string
	err    error
}

// value is the value of a parameter. SQLite keeps a binding until it is
// replaced, and most rows of a batch have most values in common: binding only
// what changed made bulk inserts 15% faster.
type value struct {
	kind byte // 0 unknown
	num  int64
	text string
}

const (
	isNull byte = iota + 1
	isInt
	isText
)

// note remembers what a parameter was bound to, or the error.
func (s *stmt) note(i int, v value, err error) {
	if err != nil {
		v = value{}
		if s.err == nil {
			s.err = fmt.Errorf("parameter %d: %w", i, err)
		}
	}
	s.bound[i] = v
}

// row says which row is bound next, of those that the statement inserts.
func (s *stmt) row(nth int) { s.base = nth * ((len(s.bound) - 1) / s.rows) }

// null, int, text and raw bind the i-th parameter of the row.
func (s *stmt) null(i int) {
	i += s.base
	if s.bound[i].kind != isNull {
		s.note(i, value{kind: isNull}, s.BindNull(i))
	}
}

func (s *stmt) int(i int, v int64) {
	i += s.base
	if b := &s.bound[i]; b.kind != isInt || b.num != v {
		s.note(i, value{kind: isInt, num: v}, s.BindInt64(i, v))
	}
}

func (s *stmt) text(i int, v string) {
	i += s.base
	if b := &s.bound[i]; b.kind != isText || b.text != v {
		s.note(i, value{kind: isText, text: v}, s.BindText(i, v))
	}
}

// raw binds JSON as text; nil is null. It is not remembered.
func (s *stmt) raw(i int, v json.RawMessage) {
	if v == nil {
		s.null(i)
		return
	}
	i += s.base
	s.note(i, value{}, s.BindRawText(i, v))
}

// intOr and textOr bind null for the zero value.
func (s *stmt) intOr(i int, v int64) {
	if v == 0 {
		s.null(i)
	} else {
		s.int(i, v)
	}
}

func (s *stmt) textOr(i int, v string) {
	if v == "" {
		s.null(i)
	} else {
		s.text(i, v)
	}
}

// intOf binds null for nil.
func (s *stmt) intOf(i int, v *int) {
	if v == nil {
		s.null(i)
	} else {
		s.int(i, int64(*v))
	}
}

// bind binds all parameters, for statements that run once for many rows.
func (s *stmt) bind(args ...any) {
	for i, arg := range args {
		switch v := arg.(type) {
		case nil:
			s.null(i + 1)
		case int64:
			s.int(i+1, v)
		case int:
			s.int(i+1, int64(v))
		case *int:
			s.intOf(i+1, v)
		case string:
			s.text(i+1, v)
		case json.RawMessage:
			s.raw(i+1, v)
		default:
			s.note(i+1, value{}, fmt.Errorf("its type is %T", arg))
		}
	}
}

// run executes a statement that returns nothing.
func (s *stmt) run() error {
	if s.err != nil {
		return s.err
	}
	if s.conn.tell == nil {
		return s.Exec()
	}
	began := time.Now()
	err := s.Exec()
	s.conn.told(s.source, began, s.conn.db.Changes(), err)
	return err
}

// each hands every row to row, and stops at the first error.
func (s *stmt) each(row func(s *stmt) error) (err error) {
	if s.err != nil {
		return s.err
	}
	rows := int64(0)
	if s.conn.tell != nil {
		began := time.Now()
		defer func() { s.conn.told(s.source, began, rows, err) }()
	}
	for err == nil && s.Step() {
		rows++
		err = row(s)
	}
	if err == nil {
		err = s.Err()
	}
	if reset := s.Reset(); err == nil {
		err = reset
	}
	return err
}

// The values of a row. Null is the zero value.

func (s *stmt) time(col int) time.Time {
	if s.isNull(col) {
		return time.Time{}
	}
	return fromMicro(s.ColumnInt64(col))
}

func (s *stmt) isNull(col int) bool { return s.ColumnType(col) == sqlite3.NULL }

// maxLosses reads how often a job may be lost; null is the default.
func (s *stmt) maxLosses(col int) int {
	if s.isNull(col) {
		return stint.DefaultMaxLosses
	}
	return s.ColumnInt(col)
}

// name reads a text that many rows have in common, and keeps one copy of it.
func (s *stmt) name(col int) string {
	text := s.ColumnRawText(col)
	if name, ok := s.names[string(text)]; ok {
		return name
	}
	if s.names == nil || len(s.names) >= 256 {
		s.names = map[string]string{}
	}
	name := string(text)
	s.names[name] = name
	return name
}

// json copies a column; null is nil.
func (s *stmt) json(col int) json.RawMessage {
	if s.isNull(col) {
		return nil // one call instead of two
	}
	return json.RawMessage(bytes.Clone(s.ColumnRawText(col)))
}

// jsonLike is json, without a copy if the value equals another one.
func (s *stmt) jsonLike(col int, other json.RawMessage) json.RawMessage {
	text := s.ColumnRawText(col)
	if len(text) > 0 && bytes.Equal(text, other) {
		return slices.Clip(other)
	}
	return json.RawMessage(bytes.Clone(text))
}

// words copies a text; null is empty.
func (s *stmt) words(col int) string {
	if s.isNull(col) {
		return ""
	}
	return s.ColumnText(col)
}

// list reads a column that holds a JSON array; null is nil.
func list[T any](s *stmt, col int) ([]T, error) {
	if s.isNull(col) {
		return nil, nil
	}
	var v []T
	if err := json.Unmarshal(s.ColumnRawText(col), &v); err != nil {
		return nil, fmt.Errorf("column %s: %w", s.ColumnName(col), err)
	}
	return v, nil
}

// arrayOf is the JSON array of a list; never null.
func arrayOf[T any](v []T) string {
	if len(v) == 0 {
		return "[]"
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // numbers and strings always encode
	}
	return string(text)
}

// micro and fromMicro turn instants into what is stored and back; ceilMicros
// turns waits, which may become longer and never shorter.
func micro(t time.Time) int64 { return t.UnixMicro() }

func ceilMicro(t time.Time) int64 { return micro(t.Add(time.Microsecond - 1)) }

func ceilMicros(d time.Duration) int64 { return (d + time.Microsecond - 1).Microseconds() }

func fromMicro(us int64) time.Time { return time.UnixMicro(us).UTC() }
