package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/stint-go/stint/internal/rows"
)

// oneRow returns what scan makes of the last row of a query; the zero value
// without one.
func oneRow[V any](c *conn, scan func(q *stmt) V, text string, args ...any) (v V, err error) {
	err = c.query(text, args, func(q *stmt) error {
		v = scan(q)
		return nil
	})
	return v, err
}

// allRows returns what scan makes of each row of a query.
func allRows[V any](c *conn, scan func(q *stmt) V, text string, args ...any) (list []V, err error) {
	err = c.query(text, args, func(q *stmt) error {
		list = append(list, scan(q))
		return nil
	})
	return list, err
}

// scan reads the columns of a row, in turn. Null leaves what it would be read into
// as it is.
func (s *stmt) scan(into ...any) error {
	for col, v := range into {
		if s.isNull(col) {
			continue
		}
		switch v := v.(type) {
		case *bool:
			*v = s.ColumnInt64(col) != 0
		case *time.Time:
			*v = s.time(col)
		case *time.Duration:
			*v = time.Duration(s.ColumnInt64(col)) * time.Microsecond
		case *json.RawMessage:
			*v = s.json(col)
		default:
			switch field := reflect.ValueOf(v).Elem(); {
			case field.CanInt():
				field.SetInt(s.ColumnInt64(col))
			case field.Kind() == reflect.String:
				field.SetString(s.ColumnText(col))
			default:
				if err := json.Unmarshal(s.ColumnRawText(col), v); err != nil {
					return fmt.Errorf("column %s: %w", s.ColumnName(col), err)
				}
			}
		}
	}
	return nil
}

// fieldsOf returns the rows of a query, each read into the fields of a struct.
func fieldsOf[V any](c *conn, text string, args ...any) ([]V, error) {
	return readRows(c, func(v *V, q *stmt) error { return q.scan(rows.Fields(v)...) }, text, args...)
}

// readRows returns the rows of a query, each as read reads it.
func readRows[V any](c *conn, read func(v *V, q *stmt) error, text string, args ...any) (list []V, err error) {
	err = c.query(text, args, func(q *stmt) error {
		var v V
		err := read(&v, q)
		list = append(list, v)
		return err
	})
	return list, err
}

// firstNumber reads the first column of a row as any kind of number, and firstText as any
// kind of text. Null is the zero value.
func firstNumber[N ~int | ~int8 | ~int64](q *stmt) N { return N(q.ColumnInt64(0)) }

func firstText[T ~string](q *stmt) T { return T(q.ColumnText(0)) }

// reading returns what do reads in one transaction. An error says what was tried.
func reading[V any](ctx context.Context, s *Store, what string, do func(c *conn) (V, error)) (v V, err error) {
	err = s.read(ctx, func(c *conn) (err error) {
		v, err = do(c)
		return err
	})
	if err != nil {
		var none V
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}

// writing returns what do answers in one transaction that writes, and wakes
// engines if do says so. An error says what was tried.
func writing[V any](ctx context.Context, s *Store, what string, do func(c *conn) (v V, wake bool, err error)) (v V, err error) {
	err = s.write(ctx, func(c *conn) (wake bool, err error) {
		v, wake, err = do(c)
		return wake, err
	})
	if err != nil {
		var none V
		return none, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}

// collect returns what scan makes of each row of a query in a transaction of its
// own. An error says what was tried.
func collect[V any](ctx context.Context, s *Store, what, text string, args []any, scan func(q *stmt) V) ([]V, error) {
	return reading(ctx, s, what, func(c *conn) ([]V, error) { return allRows(c, scan, text, args...) })
}
