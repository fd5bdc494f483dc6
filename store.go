package stint

import (
	"context"
	"time"
)

// Store is what an engine needs of a database. Producers need [Enqueuer]
// only, people [Inspector]; every consumer accepts the narrowest role. The
// contract of each role is proven for every store by package storetest.
//
// All methods may be called concurrently unless they say otherwise.
type Store interface {
	Enqueuer
	Claimer
	Finisher
	Roster
	Promoter
	Decider
}

// Clock is a store with a clock of its own, which is then the one that decides
// everything that is compared between machines. Without it the clock of this
// machine does.
type Clock interface {
	Now(ctx context.Context) (time.Time, error)
}
