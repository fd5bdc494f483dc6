package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/stint-go/stint"
)

const promoteSQL = `select moved, until, next_in from stint.promote($1, $2)`

// Promote implements [stint.Promoter].
func (s *Store) Promote(ctx context.Context, from time.Time, limit int) (stint.Promotion, error) {
	bound := pgtype.Timestamptz{Time: from, Valid: true}
	if from.IsZero() {
		bound.InfinityModifier = pgtype.NegativeInfinity
	}
	var (
		p     stint.Promotion
		until *time.Time
		next  *int64
	)
	scan := func(row pgx.Row) error { return row.Scan(&p.Moved, &until, &next) }
	var err error
	if s.explicit.Load() {
		// Under a stricter isolation two promoters would fail on each other.
		err = s.transact(ctx, func(tx pgx.Tx) error { return scan(tx.QueryRow(ctx, s.sql.promote, bound, limit)) })
	} else {
		err = translate(scan(s.pool.QueryRow(ctx, s.sql.promote, bound, limit)))
	}
	if err != nil {
		return p, fmt.Errorf("promote due jobs: %w", err)
	}
	p.Next = -1
	if until != nil {
		p.Until = *until
	}
	if next != nil {
		p.Next = time.Duration(*next) * time.Microsecond
	}
	return p, nil
}
