package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Retainer = (*Store)(nil)

// longest is the longest time that is counted with: kept for longer is kept
// for ever.
const longest = 100 * 365 * 24 * time.Hour

// Retain implements [store.Retainer]. Each step is one call of a function, and
// so one message to its commit. It goes through the program's connections: what engines
// have must not wait for it.
func (s *Store) Retain(ctx context.Context, r store.RetainStep) (store.Retained, error) {
	var (
		done     store.Retained
		shortest = min(r.Keep.Shortest(), longest).Microseconds()
		keep     = map[string]map[stint.State]*int64{} // microseconds; null is for ever
	)
	for _, rule := range r.Keep.Rules() {
		var age *int64
		if rule.Age < longest {
			age = new(rule.Age.Microseconds())
		}
		if keep[rule.Queue] == nil {
			keep[rule.Queue] = map[stint.State]*int64{}
		}
		keep[rule.Queue][rule.State] = age
	}
	rules, err := json.Marshal(keep)
	if err != nil {
		return done, fmt.Errorf("retain %s: %w", r.Part, err)
	}
	limit := max(1, r.Limit)
	call := func(text string, into []any, args ...any) error {
		return s.operate(ctx, func(row pgx.Row) error { return row.Scan(into...) }, text, append([]any{r.Under.Lease, r.Under.Engine}, args...)...)
	}
	switch r.Part {
	case store.RetainJobs:
		var (
			only  *int64
			young *store.Position
		)
		if r.Age > 0 {
			only = new(min(r.Age, longest).Microseconds())
		}
		err = call(`select deleted, next, more, young from stint.retain_jobs($1, $2, $3, $4, $5, $6, $7)`,
			[]any{&done.Deleted, &done.Next.Pos, &done.More, &young}, r.From.Pos, limit, shortest, only, string(rules))
		if young != nil {
			done.Young = store.RetainMark{Pos: *young, N: 1} // never the zero mark, which is none
		}
	case store.RetainClaims:
		err = call(`select deleted, lane, n, more from stint.retain_claims($1, $2, $3, $4, $5, $6)`,
			[]any{&done.Deleted, &done.Next.Lane, &done.Next.N, &done.More}, r.From.Lane, r.From.N, limit, shortest)
	case store.RetainKeys:
		err = call(`select deleted, more from stint.retain_keys($1, $2, $3, $4, $5)`,
			[]any{&done.Deleted, &done.More}, limit, shortest, string(rules))
	case store.RetainEngines:
		err = call(`select deleted, next, more from stint.retain_engines($1, $2, $3, $4, $5)`,
			[]any{&done.Deleted, &done.Next.Pos, &done.More}, r.From.Pos, limit, shortest)
	case store.RetainChanges:
		err = call(`select deleted, more from stint.retain_changes($1, $2, $3)`, []any{&done.Deleted, &done.More}, limit)
	default:
		err = valid.Invalid("part", "%q is none", r.Part)
	}
	if err != nil {
		return store.Retained{}, fmt.Errorf("retain %s: %w", r.Part, err)
	}
	return done, nil
}
