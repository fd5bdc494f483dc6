package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// beforeBurial is what happens before a burial sends its request: clients
// think better of what the dead engine held, and will be just before or just
// behind it. The function that it returns has the burial cut short, or not.
func (p *process) beforeBurial(engine store.EngineID) (cutShort func(context.Context)) {
	n := p.count(opBury)
	if p.w.over.Load() || p.w.seed.Age == Plain {
		return func(context.Context) {}
	}
	d := roll(p.w.seed.N, p.name+"burial", n)
	if d.chance(40) {
		p.w.regret(d, engine)
	}
	if !d.chance(cutBurials) {
		return func(context.Context) {}
	}
	return func(ctx context.Context) {
		claims, err := p.w.ground.cutShort(ctx, engine, d)
		if claims > 0 || err != nil {
			p.w.note(p.name, nil, "the burial of engine %x will leave %d claims, %v", engine, claims, err)
		}
	}
}

// cutBurials is how many in 100 burials leave something to be swept up. What
// they leave costs a minute of fake time.
const cutBurials = 4

// Sweep implements [store.OrphanRecoverer].
func (p *process) Sweep(ctx context.Context, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	n, _, err := call(ctx, p, opSweep, func(ctx context.Context) (int, error) {
		var jobs []int64
		n, err := p.store.Sweep(ctx, func(e *store.Entry, begun bool) store.Completion {
			jobs = append(jobs, int64(e.ID))
			return judge(e, begun)
		})
		p.w.note(p.name, jobs, "sweep: %d, %v", n, err)
		return n, err
	})
	return n, err
}

// cutShort has the next burial of an engine leave some of what it holds, up to
// one of its claims that chance picks: as where an engine believed that it had
// done with them long ago.
func (g *ground) cutShort(ctx context.Context, engine store.EngineID, chance dice) (int, error) {
	claims, err := g.Store.Held(ctx, engine, 0)
	if err != nil || len(claims) == 0 {
		return 0, err
	}
	g.mu.Lock()
	g.cut = append(g.cut, engine)
	g.mu.Unlock()
	n := 1 + chance.IntN(len(claims))
	_, err = g.db.ExecContext(ctx, `update stint_beats set low = max(low, ?) where token = ?`, claims[n-1].Serial+1, int64(engine))
	return n, err
}

// wasCut tells whether a burial of the engine was cut short.
func (g *ground) wasCut(engine store.EngineID) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Contains(g.cut, engine)
}

// leftSQL finds what an engine claimed that is in no roster any more, and what
// has no outcome.
const leftSQL = heldSQL + ` and c.engine = ? and c.engine not in (select token from stint_engines) order by e.pos`

const heldSQL = `
select c.engine, c.nonce, e.pos from stint_claims c
join stint_entries e indexed by stint_entries_lane on e.lane = c.lane and e.pos > c.start and e.pos <= c.frontier
where not exists (select 1 from stint_executions x where x.pos = e.pos)`

// left is one entry that a burial left behind.
type left struct {
	engine store.EngineID
	nonce  store.Nonce
	pos    store.Position
}

// Sweep implements [store.OrphanRecoverer] as the store of PostgreSQL does. SQLite's
// has no need of it: its burials are never cut short.
func (g *ground) Sweep(ctx context.Context, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	g.mu.Lock()
	engines := slices.Clone(g.cut)
	g.mu.Unlock()
	total := 0
	for _, engine := range engines {
		n, err := g.sweep(ctx, judge, leftSQL, int64(engine))
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (g *ground) sweep(ctx context.Context, judge func(e *store.Entry, begun bool) store.Completion, which string, args ...any) (swept int, err error) {
	err = g.write(ctx, func(tx *sql.Tx) error {
		found, err := leftovers(ctx, tx, which, args...)
		if err != nil {
			return err
		}
		for _, l := range found {
			entries, err := g.Store.Fetch(ctx, []store.Position{l.pos})
			if err != nil || len(entries) != 1 {
				return errors.Join(err, fmt.Errorf("sim: %d entries at position %d", len(entries), l.pos))
			}
			if err := conclude(ctx, tx, l, &entries[0], judge(&entries[0], false)); err != nil {
				return err
			}
		}
		swept = len(found)
		return nil
	})
	if err != nil {
		return 0, err
	}
	return swept, nil
}

func leftovers(ctx context.Context, tx *sql.Tx, which string, args ...any) (all []left, err error) {
	rows, err := tx.QueryContext(ctx, which, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var l left
		if err := rows.Scan(&l.engine, &l.nonce, &l.pos); err != nil {
			return nil, err
		}
		all = append(all, l)
	}
	return all, rows.Err()
}

const (
	keepSQL = `
	insert into stint_executions (pos, job, attempt, nonce, engine, slot, started, finished, outcome, final, reason)
	values (?, nullif(?, ?), ?, ?, ?, 0, ?, ?, ?, ?, nullif(?, ''))`
	nextSQL = `
	insert into stint_entries (lane, created, job, body, attempt, priority, losses, suspect, queue, kind)
	select ?, ?, ifnull(job, pos), ifnull(body, pos), ?, ?, ?, ?, ?, ? from stint_entries where pos = ?`
	whySQL    = `select why from stint_cancellations where job = ?`
	unmarkSQL = `delete from stint_cancellations where job = ?`
)

// conclude records the end of an entry as the store would: of a job that
// somebody cancelled it is the last.
func conclude(ctx context.Context, tx *sql.Tx, l left, e *store.Entry, x store.Completion) error {
	if x.Next != nil && x.Next.Wait {
		return errors.New("sim: the judge of a sweep lets an entry wait")
	}
	var why string
	switch err := tx.QueryRowContext(ctx, whySQL, int64(e.ID)).Scan(&why); {
	case err == nil:
		x.Outcome, x.Final, x.Next, x.Reason = stint.OutcomeCancelled, true, nil, why
	case !errors.Is(err, sql.ErrNoRows):
		return err
	}
	now := time.Now().UnixMicro()
	_, err := tx.ExecContext(ctx, keepSQL, int64(e.Pos), int64(e.ID), int64(e.Pos), x.Attempt, int64(l.nonce), int64(l.engine),
		now, now, int64(x.Outcome), x.Final, x.Reason)
	if err != nil {
		return err
	}
	if x.Final {
		_, err = tx.ExecContext(ctx, unmarkSQL, int64(e.ID))
		return err
	}
	n := x.Next
	_, err = tx.ExecContext(ctx, nextSQL, int64(store.LaneOf(n.Queue, n.Priority, n.Part, n.Kind).ID), now,
		n.Attempt, n.Priority, n.Losses, n.Suspect, n.Queue, n.Kind, int64(e.Pos))
	return err
}
