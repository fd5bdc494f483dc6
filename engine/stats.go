package engine

import (
	"context"
	"time"

	"github.com/stint-go/stint/report"
)

// rollUpEvery is how often each engine rolls up the statistics, unless another one did.
const rollUpEvery = time.Minute

// longestRollUp bounds one step, which may have much to read.
const longestRollUp = 5 * time.Minute

// rollUpStats keeps what has to be read for statistics small.
func (s *session) rollUpStats(ctx context.Context) {
	store, ok := s.store.(report.StatsStore)
	if !ok {
		return
	}
	every(ctx, spread(rollUpEvery), func() {
		for more := true; more && ctx.Err() == nil; {
			limit, cancel := context.WithTimeout(ctx, longestRollUp)
			var err error
			if more, err = store.SumUp(limit); err != nil {
				s.trouble(ctx, "sum up statistics", err)
			}
			cancel()
		}
	})
}
