package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint/internal/rows"
	"github.com/stint-go/stint/store"
)

// auditSQL are the parts of the ledger. Contents of jobs that were never
// ready are no entries: no engine can claim them.
var auditSQL = rows.LedgerSQL{
	Entries: `
		select e.pos, coalesce(e.job, e.pos), e.lane, e.attempt, e.losses,
		       coalesce(` + claimedCondition + `, false)
		from stint.entries e left join stint.frontiers() f on f.lane = e.lane
		where e.lane >= 0 or exists (select from stint.executions x where x.pos = e.pos)
		order by e.pos`,
	Claims:     `select lane, n, nonce, engine, serial, positions from stint.claims order by lane, n`,
	Executions: `select pos, coalesce(job, pos), attempt, nonce, engine, outcome, final, started, finished, coalesce(slot, 0), coalesce(reason, '') from stint.executions order by pos`,
	Waiting:    `select job, attempt, due, why from stint.waiting order by job`,
	Jobs: `
		select id, state, schedule, occurrence, flow, is_flow, recovered,
		       coalesce(uniqueness like 'until-ended%', false) and not exists (select from stint.cancellations c where c.job in (j.id, j.flow))
		from stint.jobs j order by id`,
	Needs:   `select child, parent, wants from stint.needs order by child, parent`,
	Kept:    `select job from stint.steps union select job from stint.lines union select job from stint.progress order by job`,
	Holders: `select job from stint.idempotency where left(key, 1) = chr(1)`,
	Engines: `select token from stint.engines order by token`,
	Buried:  `select token, ended from stint.engine_history where ended is not null`,
}

// Audit implements [store.Auditor], under one snapshot.
func (s *Store) Audit(ctx context.Context) (l *store.Ledger, err error) {
	opts := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, opts, func(tx pgx.Tx) error {
		l, err = auditSQL.Read(func(text string, each func(rows.Scan) error) error {
			part, err := tx.Query(ctx, s.sql.in(text))
			if err != nil {
				return err
			}
			defer part.Close()
			for part.Next() {
				if err := each(func(into ...any) error { return scan(part, into...) }); err != nil {
					return err
				}
			}
			return part.Err()
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("audit: %w", translate(err))
	}
	return l, nil
}
