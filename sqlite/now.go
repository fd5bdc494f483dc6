package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
)

var _ stint.Immediate = (*Store)(nil)

// EnqueueClaimed implements [stint.Immediate].
func (s *Store) EnqueueClaimed(ctx context.Context, job stint.NewJob, req stint.ClaimRequest) (stint.Claim, error) {
	var claim stint.Claim
	err := s.write(ctx, func(c *conn) (bool, error) {
		claim = stint.Claim{ClaimRef: stint.ClaimRef{Lane: stint.NowLane, Nonce: req.Nonce}, Serial: req.Serial}
		return false, c.enqueueClaimed(ctx, job, req, &claim)
	})
	if err != nil {
		return stint.Claim{}, fmt.Errorf("enqueue a job to run now: %w", err)
	}
	claim.Entries, err = s.Fetch(ctx, claim.Positions)
	return claim, err
}

func (c *conn) enqueueClaimed(ctx context.Context, job stint.NewJob, req stint.ClaimRequest, claim *stint.Claim) error {
	if err := c.fence(req.Engine); err != nil {
		return err
	}
	job.Delay, job.RunAt = 0, time.Time{}
	var receipts [1]stint.Receipt
	now := func(string, int) stint.LaneID { return stint.NowLane }
	if err := storeJobs(ctx, (*direct)(c), []stint.NewJob{job}, receipts[:], now); err != nil {
		return err
	}
	if receipts[0].Duplicate {
		return &stint.DuplicateError{Key: job.IdempotencyKey, ID: receipts[0].ID}
	}
	err := c.query(newestClaimSQL, []any{int64(stint.NowLane)}, func(q *stmt) error {
		claim.N = q.ColumnInt64(0)
		return nil
	})
	if err != nil {
		return err
	}
	claim.N++
	pos := int64(receipts[0].ID)
	claim.Positions = []stint.Position{stint.Position(pos)}
	_, err = c.exec(claimSQL, int64(stint.NowLane), claim.N, int64(req.Nonce), int64(req.Engine), req.Serial, pos-1, pos, 1)
	return err
}
