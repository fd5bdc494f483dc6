package sim

import (
	"context"
	"errors"
	"fmt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

// completes notes what a handler was told when it completed its job.
func (w *world) completes(e *effect) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.effects = append(w.effects, e)
}

// trail is what one effect left in the database.
type trail struct {
	job     stint.ID
	pos     store.Position
	process string
	n       int
}

func (e *effect) trail() trail { return trail{e.job, e.pos, e.process, e.n} }

// trails reads them all, each with how often it is there.
func (w *world) trails(ctx context.Context) (map[trail]int, error) {
	rows, err := w.ground.db.QueryContext(ctx, `select job, pos, process, n from sim_effects`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[trail]int{}
	for rows.Next() {
		var t trail
		if err := rows.Scan(&t.job, &t.pos, &t.process, &t.n); err != nil {
			return nil, err
		}
		all[t]++
	}
	return all, rows.Err()
}

// checkEffects holds what handlers wrote in the transactions that completed
// their jobs against what they were told, and against the outcomes.
func (j *judging) checkEffects(ctx context.Context, w *world) error {
	trails, err := w.trails(ctx)
	if err != nil {
		return err
	}
	of := map[stint.ID]int{}
	at := map[store.Position]bool{}
	for t, n := range trails {
		of[t.job] += n
		at[t.pos] = true
		if x := j.executions[t.pos]; x == nil || x.Job != t.job || x.Outcome != stint.OutcomeCompleted {
			j.wrong(t.job, "%s wrote in a transaction that completes entry %d, which is %s", t.process, t.pos, outcomeOf(x))
		}
	}
	for job, n := range of {
		if n > 1 {
			j.wrong(job, "it was completed in %d transactions", n)
		}
	}
	for _, e := range w.effects {
		n := trails[e.trail()]
		switch {
		case e.answer == nil && n != 1:
			j.wrong(e.job, "%s was told that entry %d is completed, and of what it wrote there are %d", e.process, e.pos, n)
		case e.answer != nil && n > 0 && !errors.Is(e.answer, stint.ErrCommitUnknown):
			j.wrong(e.job, "%s was told that entry %d is not completed (%v), and what it wrote is there", e.process, e.pos, e.answer)
		}
	}
	for pos, x := range j.executions {
		a := j.told[x.Job].args
		if x.Outcome == stint.OutcomeCompleted && a.Tx && !a.Shrug && !at[pos] {
			j.wrong(x.Job, "it was completed without what its handler wrote with that")
		}
	}
	return nil
}

func outcomeOf(x *store.LedgerExecution) string {
	if x == nil {
		return "not concluded"
	}
	return fmt.Sprint(x.Outcome)
}
