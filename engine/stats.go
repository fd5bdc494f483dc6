package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/stint-go/stint"
)

// sumEvery is how often each engine has the statistics summed up, if nobody was
// sooner.
const sumEvery = time.Minute

// sumUp keeps what is to be read for statistics small.
func (s *session) sumUp(ctx context.Context) {
	store, ok := s.store.(stint.Statistician)
	if !ok {
		return
	}
	tick := time.NewTicker(sumEvery - rand.N(sumEvery/10))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for more := true; more && ctx.Err() == nil; {
			var err error
			if more, err = s.sumOnce(ctx, store); err != nil {
				s.trouble(ctx, "sum up statistics", err)
			}
		}
	}
}

// longestSum bounds one step, which may have much to read.
const longestSum = 5 * time.Minute

func (s *session) sumOnce(ctx context.Context, store stint.Statistician) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, longestSum)
	defer cancel()
	return store.SumUp(ctx)
}
