package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.ClaimedEnqueuer = (*Store)(nil)

// EnqueueClaimed implements [store.ClaimedEnqueuer].
func (s *Store) EnqueueClaimed(ctx context.Context, job stint.NewJob, req store.ClaimRequest) (store.Claim, error) {
	if len(job.Limits) > 0 {
		return store.Claim{}, valid.Invalid("limits", "a job that runs in the caller's process cannot wait for limits")
	}
	var claim store.Claim
	err := s.write(ctx, func(c *conn) (bool, error) {
		claim = store.Claim{ClaimRef: store.ClaimRef{Lane: store.NowLane, Nonce: req.Nonce}, Serial: req.Serial}
		return false, c.enqueueClaimed(ctx, job, req, &claim)
	})
	if err != nil {
		return store.Claim{}, fmt.Errorf("enqueue a job to run now: %w", err)
	}
	claim.Entries, err = s.Fetch(ctx, claim.Positions)
	return claim, err
}

func (c *conn) enqueueClaimed(ctx context.Context, job stint.NewJob, req store.ClaimRequest, claim *store.Claim) error {
	if err := c.fence(req.Engine); err != nil {
		return err
	}
	job.Delay, job.RunAt = 0, time.Time{}
	var receipts [1]stint.Receipt
	now := func(e *newEntry) { e.lane = store.NowLane }
	if err := storeJobs(ctx, (*direct)(c), []stint.NewJob{job}, receipts[:], now); err != nil {
		return err
	}
	if receipts[0].Duplicate && receipts[0].State != "" {
		return &store.DuplicateError{ID: receipts[0].ID}
	} else if receipts[0].Duplicate {
		return &store.DuplicateError{Key: job.IdempotencyKey, ID: receipts[0].ID}
	}
	err := c.query(newestClaimSQL, []any{int64(store.NowLane)}, func(q *stmt) error {
		claim.N = q.ColumnInt64(0)
		return nil
	})
	if err != nil {
		return err
	}
	claim.N++
	pos := int64(receipts[0].ID)
	claim.Positions = []store.Position{store.Position(pos)}
	_, err = c.exec(claimSQL, int64(store.NowLane), claim.N, int64(req.Nonce), int64(req.Engine), req.Serial, pos-1, pos, 1)
	return err
}
