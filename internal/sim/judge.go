package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/check"
	"github.com/stint-go/stint/storetest"
)

// drain waits until every job is final. That it comes to that is the promise:
// with all engines well, nothing stays behind.
func (w *world) drain(ctx context.Context) {
	for until := time.Now().Add(drained); ; time.Sleep(500 * time.Millisecond) {
		counts, err := w.real.Counts(ctx)
		if err != nil {
			w.wrong("count the jobs: %v", err)
			return
		}
		open := int64(0)
		for state, n := range counts {
			if !state.Final() {
				open += n
			}
		}
		if open == 0 {
			return
		}
		if time.Now().After(until) {
			w.wrong("%v after the trouble %d jobs are not done: %v", drained, open, counts)
			return
		}
	}
}

// judge compares what was written down with what the database says.
func (w *world) judge(ctx context.Context) (*Verdict, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, log := range w.logs {
		if err := log.Close(); err != nil {
			return nil, err
		}
	}
	ledger, err := w.real.Audit(ctx)
	if err != nil {
		return nil, err
	}
	facts := storetest.Facts(ledger)
	told, err := w.told(ctx)
	if err != nil {
		return nil, err
	}
	for i := range facts.Jobs {
		j := &facts.Jobs[i]
		a := told[j.ID]
		j.Key, j.ChargedMax, j.LossesMax = a.Key, a.Grant, stint.DefaultMaxLosses
	}
	history, err := check.Read(w.historyDir)
	if err != nil {
		return nil, err
	}
	v := &Verdict{trace: &w.trace}
	v.Report = check.Compare(history, facts, check.Options{Drained: true, Clean: w.clean, Disturbances: w.disturbed})
	v.Violations = append(v.Violations, w.violations...)
	for _, broken := range v.Report.Violations {
		v.Violations = append(v.Violations, broken.String())
		if broken.Job != 0 {
			v.suspects = append(v.suspects, broken.Job)
		}
	}
	for i := range ledger.Executions {
		x := &ledger.Executions[i]
		if err := fair(told[int64(x.Job)], x, ledger); err != nil {
			v.Violations = append(v.Violations, fmt.Sprintf("job %d: %v", x.Job, err))
			v.suspects = append(v.suspects, int64(x.Job))
		}
	}
	return v, nil
}

// told reads what each job was told to do.
func (w *world) told(ctx context.Context) (map[int64]args, error) {
	list, err := w.real.Jobs(ctx, stint.Filter{Limit: 100 * jobs})
	if err != nil {
		return nil, err
	}
	told := make(map[int64]args, len(list))
	for i := range list {
		var a args
		if err := json.Unmarshal(list[i].Args, &a); err != nil {
			return nil, err
		}
		told[int64(list[i].ID)] = a
	}
	return told, nil
}

// fair checks that a job which ended badly had to: that it was not given up
// while its policy granted another attempt.
func fair(a args, x *stint.LedgerExecution, l *stint.Ledger) error {
	if !x.Final {
		return nil
	}
	switch x.Outcome {
	case stint.OutcomeCancelled:
		if a.Last != lastCancel {
			return errors.New("it was cancelled, and nobody asked for that")
		}
	case stint.OutcomeLost:
		if n := losses(l, x.Job); n < stint.DefaultMaxLosses && (a.Grant == 0 || x.Attempt < a.Grant) {
			return fmt.Errorf("it was given up as lost after %d losses and %d attempts", n, x.Attempt)
		}
	case stint.OutcomeFailed:
		if a.Last != lastGiveUp && x.Attempt < a.Grant {
			return fmt.Errorf("it failed for good at attempt %d of %d", x.Attempt, a.Grant)
		}
	}
	return nil
}

func losses(l *stint.Ledger, job stint.ID) int {
	n := 0
	for i := range l.Executions {
		if x := &l.Executions[i]; x.Job == job && x.Outcome == stint.OutcomeLost {
			n++
		}
	}
	return n
}
