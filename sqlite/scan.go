package sqlite

import (
	"context"
	"fmt"
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
