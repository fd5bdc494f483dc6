package sim

import (
	"context"
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

// Undecided implements [store.RetryDecider].
func (p *process) Undecided(ctx context.Context, funcs []string, after stint.ID, limit int) ([]store.PendingRetry, error) {
	all, _, err := call(ctx, p, opUndecided, func(ctx context.Context) ([]store.PendingRetry, error) {
		return p.store.Undecided(ctx, funcs, after, limit)
	})
	return all, err
}

// Decide implements [store.RetryDecider].
func (p *process) Decide(ctx context.Context, engine store.EngineID, done []store.Completion) ([]stint.ID, error) {
	ids, _, err := call(ctx, p, opDecide, func(ctx context.Context) ([]stint.ID, error) {
		ids, err := p.store.Decide(ctx, engine, done)
		p.w.note(p.name, numbers(ids), "decide, engine %x: %d of %d, %v", engine, len(ids), len(done), err)
		p.w.decided(ids, done)
		return ids, err
	})
	return ids, err
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

// checkDecisions checks that nothing ran behind a failure before somebody had
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
