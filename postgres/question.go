package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.Questioner = (*Store)(nil)

const (
	answerSQL = `select stint.answer($1::bigint, $2::text, $3::text, $4::text, $5::text, $6::boolean)`

	// questionsSQL looks at the open questions and those of jobs that ended without an answer, by their
	// index, and at the jobs of these alone: offset 0 keeps all jobs from being joined.
	questionsSQL = `
	select job, kind, queue, name, began, question, until from (
	  select s.job, j.kind, j.queue, s.name, s.began, s.question, s.until
	  from (select * from stint.steps s where s.result is null and (s.question ? 'job') is not true order by s.job desc) s
	  cross join lateral (select j.kind, j.queue, j.state from stint.jobs j where j.id = s.job offset 0) j
	  where s.job < $1 and s.until > clock_timestamp() and j.state not in ('completed', 'failed', 'cancelled')
	  order by s.job desc fetch first $2 rows with ties) q
	order by job desc, name collate "C"`
)

// Answer implements [store.Questioner].
func (s *Store) Answer(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) (err error) {
	defer wrap(&err, "answer the question %q of job %d", question, job)
	give := statement{s.sql.in(answerSQL), []any{int64(job), question, a.Choice, a.By, a.Comment, !tx.Quiet}}
	if tx.Handle != nil {
		err = runIn(ctx, tx, []statement{give}, func(row func(...any) error) error { return row(new(any)) })
		return refusedAnswer(question, err)
	}
	// Whatever the session's isolation: who waited for another's answer is to see it.
	batch := &pgx.Batch{}
	batch.Queue(beginSQL)
	batch.Queue(give.text, give.args...)
	batch.Queue(commitSQL)
	err = spoken(ctx, s.pool, func(c *pgxpool.Conn) error { return c.SendBatch(ctx, batch).Close() })
	return refusedAnswer(question, translate(err))
}

// refusedAnswer adds to an error of stint.answer what it is about.
func refusedAnswer(question string, err error) error {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case "ST014":
		answered := &stint.AnsweredError{Question: question}
		if err := json.Unmarshal([]byte(pg.Detail), &answered.Answer); err != nil {
			return err
		}
		return answered
	case "ST016":
		var choices []string
		if err := json.Unmarshal([]byte(pg.Detail), &choices); err != nil {
			return err
		}
		return store.NoChoice(choices)
	}
	return err
}

// Questions implements [store.QuestionReader].
func (s *Store) Questions(ctx context.Context, f store.QuestionFilter) ([]store.OpenQuestion, error) {
	before, limit := int64(f.Before), int64(f.Limit)
	if before <= 0 {
		before = math.MaxInt64
	}
	if limit <= 0 {
		limit = math.MaxInt64
	}
	return collect(ctx, s.pool, "list questions", s.sql.in(questionsSQL), []any{before, limit},
		func(row pgx.CollectableRow) (q store.OpenQuestion, err error) {
			var text string
			if err = scan(row, &q.Job, &q.Kind, &q.Queue, &q.Name, &q.Asked, &text, &q.Until); err != nil {
				return q, err
			}
			kept, err := store.ReadQuestion(text, q.Until)
			if err == nil {
				q.Question = *kept
			}
			return q, err
		})
}
