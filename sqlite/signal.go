package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/internal/valid"
	"github.com/stint-go/stint/store"
)

var _ store.Signaler = (*Store)(nil)

const (
	signalSQL = `insert into stint_signals (job, name, sent, key, value) values (?, ?, ?, ?, ?) on conflict do nothing`

	// maySignalSQL answers 'sent' if the job has a signal of that key, 'full' if it has as many as a job may have steps, or else the
	// state of the job. The key is looked for first: whoever repeats it may have had the job run to its end.
	maySignalSQL = `
	select case
	  when exists (select 1 from stint_signals where job = ?1 and key = ?2) then 'sent'
	  when (select count(*) >= 10000 or sum(length(value)) + ?3 > 16777216 from stint_signals where job = ?1) then 'full'
	  else (select state from stint_jobs where id = ?1) end`

	// wakeSQL makes a job due that waits for a signal or an answer which is there. One writer writes at a time, so who
	// blocks a job sees the signals that were sent, and who sends one sees the job.
	wakeSQL = `
	update stint_waiting set due = min(due, ?2)
	where job = ?1 and awaits is not null and (exists (
	  select 1 from json_each(awaits) a join stint_signals s on s.job = ?1 and s.name = a.value
	  where not exists (select 1 from stint_steps t where t.signal = s.n))
	or exists (
	  select 1 from json_each(awaits) a join stint_steps t on t.job = ?1 and t.name = a.key
	  where a.value = '' and t.result is not null))`

	nextSignalSQL = `
	select n, json_object('signal', n, 'value', json(value)) from stint_signals s
	where job = ? and name = ? and not exists (select 1 from stint_steps t where t.signal = s.n) order by n limit 1`

	// A job that is recovered takes along what was not taken.
	takeSignalsSQL = `
	insert into stint_signals (job, name, sent, key, value)
	select ?1, name, sent, key, value from stint_signals s where job = ?2
	  and not exists (select 1 from stint_steps t where t.signal = s.n)` + notCompleted + ` order by n`

	signalsSQL = `
	select n, name, sent, ifnull(key, ''), ifnull((select t.name from stint_steps t where t.signal = s.n), ''), value
	from stint_signals s where job = ? order by n`
)

// Signal implements [store.Signaler].
func (s *Store) Signal(ctx context.Context, tx stint.Tx, job stint.ID, signal stint.Signal) (err error) {
	if tx.Handle != nil {
		err = s.signalIn(ctx, tx, job, signal)
	} else {
		err = s.write(ctx, func(c *conn) (bool, error) {
			answer, err := oneRow(c, firstText[string], maySignalSQL, int64(job), nilText(signal.Key), len(signal.Value))
			if may, err := mayGet(answer, err); !may {
				return false, err
			}
			now := micro(time.Now()) // no promotion has looked since
			if _, err = c.exec(signalSQL, signalArgs(job, signal, now)...); err == nil {
				_, err = c.exec(wakeSQL, int64(job), now)
			}
			return true, err
		})
	}
	if err != nil {
		return fmt.Errorf("send the signal %q to job %d: %w", signal.Name, job, err)
	}
	return nil
}

func (s *Store) signalIn(ctx context.Context, tx stint.Tx, job stint.ID, signal stint.Signal) error {
	h, err := handle(tx)
	if err != nil {
		return err
	}
	if err := s.sameDatabase(ctx, h); err != nil {
		return err
	}
	var answer sql.NullString
	err = h.QueryRowContext(ctx, s.named(maySignalSQL), int64(job), nilText(signal.Key), len(signal.Value)).Scan(&answer)
	if may, err := mayGet(answer.String, err); !may {
		return translate(err)
	}
	now := micro(time.Now())
	if _, err = h.ExecContext(ctx, s.named(signalSQL), signalArgs(job, signal, now)...); err == nil {
		_, err = h.ExecContext(ctx, s.named(wakeSQL), int64(job), now)
	}
	return translate(err)
}

func signalArgs(job stint.ID, s stint.Signal, now int64) []any {
	return []any{int64(job), s.Name, now, nilText(s.Key), string(s.Value)}
}

// mayGet reports whether a job gets a signal, by the answer of maySignalSQL, or why not. The error is nil when
// it has that one.
func mayGet(answer string, err error) (bool, error) {
	switch {
	case err != nil || answer == "sent":
		return false, err
	case answer == "full":
		return false, valid.Invalid("signal", "the job has so many, or so large ones, that it gets no more")
	case answer == "":
		return false, stint.ErrNotFound
	case stint.State(answer).Final():
		return false, stint.ErrEnded
	}
	return true, nil
}

// Where these stand among the parameters of a step.
const resultArg, signalArg = 5, 10

// takeSignal puts into the parameters of a step what it comes to, and reports whether that is known.
func (c *conn) takeSignal(r *store.StepRecord, now time.Time, args []any) (come bool, err error) {
	err = c.query(nextSignalSQL, []any{int64(r.Job), r.Signal}, func(q *stmt) error {
		come = true
		args[signalArg], args[resultArg] = q.ColumnInt64(0), q.ColumnText(1)
		return nil
	})
	if err == nil && !come && !now.Before(r.Until) {
		come = true
		args[resultArg] = `{"timeout":true}`
	}
	return come, err
}

// Signals implements [store.SignalReader].
func (s *Store) Signals(ctx context.Context, job stint.ID) ([]stint.SentSignal, error) {
	return collect(ctx, s, fmt.Sprintf("read the signals of job %d", job), signalsSQL, []any{int64(job)}, func(q *stmt) stint.SentSignal {
		return stint.SentSignal{N: q.ColumnInt64(0), Name: q.ColumnText(1), Sent: q.time(2), Key: q.ColumnText(3), Step: q.ColumnText(4), Value: q.json(5)}
	})
}
