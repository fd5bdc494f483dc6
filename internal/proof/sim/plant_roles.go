package sim

import (
	"context"
	"database/sql"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

func (s *planted) Cancel(ctx context.Context, ids []stint.ID, why string) (map[stint.ID]stint.CancelStatus, error) {
	answers, err := s.ground.Cancel(ctx, ids, why)
	for id, answer := range answers {
		switch {
		case s.bug == bugUnmarked:
			s.exec(unmarkSQL, int64(id))
		case s.bug == bugTooSoon && answer == stint.CancelTooLate:
			answers[id] = stint.CancelledNow
		}
	}
	return answers, err
}

func (s *planted) Cancelling(ctx context.Context, ids []stint.ID) ([]stint.ID, error) {
	if s.bug == bugSilent {
		return nil, nil
	}
	return s.ground.Cancelling(ctx, ids)
}

func (s *planted) Fetch(ctx context.Context, at []store.Position) ([]store.Entry, error) {
	entries, err := s.ground.Fetch(ctx, at)
	return s.welcome(entries), err
}

func (s *planted) welcome(entries []store.Entry) []store.Entry {
	for i := range entries {
		entries[i].Cancelled = entries[i].Cancelled && s.bug != bugHandsOut
	}
	return entries
}

func (s *planted) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	for i := range done {
		if s.bug == bugRetries && done[i].Next != nil {
			s.exec(unmarkSQL, int64(done[i].Job))
		}
	}
	switch s.bug {
	case bugHasty:
		done = hasty(done)
	case bugForgets:
		done = forgets(claims, done)
	}
	return s.ground.Finish(ctx, engine, claims, done)
}

func (s *planted) FinishTx(ctx context.Context, tx stint.Tx, engine store.EngineID, claim store.ClaimRef, x store.Completion) error {
	own := tx.Handle.(*sql.Tx)
	switch s.bug {
	case bugHollow:
		return own.Rollback()
	case bugSplit:
		if err := own.Commit(); err != nil {
			return err
		}
		_, err := s.ground.Finish(ctx, engine, []store.ClaimRef{claim}, []store.Completion{x})
		return err
	}
	err := s.ground.FinishTx(ctx, tx, engine, claim, x)
	if s.bug == bugRepeats && err == nil {
		s.exec(`insert into sim_effects select * from sim_effects where pos = ?`, int64(x.Pos))
	}
	return err
}

func (s *planted) Sweep(ctx context.Context, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	switch s.bug {
	case bugUnswept:
		return 0, nil
	case bugSweeps:
		return s.sweep(ctx, judge, heldSQL)
	}
	return s.ground.Sweep(ctx, judge)
}
