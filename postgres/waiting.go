package postgres

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stint-go/stint/store"
)

// maxMicroseconds is the longest wait that a Duration can count.
const maxMicroseconds = int64(math.MaxInt64 / time.Microsecond)

const promoteSQL = `select moved, until, next_in, noted, more from stint.promote($1, $2, $3)`

// Promote implements [store.Promoter].
func (s *Store) Promote(ctx context.Context, from time.Time, limit int) (store.Promotion, error) {
	bound := pgtype.Timestamptz{Time: from, Valid: true}
	if from.IsZero() {
		bound.InfinityModifier = pgtype.NegativeInfinity
	}
	var (
		p     store.Promotion
		until *time.Time
		next  *int64
		note  int64
	)
	// Behind the notes that were looked at stand those that vacuum has not been to. A scan from the
	// beginning looks at all, also at what was committed late.
	if !from.IsZero() {
		note = s.noted.bound(time.Now())
	}
	// Under a stricter isolation two promoters would fail on each other.
	scan := func(row pgx.Row) error { return row.Scan(&p.Moved, &until, &next, &note, &p.More) }
	_, err := retryExplicit(s, func() (struct{}, error) {
		return struct{}{}, s.once(ctx, scan, s.sql.promote, bound, limit, note)
	})
	if err != nil {
		return p, fmt.Errorf("promote due jobs: %w", err)
	}
	s.noted.saw(note)
	p.Next = -1
	if until != nil {
		p.Until = *until
	}
	if next != nil {
		p.Next = time.Duration(min(*next, maxMicroseconds)) * time.Microsecond
	}
	return p, nil
}

// notesSeen is how far notes were looked at. Numbers are drawn before their transactions commit, so
// the next look begins where that was a moment ago.
type notesSeen struct {
	mu     sync.Mutex
	last   int64     // the last note that was looked at
	marked int64     // what that was at
	at     time.Time // this time
	from   int64     // what it was one notesLag before, at least
}

// notesLag is how long a transaction that leaves a note usually takes at most.
const notesLag = time.Second

// bound is the note after which to look.
func (s *notesSeen) bound(now time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.at) > notesLag {
		s.from, s.marked, s.at = s.marked, s.last, now
	}
	return s.from
}

// saw says that notes up to this one were looked at.
func (s *notesSeen) saw(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, n)
}
