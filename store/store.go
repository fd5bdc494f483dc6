package store

import (
	"context"
	"time"

	"github.com/stint-go/stint"
)

// Store is what an engine needs of a database. Producers need [stint.Enqueuer]
// only, people [Inspector]; every consumer accepts the narrowest role. The
// contract of each role is proven for every store by package storetest.
//
// All methods may be called concurrently unless they say otherwise.
type Store interface {
	stint.Enqueuer
	Claimer
	Finisher
	Roster
	Promoter
	RetryDecider
}

// Clock is a store with a clock of its own, which is then the one that decides
// everything that is compared between machines. Without it the clock of this
// machine does.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}
