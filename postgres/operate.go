package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.Operator = (*Store)(nil)

// Retry implements [store.Operator]. It is one call of a function, and so one
// message to its commit.
func (s *Store) Retry(ctx context.Context, ids []stint.ID, again stint.RerunOptions) (map[stint.ID]stint.RerunResult, error) {
	if err := again.Check(); err != nil {
		return nil, err
	}
	var (
		texts  []stint.RerunStatus
		runs   []stint.ID
		sorted = distinct(ids)
	)
	if len(ids) == 0 {
		return map[stint.ID]stint.RerunResult{}, nil
	}
	err := s.operate(ctx, func(row pgx.Row) error { return row.Scan(&texts, &runs) },
		`select answers, ids from stint.again($1, $2, $3, $4, $5)`, sorted, nilTime(again.RunAt), again.Delay.Microseconds(), again.Once, again.Whole)
	if err != nil {
		return nil, fmt.Errorf("retry %d jobs: %w", len(ids), err)
	}
	answers := make(map[stint.ID]stint.RerunResult, len(sorted))
	for i, id := range sorted {
		answers[id] = stint.RerunResult{Answer: texts[i], ID: runs[i]}
	}
	return answers, nil
}

// Delete implements [store.Operator].
func (s *Store) Delete(ctx context.Context, ids []stint.ID) (map[stint.ID]store.DeleteStatus, error) {
	if len(ids) == 0 {
		return map[stint.ID]store.DeleteStatus{}, nil
	}
	sorted := distinct(ids)
	// A marker alone, which SQL sets, ends what no engine has.
	marked, err := s.Cancelling(ctx, sorted)
	if err == nil {
		err = s.settle(ctx, marked, map[stint.ID]stint.CancelStatus{})
	}
	if err != nil {
		return nil, fmt.Errorf("delete %d jobs: %w", len(ids), err)
	}
	texts, err := answerOf[[]store.DeleteStatus](ctx, s, fmt.Sprintf("delete %d jobs", len(ids)), `select stint.erase($1)`, sorted)
	if err != nil {
		return nil, err
	}
	answers := make(map[stint.ID]store.DeleteStatus, len(sorted))
	for i, id := range sorted {
		answers[id] = texts[i]
	}
	return answers, nil
}

// operate calls a function of people's, on the program's connections: what
// engines have must not wait for it.
func (s *Store) operate(ctx context.Context, scan func(pgx.Row) error, text string, args ...any) error {
	_, err := retryExplicit(s, func() (struct{}, error) {
		return struct{}{}, s.onceOn(ctx, s.pool, scan, s.sql.in(text), args...)
	})
	return err
}

func distinct(ids []stint.ID) []stint.ID {
	return slices.Compact(slices.Sorted(slices.Values(ids)))
}
