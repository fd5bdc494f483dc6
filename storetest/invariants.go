package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
)

// Facts turns a ledger into what package check judges.
func Facts(l *store.Ledger) *check.Facts {
	f := &check.Facts{Buried: make(map[int64]time.Time, len(l.Buried))}
	for _, j := range l.Jobs {
		f.Jobs = append(f.Jobs, check.Job{
			ID: int64(j.ID), State: string(j.State), Final: j.State.Final(), Schedule: j.Schedule, Occurrence: j.Occurrence,
		})
	}
	for _, e := range l.Entries {
		f.Entries = append(f.Entries, check.Entry{
			Pos: int64(e.Pos), Job: int64(e.Job), Lane: int64(e.Lane), Attempt: e.Attempt, Behind: e.Behind,
		})
	}
	unclaimed := map[store.Position]bool{}
	for _, e := range l.Entries {
		unclaimed[e.Pos] = e.Lane == store.NoLane
	}
	for _, x := range l.Executions {
		decided := x.Outcome == stint.OutcomeFailed && x.Final && unclaimed[x.Pos]
		f.Executions = append(f.Executions, check.Execution{
			Pos: int64(x.Pos), Job: int64(x.Job), Attempt: x.Attempt, Outcome: x.Outcome.String(), Final: x.Final,
			Charged: (x.Outcome == stint.OutcomeFailed || x.Outcome == stint.OutcomeLost) && !decided, Decided: decided,
			Engine: int64(x.Engine), Nonce: int64(x.Nonce), Started: x.Started, Finished: x.Finished,
		})
	}
	for _, c := range l.Claims {
		claim := check.Claim{Lane: int64(c.Lane), N: c.N, Nonce: int64(c.Nonce), Engine: int64(c.Engine)}
		for _, pos := range c.Positions {
			claim.Positions = append(claim.Positions, int64(pos))
		}
		f.Claims = append(f.Claims, claim)
	}
	for _, w := range l.Waiting {
		f.Waiting = append(f.Waiting, check.Waiting{Job: int64(w.Job), Attempt: w.Attempt})
	}
	for _, token := range l.Engines {
		f.Roster = append(f.Roster, int64(token))
	}
	for token, at := range l.Buried {
		f.Buried[int64(token)] = at
	}
	return f
}

// Verify checks the invariants of everything in a store, as the cleanup of
// each test of the suite does.
func Verify(t testing.TB, s store.Auditor) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	l, err := s.Audit(ctx)
	if err != nil {
		t.Errorf("audit: %v", err)
		return
	}
	claimNumbers(t, l)
	for _, v := range check.Invariants(Facts(l)) {
		t.Error(v)
	}
}

// claimNumbers checks that the claims of each lane are numbered in their order:
// that is what turns a stale frontier into an error. Without a gap they are only
// while nothing was deleted.
func claimNumbers(t testing.TB, l *store.Ledger) {
	t.Helper()
	last := map[store.LaneID]int64{}
	for _, c := range l.Claims {
		expect(t, c.N > last[c.Lane], "in lane %d claim %d follows claim %d", c.Lane, c.N, last[c.Lane])
		last[c.Lane] = c.N
	}
}
