package store

import (
	"context"
	"time"
)

// Promoter moves waiting jobs that are due to the log.
type Promoter interface {
	// Promote moves up to limit due jobs, in order of their due times, and
	// wakes engines. Many may call it at once; each job is moved once. The
	// scan starts at from, inclusive (zero: at the beginning), which spares it
	// rows that were moved already; what is due before it is left where it is.
	Promote(ctx context.Context, from time.Time, limit int) (Promotion, error)
}

// Promotion is what one call of Promote did and saw.
type Promotion struct {
	Moved int
	Until time.Time     // the due time of the last job moved: a bound for the next scan
	Next  time.Duration // how long until the next job is due, 0 when one is; negative when none waits
	More  bool          // it did as much as it may at once, and there may be more to do now
}
