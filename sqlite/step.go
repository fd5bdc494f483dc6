package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.StepKeeper = (*Store)(nil)

const (
	// recordStepSQL records a step unless it is recorded already, or the attempt cannot record it.
	recordStepSQL = `
	insert into stint_steps (job, name, pos, began, ended, result, signal, question, until)
	select ?1, ?2, ?3, ?4, ?5, ?6, ?11, ?12, ?13` + canRecord + `
	on conflict do nothing`

	canRecordSQL = `select 1` + canRecord

	canRecord = `
	where exists (select 1 from stint_claims where lane = ?7 and n = ?8 and nonce = ?9 and engine = ?10)
	  and exists (select 1 from stint_entries where pos = ?3)
	  and not exists (select 1 from stint_executions where pos = ?3)`

	// noAnswerSQL ends the time of a question.
	noAnswerSQL = `
	update stint_steps set result = '{"timeout":true}', ended = ?11
	where job = ?1 and name = ?2 and result is null and until <= ?11
	  and exists (select 1` + canRecord + `)`

	stepSQL  = `select result, question, until from stint_steps where job = ? and name = ?`
	stepsSQL = `select name, began, case when result is not null then ended end, result, question, until from stint_steps where job = ? order by stint_steps.ended, name`

	// A job that is recovered goes on where the one before it was, unless that had come to its end.
	takeStepsSQL = `
	insert into stint_steps (job, name, pos, began, ended, result, question, until)
	select ?1, name, pos, began, ended, result, question, until from stint_steps where job = ?2
	  and not (question ->> 'job' is not null and ifnull(result ->> 'state', 'completed') <> 'completed')` + notCompleted

	notCompleted = `
	  and not exists (select 1 from stint_executions where pos = ?2 and job is null and final and outcome = 1)
	  and not exists (select 1 from stint_executions where job = ?2 and final and outcome = 1)`
)

// stepArgs are the parameters of recordStepSQL; all but the last three are those of canRecordSQL.
func stepArgs(engine store.EngineID, r *store.StepRecord, now time.Time) []any {
	ended := now.Add(-max(0, now.Sub(r.Ended)))
	began := now.Add(-max(0, now.Sub(r.Began)))
	var result, question, until any = string(r.Result), nil, nil
	if r.Question != nil {
		result, question, until = nil, store.QuestionText(r.Question), micro(r.Question.Until)
	}
	return []any{int64(r.Job), r.Name, int64(r.Pos), min(micro(began), micro(ended)), micro(ended), result,
		int64(r.Claim.Lane), r.Claim.N, int64(r.Claim.Nonce), int64(engine), nil, question, until}
}

// RecordSteps implements [store.StepKeeper].
func (s *Store) RecordSteps(ctx context.Context, engine store.EngineID, steps []store.StepRecord) ([]stint.RecordedStep, error) {
	if len(steps) == 0 {
		return nil, nil
	}
	return writing(ctx, s, fmt.Sprintf("record %d steps", len(steps)), func(c *conn) (recorded []stint.RecordedStep, wake bool, err error) {
		if err := c.fence(engine); err != nil {
			return nil, false, err
		}
		now := time.Now()
		recorded = make([]stint.RecordedStep, len(steps))
		for _, i := range byName(steps) {
			if recorded[i], err = c.recordStep(engine, &steps[i], now); err != nil {
				return nil, false, err
			}
		}
		return recorded, false, nil
	})
}

// byName is the order in which steps of one call take signals.
func byName(steps []store.StepRecord) []int {
	order := make([]int, len(steps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(steps[a].Job, steps[b].Job), cmp.Compare(steps[a].Name, steps[b].Name))
	})
	return order
}

// recordStep records a step if it can, and returns what is recorded of it then.
func (c *conn) recordStep(engine store.EngineID, r *store.StepRecord, now time.Time) (recorded stint.RecordedStep, err error) {
	args := stepArgs(engine, r, now)
	come := true
	if r.Signal != "" {
		if come, err = c.takeSignal(r, now, args); err != nil {
			return recorded, err
		}
	}
	if come {
		if _, err := c.exec(recordStepSQL, args...); err != nil {
			return recorded, err
		}
	}
	if r.Question != nil {
		if _, err := c.exec(noAnswerSQL, append(args[:signalArg:signalArg], micro(now))...); err != nil {
			return recorded, err
		}
		if r.Question.Job != 0 { // it has perhaps ended meanwhile
			if err := c.tellCallers(int64(r.Question.Job), micro(now)); err != nil {
				return recorded, err
			}
		}
	}
	err = c.query(stepSQL, []any{int64(r.Job), r.Name}, func(q *stmt) (err error) {
		recorded = stint.RecordedStep{Name: r.Name, Result: q.json(0)}
		if recorded.Result == nil {
			if r.Question == nil { // a question of this name is open
				recorded.Name = ""
				return nil
			}
			recorded.Question, err = store.ReadQuestion(q.ColumnText(1), q.time(2))
		}
		return err
	})
	if open := recorded.Question != nil; err == nil && (!come && recorded.Name == "" || open) {
		if can, wrong := c.found(canRecordSQL, args[:signalArg]...); can {
			recorded.Name = r.Name
		} else {
			recorded, err = stint.RecordedStep{}, wrong
		}
	}
	return recorded, err
}

// RecordStepTx implements [store.StepKeeper]. What [Store.FinishTx] says of the handler's transaction
// holds here too.
func (s *Store) RecordStepTx(ctx context.Context, tx stint.Tx, engine store.EngineID, step store.StepRecord) error {
	h, err := handle(tx)
	if err == nil {
		if err = s.recordStepIn(ctx, h, engine, &step); err != nil {
			_ = h.Rollback()
		} else {
			err = s.commit(ctx, h, stepSQL, int64(step.Job), step.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("record the step %q of job %d: %w", step.Name, step.Job, err)
	}
	return nil
}

func (s *Store) recordStepIn(ctx context.Context, tx *sql.Tx, engine store.EngineID, step *store.StepRecord) error {
	if err := s.standsIn(ctx, tx, engine); err != nil {
		return err
	}
	r, err := tx.ExecContext(ctx, s.named(recordStepSQL), stepArgs(engine, step, time.Now())...)
	if err != nil {
		return translate(err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, store.ErrStepRefused)
	}
	return nil
}

// Steps implements [store.StepKeeper].
func (s *Store) Steps(ctx context.Context, job stint.ID) ([]stint.RecordedStep, error) {
	return reading(ctx, s, fmt.Sprintf("read the steps of job %d", job), func(c *conn) (all []stint.RecordedStep, err error) {
		err = c.query(stepsSQL, []any{int64(job)}, func(q *stmt) (err error) {
			r := stint.RecordedStep{Name: q.ColumnText(0), Began: q.time(1), Ended: q.time(2), Result: q.json(3)}
			if !q.isNull(4) {
				r.Question, err = store.ReadQuestion(q.ColumnText(4), q.time(5))
			}
			all = append(all, r)
			return err
		})
		return all, err
	})
}
