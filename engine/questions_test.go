package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

// A handler asks without a slot; its question is kept once, and the first answer has the job run again, whatever
// fails before and after.
func TestAHandlerAsksPeople(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var runs atomic.Int32
		mux := stint.NewMux()
		kind := stint.NewResultKind[struct{}, stint.Answer]("asks", soon)
		stint.HandleResult(mux, kind, func(ctx context.Context, job *stint.Job, _ struct{}) (stint.Answer, error) {
			n := runs.Add(1)
			a, err := stint.Ask(ctx, "approve", fmt.Sprintf("Pay %d EUR?", n), 24*time.Hour, "pay", "refuse")
			if err != nil {
				return a, fmt.Errorf("ask: %w", err)
			}
			if job.Attempt == 1 {
				return a, errors.New("after the answer")
			}
			return a, nil
		})
		handle(mux, "other", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{Slots: 1})
		client := stint.NewClient(s)
		id, err := kind.Enqueue(t.Context(), client, struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		job := until(t, s, id, stint.Blocked)
		if x := job.Attempts[0]; !slices.Equal(job.Asks, []string{"approve"}) || len(job.Awaits) > 0 || x.Outcome != stint.OutcomeSnoozed ||
			!strings.HasPrefix(x.Reason, `awaits the answer to "approve" until `) || time.Until(job.Due) < 23*time.Hour {
			t.Errorf("it asks %q, awaits %q, is due in %v: %+v", job.Asks, job.Awaits, time.Until(job.Due), x)
		}
		until(t, s, enqueue(t, s, "other", `{}`), stint.Completed)
		if _, err := client.Retry(t.Context(), id); err != nil { // it looks again, and does not ask again
			t.Fatal(err)
		}
		for runs.Load() < 2 {
			time.Sleep(time.Millisecond)
		}
		until(t, s, id, stint.Blocked)
		open, err := s.(store.QuestionReader).Questions(t.Context(), store.QuestionFilter{})
		if err != nil || len(open) != 1 || open[0].Text != "Pay 1 EUR?" || open[0].Until.Sub(job.Due).Abs() > time.Minute {
			t.Errorf("open are %+v, %v", open, err)
		}
		if err := client.Answer(t.Context(), id, "approve", stint.Answer{Choice: "later", By: "bob"}); !errors.Is(err, stint.ErrInvalid) {
			t.Errorf("what is no choice gives %v", err)
		}
		if err := client.Answer(t.Context(), id, "approve", stint.Answer{Choice: "refuse", By: "ann", Comment: "no"}); err != nil {
			t.Fatal(err)
		}
		answered, ok := errors.AsType[*stint.AnsweredError](client.Answer(t.Context(), id, "approve", stint.Answer{Choice: "pay", By: "bob"}))
		if !ok || answered.Error() != `stint: the question "approve" was answered by ann: refuse` {
			t.Errorf("another answer gives %v", answered)
		}
		job = until(t, s, id, stint.Completed)
		if a, err := kind.Result(job); err != nil || a.Choice != "refuse" || a.By != "ann" || a.Comment != "no" || time.Since(a.At).Abs() > time.Minute || job.Attempt != 2 {
			t.Errorf("it got %+v, %v at attempt %d", a, err, job.Attempt)
		}
	})
}

// The time to answer counts from the first run that asks, and what comes after it is refused.
func TestAQuestionWithoutAnAnswerIsOver(t *testing.T) {
	inBubble(t, 100*time.Hour, func(t *testing.T, s *sqlite.Store) {
		var starts []time.Duration
		began := time.Now()
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			starts = append(starts, time.Since(began).Round(time.Minute))
			_, err := stint.Ask(ctx, "late", "?", 10*time.Hour, "yes")
			if job.Attempt == 1 {
				return errors.Join(errors.New("in its place comes something else"), err)
			}
			if !errors.Is(err, stint.ErrNoAnswer) {
				return err
			}
			return stint.Sleep(ctx, "a while", time.Hour)
		})
		stop := start(t, aloof{lonely{s}, s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		id := enqueue(t, s, "k", `{}`, stint.Retry(retry.Fixed(1, time.Hour)))
		time.Sleep(10*time.Hour + 30*time.Minute)
		if err := stint.NewClient(s).Answer(t.Context(), id, "late", stint.Answer{Choice: "yes", By: "ann"}); !errors.Is(err, stint.ErrNoAnswer) {
			t.Errorf("a late answer gives %v", err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		want := []time.Duration{0, time.Hour, 10 * time.Hour, 11 * time.Hour}
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || !slices.Equal(starts, want) {
			t.Errorf("it is %s, %v; it began after %v, want %v: %+v", job.State, err, starts, want, job.Attempts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// While an answer is being given in a transaction that is open when the time is over, the job waits on, without a
// loop. (On SQLite such a transaction holds up every writer.)
func TestATransactionThatAnswersIsWaitedFor(t *testing.T) {
	t.Parallel()
	url := migrated.New(t)
	s, err := postgres.Open(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close(context.Background()) })
	var runs atomic.Int32
	mux := stint.NewMux()
	handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
		runs.Add(1)
		a, err := stint.Ask(ctx, "q", "?", 2*time.Second, "yes")
		if err == nil && a.By != "ann" {
			err = fmt.Errorf("it got %+v", a)
		}
		return err
	})
	start(t, s, mux, engine.Config{Slots: 1})
	id := enqueue(t, s, "k", `{}`)
	until(t, s, id, stint.Blocked)
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stint.NewClient(s).With(postgres.Tx(tx)).Answer(t.Context(), id, "q", stint.Answer{Choice: "yes", By: "ann"}); err != nil {
		t.Fatal(err)
	}
	for runs.Load() < 2 {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(time.Second)
	if n := runs.Load(); n != 2 {
		t.Errorf("it ran %d times, want 2", n)
	}
	committed := time.Now()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if job := until(t, s, id, stint.Completed); time.Since(committed) > 8*time.Second {
		t.Errorf("it was not woken by the commit: %+v", job.Attempts)
	}
}
