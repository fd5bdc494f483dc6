package sim

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/store"
)

// judgement is the name of the retry function that not all engines have, and
// bears is how many charged attempts it takes for it to give up.
const (
	judgement = "sim_judgement"
	bears     = 3
)

// decides is the retry function: it now and then sends a job elsewhere.
func decides(_ error, f retry.Failure) retry.Decision {
	switch {
	case f.Charged >= bears:
		return retry.Final("had enough of it")
	case f.Charged == 2:
		return retry.Again(time.Second).To("other")
	}
	return retry.Again(200 * time.Millisecond)
}

func (p *process) Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	return ask(ctx, p, opUndecided, func(ctx context.Context) ([]store.PendingRetry, error) {
		return p.store.Undecided(ctx, funcs, after, limit)
	})
}

func (p *process) Decide(ctx context.Context, engine store.EngineID, done []store.Completion) ([]stint.ID, error) {
	return ask(ctx, p, opDecide, func(ctx context.Context) ([]stint.ID, error) {
		ids, err := p.store.Decide(ctx, engine, done)
		p.w.note(p.name, numbers(ids), "decide, engine %x: %d of %d, %v", engine, len(ids), len(done), err)
		p.w.decided(ids, done)
		return ids, err
	})
}

// doubt is a failure that waits for somebody's decision: of which job, and at
// which attempt the next would be.
type doubt struct {
	job  stint.ID
	next int
}

// decided checks that nobody decides about a failure that was decided.
func (w *world) decided(ids []stint.ID, done []store.Completion) {
	for _, id := range ids {
		for i := range done {
			if done[i].Job != id {
				continue
			}
			q := doubt{id, done[i].Attempt}
			w.mu.Lock()
			w.decisions[q]++
			again := w.decisions[q] > 1
			w.mu.Unlock()
			if again {
				w.wrong("job %d: it was decided twice what follows attempt %d", id, q.next-1)
			}
		}
	}
}

// leaves notes failures that an engine leaves to others to decide about.
func (w *world) leaves(done []store.Completion) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range done {
		if next := done[i].Next; next != nil && next.Func != "" {
			w.undecided[done[i].Pos] = true
		}
	}
}

// checkDecisions checks that nothing ran after a failure before somebody had
// decided about it: what comes next is a decision, or the end by a
// cancellation, in the lane that nobody claims; unless people had it run again.
func (j *judging) checkDecisions(w *world) {
	next := map[store.Position]*store.LedgerEntry{}
	last := map[stint.ID]store.Position{}
	for i := range j.ledger.Entries {
		e := &j.ledger.Entries[i]
		next[last[e.Job]] = e
		last[e.Job] = e.Pos
	}
	for pos := range w.undecided {
		x := j.executions[pos]
		if x == nil || x.Outcome != stint.OutcomeFailed || x.Final {
			continue
		}
		if e := next[pos]; e != nil && e.Lane != store.NoLane && w.operations.of(x.Job).asked == 0 {
			j.wrong(x.Job, "entry %d failed and was left to others to decide about, and entry %d followed at once", pos, e.Pos)
		}
	}
}

// charges is how many attempts of a job had been charged when it failed for
// good: where that was decided afterwards, by an execution that is no attempt.
func (j *judging) charges(x *store.LedgerExecution) int {
	if j.lanes[x.Pos] == store.NoLane {
		return x.Attempt - 1
	}
	return x.Attempt
}

// retains is in how many of 100 seeds jobs are deleted that ended a while ago.
const retains = 35

// retentionOf is how long jobs are kept in a seed: in most for ever.
func retentionOf(seed Seed) store.Retention {
	d := roll(seed.N, "retention", 0)
	if seed.Age >= Lasting || !d.chance(retains) {
		return store.Retention{KeepFor: store.KeepFor{All: store.Forever}}
	}
	// Stores count microseconds: seed 61085 had a job deleted 300 ns too early.
	age := func() time.Duration { return d.between(time.Second, 20*time.Second).Truncate(time.Microsecond) }
	r := store.Retention{KeepFor: store.KeepFor{All: age(), Completed: age(), Failed: age()}}
	if d.chance(50) {
		r.Queues = map[string]store.KeepFor{queues[1]: {All: age(), Cancelled: store.Forever}}
	}
	return r
}

func (p *process) Retain(ctx context.Context, r store.RetainStep) (store.Retained, error) {
	return ask(ctx, p, opRetain, func(ctx context.Context) (store.Retained, error) {
		began := time.Now()
		done, err := p.store.Retain(ctx, r)
		if done.Deleted > 0 || err != nil {
			p.w.note(p.name, nil, "retain %s for engine %x: %d deleted, %v", r.Part, r.Under.Engine, done.Deleted, err)
		}
		if done.Deleted > 0 && r.Part == store.RetainJobs {
			p.w.checkErased(ctx, began)
		}
		return done, err
	})
}

func (p *process) Acquire(ctx context.Context, name string, engine store.EngineID, term time.Duration) (store.Lease, error) {
	return ask(ctx, p, opLease, func(ctx context.Context) (store.Lease, error) { return p.store.Acquire(ctx, name, engine, term) })
}

