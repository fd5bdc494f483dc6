package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// movedSQL asks whether the log was written in another cluster's transaction
// numbers: the identity differs after a dump and restore, and a frontier that
// is ahead of this server's numbers cannot be its own.
const movedSQL = `
select m.system_identifier <> c.system_identifier
    or m.entries_oid <> 'stint.entries'::regclass::oid
    or exists (select from stint.frontiers() f where f.xid > pg_snapshot_xmax(pg_current_snapshot()))
from stint.meta m, pg_control_system() c`

// rebaseIfMoved translates the log of a restored database into this server's
// transaction numbers, before anyone works on it.
func (s *Store) rebaseIfMoved(ctx context.Context) error {
	var moved bool
	if err := s.pool.QueryRow(ctx, s.sql.in(movedSQL)).Scan(&moved); err != nil {
		return fmt.Errorf("compare the log with the server: %w", translate(err))
	}
	if !moved {
		return nil
	}
	if err := s.transact(ctx, s.rebase(ctx)); err != nil {
		return fmt.Errorf("rebase the restored log: %w", err)
	}
	return nil
}

// rebase runs as one transaction of statements that each see what the one
// before waited for.
//
// Claimed entries whose number may come again get the lowest one there is:
// with their own, they would stand past the new frontier or among its pending
// transactions, and finished jobs would run again. Entries that no engine claimed
// get this transaction's number. Each lane then gets the frontier of a claim that
// took all, but for those: the end of the snapshot, with what it does not see as
// pending, and so this transaction.
func (s *Store) rebase(ctx context.Context) func(tx pgx.Tx) error {
	steps := []string{
		// No transaction may be between a fence and its commit, nor append meanwhile.
		`lock table stint.engines, stint.claims, stint.entries, stint.waiting in exclusive mode`,
		`select pg_current_xact_id()`,
		`update stint.entries set xid = '3' where lane = -1 and xid >= pg_snapshot_xmin(pg_current_snapshot())`,
		`update stint.entries e set xid = '3' from stint.frontiers() f
		 where f.lane = e.lane and e.xid >= pg_snapshot_xmin(pg_current_snapshot()) and ` + claimedCondition,
		// The old frontiers still tell which are claimed: the lowest number
		// is after each of them.
		`update stint.entries u set xid = pg_current_xact_id()
		 from stint.entries e left join stint.frontiers() f on f.lane = e.lane
		 where u.pos = e.pos and e.lane >= 0 and not coalesce(` + claimedCondition + `, false)`,
		// The frontier is not this transaction's own number: those between the
		// snapshot's end and it are in progress too, and no snapshot lists them.
		// Nor does one list its own transaction, which is behind its end when
		// somebody, anywhere on the server, drew a later number and ended.
		`insert into stint.claims (lane, n, nonce, engine, serial, xid, pos, positions, pending_xid, pending_pos)
		 select f.lane, f.n + 1, 0, 0, 0, pg_snapshot_xmax(pg_current_snapshot()), 0, '{}', p.xids, p.at
		 from stint.frontiers() f,
		      (select array_agg(x order by x) as xids, array_agg(0::bigint) as at
		       from (select pg_snapshot_xip(pg_current_snapshot()) union all select pg_current_xact_id()) as s(x)
		       where x < pg_snapshot_xmax(pg_current_snapshot())) p`,
		`select setval('stint.positions', greatest(
		   (select last_value from stint.positions), (select coalesce(max(pos), 1) from stint.entries),
		   (select coalesce(max(pos), 1) from stint.executions)))`,
		`update stint.meta set entries_oid = 'stint.entries'::regclass::oid,
		   system_identifier = (select system_identifier from pg_control_system())`,
	}
	return func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, s.sql.in(steps[0])); err != nil {
			return err
		}
		var moved bool
		if err := tx.QueryRow(ctx, s.sql.in(movedSQL)).Scan(&moved); err != nil || !moved {
			return err // another process did it
		}
		for _, step := range steps[1:] {
			if _, err := tx.Exec(ctx, s.sql.in(step)); err != nil {
				return err
			}
		}
		return nil
	}
}

// claimedCondition says that entry e is behind its lane's frontier f and was
// not left pending.
const claimedCondition = `(e.xid, e.pos) <= (f.xid, f.pos) and not exists (
  select from unnest(f.pending_xid, f.pending_pos) p(xid, pos) where p.xid = e.xid and p.pos < e.pos)`
