package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// The parts of the ledger. Contents of jobs that were never ready are no
// entries: no engine can claim them.
const (
	auditEntriesSQL = `
	select e.pos, ifnull(e.job, e.pos), e.lane, e.attempt, e.losses,
	       e.pos <= ifnull((select c.frontier from stint_claims c where c.lane = e.lane order by c.n desc limit 1), 0)
	from stint_entries e
	where e.lane >= 0 or exists (select 1 from stint_executions x where x.pos = e.pos)
	order by e.pos`

	auditClaimsSQL = `select lane, n, nonce, engine, serial, start, frontier, taken from stint_claims order by lane, n`

	auditPositionsSQL = `select pos from stint_entries where lane = ? and pos > ? and pos <= ? order by pos`

	auditExecutionsSQL = `
	select pos, ifnull(job, pos), attempt, nonce, engine, outcome, final, started, finished from stint_executions order by pos`

	auditWaitingSQL = `select job, attempt, due, why from stint_waiting order by job`
	auditJobsSQL    = `select id, state, schedule, occurrence from stint_jobs order by id`
	auditEnginesSQL = `select token from stint_engines order by token`
	auditDeletedSQL = `select deleted from stint_meta`
	auditBuriedSQL  = `select token, ended from stint_engine_history where ended is not null`
)

// Audit implements [store.Auditor].
func (s *Store) Audit(ctx context.Context) (*store.Ledger, error) {
	var l *store.Ledger
	err := s.read(ctx, func(c *conn) error {
		l = &store.Ledger{Buried: map[store.EngineID]time.Time{}}
		missing := int64(0)
		for _, part := range []struct {
			text string
			add  func(*stmt) error
		}{
			{auditEntriesSQL, func(q *stmt) error {
				l.Entries = append(l.Entries, store.LedgerEntry{
					Pos: store.Position(q.ColumnInt64(0)), Job: stint.ID(q.ColumnInt64(1)), Lane: store.LaneID(q.ColumnInt64(2)),
					Attempt: q.ColumnInt(3), Losses: q.ColumnInt(4), Behind: q.ColumnInt64(5) != 0,
				})
				return nil
			}},
			{auditClaimsSQL, func(q *stmt) error { return c.auditClaim(l, q, &missing) }},
			{auditDeletedSQL, func(q *stmt) error {
				if deleted := q.ColumnInt64(0); deleted != missing {
					return fmt.Errorf("%d entries that claims took are not there, and %d were deleted", missing, deleted)
				}
				return nil
			}},
			{auditExecutionsSQL, func(q *stmt) error {
				l.Executions = append(l.Executions, store.LedgerExecution{
					Pos: store.Position(q.ColumnInt64(0)), Job: stint.ID(q.ColumnInt64(1)), Attempt: q.ColumnInt(2),
					Nonce: store.Nonce(q.ColumnInt64(3)), Engine: store.EngineID(q.ColumnInt64(4)), Outcome: stint.Outcome(q.ColumnInt(5)),
					Final: q.ColumnInt64(6) != 0, Started: q.time(7), Finished: q.time(8),
				})
				return nil
			}},
			{auditWaitingSQL, func(q *stmt) error {
				l.Waiting = append(l.Waiting, store.LedgerWait{
					Job: stint.ID(q.ColumnInt64(0)), Attempt: q.ColumnInt(1), Due: q.time(2), Why: stint.State(q.ColumnText(3)),
				})
				return nil
			}},
			{auditJobsSQL, func(q *stmt) error {
				l.Jobs = append(l.Jobs, store.LedgerJob{
					ID: stint.ID(q.ColumnInt64(0)), State: stint.State(q.ColumnText(1)), Schedule: q.ColumnText(2), Occurrence: q.time(3),
				})
				return nil
			}},
			{auditEnginesSQL, func(q *stmt) error {
				l.Engines = append(l.Engines, store.EngineID(q.ColumnInt64(0)))
				return nil
			}},
			{auditBuriedSQL, func(q *stmt) error {
				l.Buried[store.EngineID(q.ColumnInt64(0))] = q.time(1)
				return nil
			}},
		} {
			if err := c.query(part.text, nil, part.add); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("copy the ledger: %w", err)
	}
	return l, nil
}

// auditClaim adds a claim with the entries of its interval. That they are as
// many as were taken, but for those that were deleted since, is what could go
// wrong with an interval.
func (c *conn) auditClaim(l *store.Ledger, q *stmt, missing *int64) error {
	claim := store.LedgerClaim{
		ClaimRef: store.ClaimRef{Lane: store.LaneID(q.ColumnInt64(0)), N: q.ColumnInt64(1), Nonce: store.Nonce(q.ColumnInt64(2))},
		Engine:   store.EngineID(q.ColumnInt64(3)), Serial: q.ColumnInt64(4),
	}
	start, frontier, taken := q.ColumnInt64(5), q.ColumnInt64(6), q.ColumnInt64(7)
	err := c.query(auditPositionsSQL, []any{int64(claim.Lane), start, frontier}, func(q *stmt) error {
		claim.Positions = append(claim.Positions, store.Position(q.ColumnInt64(0)))
		return nil
	})
	found := int64(len(claim.Positions))
	if err == nil && found > taken {
		err = fmt.Errorf("claim %d of lane %d took %d entries, and its interval has %d", claim.N, claim.Lane, taken, found)
	}
	*missing += taken - found
	l.Claims = append(l.Claims, claim)
	return err
}
