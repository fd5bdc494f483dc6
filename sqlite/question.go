package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/store"
)

var _ store.Questioner = (*Store)(nil)

const (
	// askedSQL is one row: the state of a job, and the step that has the name of a question; nulls for none.
	askedSQL = `
	select (select j.state from stint_jobs j where j.id = ?1), s.question, s.until, s.result
	from (select 1) left join stint_steps s on s.job = ?1 and s.name = ?2`

	answerSQL = `update stint_steps set result = ?3, ended = ?4 where job = ?1 and name = ?2`

	// questionsSQL looks at the open questions and those of jobs that ended without an answer, by their
	// index, and at the jobs of these alone.
	questionsSQL = `
	select s.job, j.kind, j.queue, s.name, s.began, s.question, s.until
	from stint_steps s cross join stint_jobs j on j.id = s.job
	where s.result is null and s.question ->> 'job' is null and s.job < ?1 and s.until > ?2 and j.state not in ('completed', 'failed', 'cancelled')
	order by s.job desc, s.name`
)

// Answer implements [store.Questioner].
func (s *Store) Answer(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) (err error) {
	if tx.Handle != nil {
		err = s.answerIn(ctx, tx, job, question, a)
	} else {
		err = s.write(ctx, func(c *conn) (bool, error) {
			var is asked
			err := c.query(askedSQL, []any{int64(job), question}, func(q *stmt) error {
				is = asked{q.words(0), q.words(1), q.ColumnInt64(2), q.words(3)}
				return nil
			})
			if err != nil {
				return false, err
			}
			now := time.Now()
			result, err := is.answer(question, a, now)
			if err != nil {
				return false, err
			}
			if _, err = c.exec(answerSQL, int64(job), question, result, micro(now)); err == nil {
				_, err = c.exec(wakeSQL, int64(job), micro(now))
			}
			return true, err
		})
	}
	if err != nil {
		return fmt.Errorf("answer the question %q of job %d: %w", question, job, err)
	}
	return nil
}

func (s *Store) answerIn(ctx context.Context, tx stint.Tx, job stint.ID, question string, a stint.Answer) error {
	h, err := handle(tx)
	if err != nil {
		return err
	}
	if err := s.sameDatabase(ctx, h); err != nil {
		return err
	}
	var state, text, result sql.NullString
	var until sql.NullInt64
	if err := h.QueryRowContext(ctx, s.named(askedSQL), int64(job), question).Scan(&state, &text, &until, &result); err != nil {
		return translate(err)
	}
	now := time.Now()
	given, err := asked{state.String, text.String, until.Int64, result.String}.answer(question, a, now)
	if err != nil {
		return err
	}
	if _, err = h.ExecContext(ctx, s.named(answerSQL), int64(job), question, given, micro(now)); err == nil {
		_, err = h.ExecContext(ctx, s.named(wakeSQL), int64(job), micro(now))
	}
	return translate(err)
}

// asked is the row of askedSQL.
type asked struct {
	state, question string
	until           int64
	result          string
}

// answer is what is recorded of an answer, or why it is refused.
func (r asked) answer(name string, a stint.Answer, now time.Time) (string, error) {
	var step *stint.RecordedStep
	if r.question != "" {
		q, err := store.ReadQuestion(r.question, fromMicro(r.until))
		if err != nil {
			return "", err
		}
		step = &stint.RecordedStep{Question: q}
		if r.result != "" {
			step.Result = json.RawMessage(r.result)
		}
	}
	if err := store.CheckAnswer(stint.State(r.state), step, name, a, now); err != nil {
		return "", err
	}
	a.At = now.UTC().Truncate(time.Microsecond)
	text, err := json.Marshal(a)
	return string(text), err
}

var errPageFull = errors.New("there are as many as were asked for")

// Questions implements [store.QuestionReader].
func (s *Store) Questions(ctx context.Context, f store.QuestionFilter) ([]store.OpenQuestion, error) {
	before := int64(f.Before)
	if before <= 0 {
		before = math.MaxInt64
	}
	return reading(ctx, s, "list questions", func(c *conn) (all []store.OpenQuestion, err error) {
		err = c.query(questionsSQL, []any{before, micro(time.Now())}, func(q *stmt) error {
			job, n := stint.ID(q.ColumnInt64(0)), len(all)
			if f.Limit > 0 && n >= f.Limit && all[n-1].Job != job {
				return errPageFull
			}
			kept, err := store.ReadQuestion(q.ColumnText(5), q.time(6))
			if err != nil {
				return err
			}
			all = append(all, store.OpenQuestion{Job: job, Kind: q.ColumnText(1), Queue: q.ColumnText(2), Name: q.ColumnText(3), Asked: q.time(4), Question: *kept})
			return nil
		})
		if errors.Is(err, errPageFull) {
			err = nil
		}
		return all, err
	})
}