func (p *process) ReleaseLease(ctx context.Context, name string, engine store.EngineID) (bool, error) {
	return ask(ctx, p, opLease, func(ctx context.Context) (bool, error) { return p.store.ReleaseLease(ctx, name, engine) })
}

func (p *process) Revoke(ctx context.Context, name, by, why string) (store.Revocation, bool, error) {
	return p.store.Revoke(ctx, name, by, why)
}

func (p *process) Leases(ctx context.Context) ([]store.Lease, error) { return p.store.Leases(ctx) }

// erased are the jobs that were deleted for their age, and since when that may be.
type erased struct {
	mu sync.Mutex
	at map[stint.ID]time.Time
}

// when is since when a job may be gone; zero when no age was the reason.
func (e *erased) when(job stint.ID) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.at[job]
}

// note notes that a job is gone, and tells whether that is new.
func (e *erased) note(job stint.ID, at time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, known := e.at[job]; known {
		return false
	}
	if e.at == nil {
		e.at = map[stint.ID]time.Time{}
	}
	e.at[job] = at
	return true
}

// goneSQL says how each job ended that was deleted, if it did, and in which queue.
const goneSQL = `
select j.pos, ifnull(e.queue, j.queue), ifnull(x.outcome, 0), ifnull(x.finished, 0), j.flow in (select flow from stint_flows)
from sim_gone_entries j
left join sim_gone_executions x on x.job = j.pos and x.final = 1
left join sim_gone_entries e on e.pos = x.pos
where j.pos = j.job`

// checkErased checks what is gone, unless people may have deleted it: it had ended,
// as long ago as it is kept.
func (w *world) checkErased(ctx context.Context, began time.Time) {
	err := w.ground.each(context.WithoutCancel(ctx), goneSQL, func(rows *sql.Rows) error {
		var id stint.ID
		var queue string
		var outcome stint.Outcome
		var finished int64
		var before sql.NullBool // its flow is there
		if err := rows.Scan(&id, &queue, &outcome, &finished, &before); err != nil {
			return err
		}
		if w.operations.deleting(id) || !w.erased.note(id, began) {
			return nil
		}
		switch age := w.retention.Of(queue, outcome.State()); {
		case finished == 0:
			w.wrong("job %d was deleted for its age, and had not ended", id)
		case before.Bool:
			w.wrong("job %d was deleted for its age, and its flow is there", id)
		case age == store.Forever || time.Since(time.UnixMicro(finished)) < age:
			w.wrong("job %d was deleted %v after it was %s, and is kept for %v", id, time.Since(time.UnixMicro(finished)), outcome, age)
		}
		return nil
	})
	if err != nil {
		w.wrong("see what was deleted: %v", err)
	}
}

// beforeBurial is what happens before a burial sends its request: clients
// think better of what the dead engine held, and will be just before or just
// after it. The function that it returns has the burial cut short, or not.
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

func (p *process) Sweep(ctx context.Context, judge func(e *store.Entry, begun bool) store.Completion) (int, error) {
	return ask(ctx, p, opSweep, func(ctx context.Context) (int, error) {
		var jobs []int64
		n, err := p.store.Sweep(ctx, func(e *store.Entry, begun bool) store.Completion {
			jobs = append(jobs, int64(e.ID))
			return judge(e, begun)
		})
		p.w.note(p.name, jobs, "sweep: %d, %v", n, err)
		return n, err
	})
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
	err = each(ctx, tx, which, func(rows *sql.Rows) error {
		var l left
		err := rows.Scan(&l.engine, &l.nonce, &l.pos)
		all = append(all, l)
		return err
	}, args...)
	return all, err
}

const (
	keepSQL = `
	insert into stint_executions (pos, job, attempt, nonce, engine, slot, started, finished, outcome, final, reason)
	values (?, nullif(?, ?), ?, ?, ?, 0, ?, ?, ?, ?, nullif(?, ''))`
	nextSQL = `
	insert into stint_entries (lane, created, job, body, attempt, priority, losses, suspect, queue, kind, limits)
	select ?, ?, ifnull(job, pos), ifnull(body, pos), ?, ?, ?, ?, ?, ?, limits from stint_entries where pos = ?`
	againSQL  = `insert into stint_reruns (gate, job) values (?, ?) on conflict do nothing`
	noteSQL   = `insert into stint_notes (job, after) values (?, 0) on conflict (job) do update set after = 0`
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
		if _, err = tx.ExecContext(ctx, unmarkSQL, int64(e.ID)); err == nil && x.Flow {
			_, err = tx.ExecContext(ctx, noteSQL, int64(e.ID))
		}
		return err
	}
	n := x.Next
	_, err = tx.ExecContext(ctx, nextSQL, int64(store.LimitedLane(n.Queue, n.Priority, n.Part, n.Kind, e.Limits).ID), now,
		n.Attempt, n.Priority, n.Losses, n.Suspect, n.Queue, n.Kind, int64(e.Pos))
	for _, gate := range store.GatesIn(e.Limits) {
		if err == nil && limitRules[store.LimitOf(gate)].InOrder {
			_, err = tx.ExecContext(ctx, againSQL, gate, int64(e.ID))
		}
	}
	return err
}
