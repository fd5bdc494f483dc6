package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint/internal/rows"
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

// scan reads a row as its Scan does. Null leaves what it would be read into as it
// is, and a whole number that is a duration counts microseconds.
func scan(row pgx.CollectableRow, into ...any) error {
	read := make([]any, len(into))
	for i, v := range into {
		switch kind := reflect.TypeOf(v).Elem(); {
		case kind == reflect.TypeFor[json.RawMessage]():
			read[i] = (*[]byte)(v.(*json.RawMessage))
		case kind.Kind() == reflect.Slice || kind.Kind() == reflect.Pointer:
			read[i] = v
		default:
			read[i] = reflect.New(reflect.TypeOf(v)).Interface()
		}
	}
	if err := row.Scan(read...); err != nil {
		return err
	}
	for i, column := range row.FieldDescriptions() {
		if p := reflect.ValueOf(read[i]).Elem(); p.Kind() == reflect.Pointer && !p.IsNil() && read[i] != into[i] {
			reflect.ValueOf(into[i]).Elem().Set(p.Elem())
		}
		if took, ok := into[i].(*time.Duration); ok && column.DataTypeOID == pgtype.Int8OID {
			*took *= time.Duration(time.Microsecond)
		}
	}
	return nil
}

// fieldsOf reads a row into the fields of a struct, in their order.
func fieldsOf[V any](row pgx.CollectableRow) (v V, err error) {
	err = scan(row, rows.Fields(&v)...)
	return v, err
}
