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
// so that binding twenty values reads as one line.
type stmt struct {
	*sqlite3.Stmt
	conn   *conn
	source string
	bound  []binding // by parameter, from 1
	names  map[string]string
	err    error
}

// binding is what is remembered of a parameter's value: all but JSON.
type binding struct {
	kind byte
	num  int64
	text string
}

// value is the value of a parameter; the zero value is null.
type value struct {
	binding
	json json.RawMessage
}

const (
	isNull byte = iota
	isInt
	isText
	isJSON
	isUnknown
)

// num, text and raw make values; raw takes JSON as text, and nil is null.
func num[N ~int | ~int64](v N) value { return value{binding: binding{kind: isInt, num: int64(v)}} }

func text[T ~string](v T) value { return value{binding: binding{kind: isText, text: string(v)}} }

func raw(v json.RawMessage) value {
	if v == nil {
		return value{}
	}
	return value{binding: binding{kind: isJSON}, json: v}
}

// numOr and textOr are null for the zero value.
func numOr[N ~int | ~int64](v N) value {
	if v == 0 {
		return value{}
	}
	return num(v)
}

func textOr(v string) value {
	if v == "" {
		return value{}
	}
	return text(v)
}

// numOf is null for nil.
func numOf(v *int) value {
	if v == nil {
		return value{}
	}
	return num(*v)
}

// any is the value for drivers of database/sql.
func (v value) any() any {
	switch v.kind {
	case isInt:
		return v.num
	case isText:
		return v.text
	case isJSON:
		return string(v.json)
	}
	return nil
}

// set binds the values of a row, of those that the statement inserts. SQLite keeps a
// binding until it is replaced, and most rows of a batch have most values in common:
// binding only what changed made bulk inserts 15% faster.
func (s *stmt) set(row int, values ...value) {
	for k := range values {
		v, i := &values[k], row*len(values)+k+1
		b := &s.bound[i]
		if v.kind != isJSON && *b == v.binding {
			continue
		}
		var err error
		switch v.kind {
		case isNull:
			err = s.BindNull(i)
		case isInt:
			err = s.BindInt64(i, v.num)
		case isText:
			err = s.BindText(i, v.text)
		default:
			err = s.BindRawText(i, v.json)
		}
		if *b = v.binding; err != nil {
			b.kind = isUnknown
			s.fail(i, err)
		}
	}
}

func (s *stmt) fail(parameter int, err error) {
	if s.err == nil {
		s.err = fmt.Errorf("parameter %d: %w", parameter, err)
	}
}

// bind binds all parameters, for statements that run once for many rows. One that is
// left out would have the value that the statement ran with before.
func (s *stmt) bind(args ...any) {
	if want := len(s.bound) - 1; len(args) != want {
		s.err = fmt.Errorf("%d values for %d parameters: %s", len(args), want, s.source)
		return
	}
	for i, arg := range args {
		v := value{}
		switch arg := arg.(type) {
		case nil:
		case int64:
			v = num(arg)
		case int:
			v = num(arg)
		case *int:
			v = numOf(arg)
		case string:
			v = text(arg)
		case json.RawMessage:
			v = raw(arg)
		default:
			s.fail(i+1, fmt.Errorf("its type is %T", arg))
		}
		s.set(i, v)
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

// arrayOrNil is null for none.
func arrayOrNil[T any](v []T) any {
	if len(v) == 0 {
		return nil
	}
	return arrayOf(v)
}

// micro and fromMicro turn instants into what is stored and back; ceilMicros
// turns waits, which may become longer and never shorter.
func micro(t time.Time) int64 { return t.UnixMicro() }

func ceilMicro(t time.Time) int64 { return micro(t.Add(time.Microsecond - 1)) }

func ceilMicros(d time.Duration) int64 { return (d + time.Microsecond - 1).Microseconds() }

func fromMicro(us int64) time.Time { return time.UnixMicro(us).UTC() }
