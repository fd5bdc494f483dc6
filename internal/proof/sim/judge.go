package sim

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/proof/check"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// judging compares what was written down with what the database says.
type judging struct {
	*Verdict
	ledger     *store.Ledger
	told       map[stint.ID]told
	executions map[store.Position]*store.LedgerExecution
	lanes      map[store.Position]store.LaneID
	gone       map[stint.ID]bool // deleted
}

// told is a job as people see it, and what it was told to do.
type told struct {
	args
	info stint.JobInfo
}

func (w *world) judge(ctx context.Context) (*Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, log := range w.logs {
		if err := log.Close(); err != nil {
			return nil, err
		}
	}
	j := &judging{Verdict: &Verdict{trace: &w.trace, Violations: w.violations}}
	var err error
	if j.ledger, err = w.real.Audit(ctx); err != nil {
		return nil, err
	}
	if j.told, err = w.told(ctx); err != nil {
		return nil, err
	}
	if err := j.restore(ctx, w.ground); err != nil {
		return nil, err
	}
	j.lanes = make(map[store.Position]store.LaneID, len(j.ledger.Entries))
	for _, e := range j.ledger.Entries {
		j.lanes[e.Pos] = e.Lane
	}
	j.executions = make(map[store.Position]*store.LedgerExecution, len(j.ledger.Executions))
	for i := range j.ledger.Executions {
		x := &j.ledger.Executions[i]
		j.executions[x.Pos] = x
	}
	if err := j.compare(w); err != nil {
		return nil, err
	}
	j.checkEnds(w.cancels)
	j.checkCancellations(w.cancels, w.operations, &w.erased)
	j.checkOperations(w.operations, &w.erased)
	j.checkDecisions(w)
	j.checkVisits(w)
	j.checkAnswersNow(w)
	if err := j.checkSchedules(ctx, w); err != nil {
		return nil, err
	}
	if err := j.checkEffects(ctx, w); err != nil {
		return nil, err
	}
	return j.Verdict, nil
}

// wrong notes a violation, of a job's.
func (j *judging) wrong(job stint.ID, format string, args ...any) {
	j.Violations = append(j.Violations, fmt.Sprintf("job %d: %s", job, fmt.Sprintf(format, args...)))
	j.suspects = append(j.suspects, int64(job))
}

// compare has package check compare the two accounts.
func (j *judging) compare(w *world) error {
	facts := storetest.Facts(j.ledger)
	for i := range facts.Jobs {
		job := &facts.Jobs[i]
		t := j.told[stint.ID(job.ID)]
		job.Key, job.ChargedMax, job.LossesMax = t.Key, t.Grant, stint.DefaultMaxLosses
		if t.Asks {
			job.ChargedMax += stint.DefaultMaxLosses // which the function is not asked about
		}
		if t.ticks() {
			job.Key = "" // they share it
			if from := t.info.Origin; from.Recovered == 0 {
				job.Schedule, job.Occurrence = t.Key, from.Occurrence
			}
		}
		job.CompletesItself, job.Kept, job.Recovers = t.Tx, t.info.Kind == kept, int64(t.info.Origin.Recovered)
	}
	history, err := check.Read(w.historyDir)
	if err != nil {
		return err
	}
	j.Report = check.Compare(history, facts, check.Options{Drained: true, Clean: w.clean, Disturbances: w.disturbed})
	for _, broken := range j.Report.Violations {
		j.Violations = append(j.Violations, broken.String())
		if broken.Job != 0 {
			j.suspects = append(j.suspects, broken.Job)
		}
	}
	return nil
}

// told reads what each job was told to do.
func (w *world) told(ctx context.Context) (map[stint.ID]told, error) {
	list, err := w.real.Jobs(ctx, store.Filter{Limit: 100 * jobs})
	if err != nil {
		return nil, err
	}
	all := make(map[stint.ID]told, len(list))
	for i := range list {
		t := told{info: list[i]}
		if err := json.Unmarshal(t.info.Args, &t.args); err != nil {
			return nil, err
		}
		all[t.info.ID] = t
	}
	return all, nil
}

// checkEnds checks that a job which ended badly had to: that it was not given
// up while its policy granted another attempt, nor cancelled unasked.
func (j *judging) checkEnds(cancels *cancellations) {
	for _, x := range j.executions {
		if !x.Final {
			continue
		}
		a := j.told[x.Job].args
		switch x.Outcome {
		case stint.OutcomeCancelled:
			if _, asked := cancels.of(x.Job); !asked && a.Last != lastCancel {
				j.wrong(x.Job, "it was cancelled, and nobody asked for that")
			}
		case stint.OutcomeLost:
			if n := j.losses(x.Job); n < stint.DefaultMaxLosses && (a.Grant == 0 || x.Attempt < a.Grant) {
				j.wrong(x.Job, "it was given up as lost after %d losses and %d attempts", n, x.Attempt)
			}
		case stint.OutcomeFailed:
			if n := j.charges(x); a.Last != lastGiveUp && n < a.Grant {
				j.wrong(x.Job, "it failed for good after %d attempts of %d", n, a.Grant)
			}
		}
	}
}

func (j *judging) losses(job stint.ID) int {
	n := 0
	for _, x := range j.executions {
		if x.Job == job && x.Outcome == stint.OutcomeLost {
			n++
		}
	}
	return n
}
