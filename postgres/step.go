package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.StepKeeper = (*Store)(nil)

const (
	recordStepsSQL = `select fresh, results, questions, untils from stint.record_steps($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`
	stepsSQL       = `select name, began, case when result is not null then ended end, result, question, until from stint.steps where job = $1 order by steps.ended, name collate "C"`
)

// RecordSteps implements [store.StepKeeper]: one message to its commit.
func (s *Store) RecordSteps(ctx context.Context, engine store.EngineID, steps []store.StepRecord) (recorded []stint.RecordedStep, err error) {
	if len(steps) == 0 {
		return nil, nil
	}
	defer wrap(&err, "record %d steps", len(steps))
	var (
		fresh     []bool
		results   []*string
		questions []*string
		untils    []*time.Time
	)
	_, err = retryExplicit(s, func() (struct{}, error) {
		return struct{}{}, s.once(ctx, func(row pgx.Row) error { return row.Scan(&fresh, &results, &questions, &untils) }, s.sql.in(recordStepsSQL), stepArgs(engine, steps)...)
	})
	if err != nil {
		return nil, err
	}
	recorded = make([]stint.RecordedStep, len(steps))
	for i, result := range results {
		if result == nil {
			continue
		}
		if recorded[i].Name = steps[i].Name; *result != "" {
			recorded[i].Result = []byte(*result)
		}
		if questions != nil && questions[i] != nil {
			if recorded[i].Question, err = store.ReadQuestion(*questions[i], *untils[i]); err != nil {
				return nil, err
			}
		}
	}
	return recorded, nil
}

// stepArgs are the columns that stint.record_steps takes.
func stepArgs(engine store.EngineID, steps []store.StepRecord) []any {
	n := len(steps)
	lane, number, nonce, pos, job := make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
	name, began, ended, result := make([]string, n), make([]int64, n), make([]int64, n), make([]string, n)
	var signal, question sparse[string]
	var until []time.Time
	now := time.Now()
	for i, r := range steps {
		lane[i], number[i], nonce[i] = int64(r.Claim.Lane), r.Claim.N, int64(r.Claim.Nonce)
		pos[i], job[i], name[i], result[i] = int64(r.Pos), int64(r.Job), r.Name, string(r.Result)
		ended[i] = age(now, r.Ended)
		began[i] = max(age(now, r.Began), ended[i])
		if r.Signal != "" {
			signal.setText(n, i, r.Signal)
		}
		if r.Question != nil {
			question.setText(n, i, store.QuestionText(r.Question))
			r.Until, result[i] = r.Question.Until, "" // which is null there
		}
		if r.Signal != "" || r.Question != nil {
			if until == nil {
				until = make([]time.Time, n)
			}
			until[i] = r.Until
		}
	}
	return []any{int64(engine), lane, number, nonce, pos, job, name, began, ended, result, signal.column, until, question.column}
}

// RecordStepTx implements [store.StepKeeper]. The transaction must be read committed, so that the fence
// holds.
func (s *Store) RecordStepTx(ctx context.Context, tx stint.Tx, engine store.EngineID, step store.StepRecord) (err error) {
	defer wrap(&err, "record the step %q of job %d", step.Name, step.Job)
	record := statement{s.sql.in(`select fresh[1] from (` + recordStepsSQL + `) r`), stepArgs(engine, []store.StepRecord{step})}
	return commitIn(ctx, tx, record, store.ErrStepRefused)
}

// Steps implements [store.StepKeeper].
func (s *Store) Steps(ctx context.Context, job stint.ID) ([]stint.RecordedStep, error) {
	// A handler that asks may hold a connection of the program's pool, as all others do.
	return collect(ctx, s.work(), fmt.Sprintf("read the steps of job %d", job), s.sql.in(stepsSQL), []any{job},
		func(row pgx.CollectableRow) (r stint.RecordedStep, err error) {
			var question string
			var until time.Time
			err = scan(row, &r.Name, &r.Began, &r.Ended, &r.Result, &question, &until)
			if err == nil && question != "" {
				r.Question, err = store.ReadQuestion(question, until)
			}
			return r, err
		})
}
