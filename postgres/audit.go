package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/store"
)

// auditSQL are the parts of the ledger. Contents of jobs that were never
// ready are no entries: no engine can claim them.
var auditSQL = struct{ entries, claims, executions, waiting, jobs, engines, buried string }{
	entries: `
		select e.pos, coalesce(e.job, e.pos), e.lane, e.attempt, e.losses,
		       coalesce(` + claimedCondition + `, false)
		from stint.entries e left join stint.frontiers() f on f.lane = e.lane
		where e.lane >= 0 or exists (select from stint.executions x where x.pos = e.pos)
		order by e.pos`,
	claims:     `select lane, n, nonce, engine, serial, positions from stint.claims order by lane, n`,
	executions: `select pos, coalesce(job, pos), attempt, nonce, engine, outcome, final, started, finished from stint.executions order by pos`,
	waiting:    `select job, attempt, due, why from stint.waiting order by job`,
	jobs:       `select id, state, schedule, occurrence from stint.jobs order by id`,
	engines:    `select token from stint.engines order by token`,
	buried:     `select token, ended from stint.engine_history where ended is not null`,
}

// Audit implements [store.Auditor], under one snapshot.
func (s *Store) Audit(ctx context.Context) (*store.Ledger, error) {
	l := &store.Ledger{Buried: map[store.EngineID]time.Time{}}
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err := pgx.BeginTxFunc(ctx, s.pool, opts, func(tx pgx.Tx) error {
		var (
			e        store.LedgerEntry
			c        store.LedgerClaim
			x        store.LedgerExecution
			w        store.LedgerWait
			j        store.LedgerJob
			due      *time.Time
			schedule *string
			token    store.EngineID
			ended    time.Time
		)
		parts := []struct {
			text string
			into []any
			add  func()
		}{
			{auditSQL.entries, []any{&e.Pos, &e.Job, &e.Lane, &e.Attempt, &e.Losses, &e.Behind},
				func() { l.Entries = append(l.Entries, e) }},
			{auditSQL.claims, []any{&c.Lane, &c.N, &c.Nonce, &c.Engine, &c.Serial, &c.Positions},
				func() { l.Claims = append(l.Claims, c); c.Positions = nil }},
			{auditSQL.executions, []any{&x.Pos, &x.Job, &x.Attempt, &x.Nonce, &x.Engine, &x.Outcome, &x.Final, &x.Started, &x.Finished},
				func() { l.Executions = append(l.Executions, x) }},
			{auditSQL.waiting, []any{&w.Job, &w.Attempt, &due, &w.Why},
				func() { w.Due = deref(due); l.Waiting = append(l.Waiting, w) }},
			{auditSQL.jobs, []any{&j.ID, &j.State, &schedule, &due},
				func() { j.Schedule, j.Occurrence = deref(schedule), deref(due); l.Jobs = append(l.Jobs, j) }},
			{auditSQL.engines, []any{&token}, func() { l.Engines = append(l.Engines, token) }},
			{auditSQL.buried, []any{&token, &ended}, func() { l.Buried[token] = ended }},
		}
		for _, part := range parts {
			rows, err := tx.Query(ctx, s.sql.in(part.text))
			if err != nil {
				return err
			}
			if _, err := pgx.ForEachRow(rows, part.into, func() error { part.add(); return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("audit: %w", translate(err))
	}
	return l, nil
}
