package sim

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

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

// Retain implements [store.Retainer].
func (p *process) Retain(ctx context.Context, r store.RetainStep) (store.Retained, error) {
	done, _, err := call(ctx, p, opRetain, func(ctx context.Context) (store.Retained, error) {
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
	return done, err
}

// Acquire implements [store.Leaser].
func (p *process) Acquire(ctx context.Context, name string, engine store.EngineID, term time.Duration) (store.Lease, error) {
	l, _, err := call(ctx, p, opLease, func(ctx context.Context) (store.Lease, error) {
		return p.store.Acquire(ctx, name, engine, term)
	})
	return l, err
}

// ReleaseLease implements [store.Leaser].
func (p *process) ReleaseLease(ctx context.Context, name string, engine store.EngineID) (bool, error) {
	held, _, err := call(ctx, p, opLease, func(ctx context.Context) (bool, error) {
		return p.store.ReleaseLease(ctx, name, engine)
	})
	return held, err
}

// Revoke implements [store.Leaser].
func (p *process) Revoke(ctx context.Context, name, by, why string) (store.Revocation, bool, error) {
	return p.store.Revoke(ctx, name, by, why)
}

// Leases implements [store.Leaser].
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
select j.pos, ifnull(e.queue, j.queue), ifnull(x.outcome, 0), ifnull(x.finished, 0)
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
		if err := rows.Scan(&id, &queue, &outcome, &finished); err != nil {
			return err
		}
		if w.operations.deleting(id) || !w.erased.note(id, began) {
			return nil
		}
		switch age := w.retention.Of(queue, outcome.State()); {
		case finished == 0:
			w.wrong("job %d was deleted for its age, and had not ended", id)
		case age == store.Forever || time.Since(time.UnixMicro(finished)) < age:
			w.wrong("job %d was deleted %v after it was %s, and is kept for %v", id, time.Since(time.UnixMicro(finished)), outcome, age)
		}
		return nil
	})
	if err != nil {
		w.wrong("see what was deleted: %v", err)
	}
}
