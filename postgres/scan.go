package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// collect returns what a query does, each row scanned. An error says what was tried.
func collect[V any](ctx context.Context, pool *pgxpool.Pool, what, text string, args []any, scan pgx.RowToFunc[V]) (list []V, err error) {
	rows, err := pool.Query(ctx, text, args...)
	if err == nil {
		list, err = pgx.CollectRows(rows, scan)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, translate(err))
	}
	return list, nil
}

// answerOf returns the one column of the row that a function answers on the
// program's connections. An error says what was tried.
func answerOf[V any](ctx context.Context, s *Store, what, text string, args ...any) (v V, err error) {
	if err = s.operate(ctx, func(row pgx.Row) error { return row.Scan(&v) }, text, args...); err != nil {
		return v, fmt.Errorf("%s: %w", what, err)
	}
	return v, nil
}

// deref is the zero value for null.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// nilText and nilTime are null for what was not set.
func nilText(v string) *string {
	if v == "" {
		return nil
	}
	return &v
}

func nilTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
