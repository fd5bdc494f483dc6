package engine_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
)

func TestWhatAHandlerLeftRunningCompletesNothing(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		left := make(chan context.Context, 1)
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error { left <- ctx; return nil })
		start(t, s, mux, engine.Config{})
		until(t, s, enqueue(t, s, "k", `{}`), stint.Completed)
		if err := engine.CompleteTx(<-left, stint.Tx{}, nil); !errors.Is(err, engine.ErrNoAttempt) {
			t.Errorf("the error is %v, want ErrNoAttempt", err)
		}
	})
}

// recording is a store that completes without a transaction, and notes what is
// recorded besides.
type recording struct {
	*sqlite.Store
	answer error // to a completion, which it makes in any case

	mu      sync.Mutex
	batches [][]stint.Outcome
}

func (r *recording) FinishTx(ctx context.Context, _ stint.Tx, engine store.EngineID, claim store.ClaimRef, x store.Completion) error {
	_, err := r.Store.Finish(ctx, engine, []store.ClaimRef{claim}, []store.Completion{x})
	return errors.Join(r.answer, err)
}

func (r *recording) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	r.mu.Lock()
	var batch []stint.Outcome
	for i := range done {
		batch = append(batch, done[i].Outcome)
	}
	r.batches = append(r.batches, batch)
	r.mu.Unlock()
	return r.Store.Finish(ctx, engine, claims, done)
}

func TestAHandlerThatEndsItsGoroutineHasCompletedItsJobAllTheSame(t *testing.T) {
	for _, c := range []struct {
		answer error
		alone  int // how many batches, each of one outcome, record it besides
	}{{nil, 0}, {stint.ErrCommitUnknown, 2}} {
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			r := &recording{Store: s, answer: c.answer}
			mux := stint.NewMux()
			handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
				if err := engine.CompleteTx(ctx, stint.Tx{}, nil); !errors.Is(err, c.answer) {
					t.Errorf("completing gives %v, want %v", err, c.answer)
				}
				runtime.Goexit()
				return nil
			})
			var mu sync.Mutex
			var ends []stint.Outcome
			heard := 0
			stop := start(t, r, mux, engine.Config{Slots: 2, OnEvent: func(ev event.Event) {
				mu.Lock()
				defer mu.Unlock()
				switch {
				case ev.Type == event.EventEnded:
					ends = append(ends, ev.Attempt.Outcome)
				case ev.Type == event.EventTrouble:
					heard++
				}
			}})
			ids := []stint.ID{enqueue(t, s, "k", `{}`), enqueue(t, s, "k", `{}`)}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			for _, id := range ids {
				if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || len(job.Attempts) != 1 {
					t.Errorf("after %v it is %+v, error %v", c.answer, job, err)
				}
			}
			if err := stop(); err != nil {
				t.Error(err)
			}
			if len(r.batches) != c.alone || len(slices.Concat(r.batches...)) != c.alone {
				t.Errorf("after %v the batches are %v", c.answer, r.batches)
			}
			if want := c.answer == nil; (heard == 2) != want || slices.Contains(ends, stint.OutcomeFailed) {
				t.Errorf("after %v the events tell of %v, and %d times of trouble", c.answer, ends, heard)
			}
		})
	}
}

// mute is a store that completes and does not say so, nor the first time that
// something is recorded after that. It may not be asked about jobs either.
type mute struct {
	*recording
	loses, shut bool
}

func (m *mute) Job(ctx context.Context, id stint.ID) (*stint.JobInfo, error) {
	if m.shut {
		return nil, errors.New("not now")
	}
	return m.recording.Job(ctx, id)
}

func (m *mute) Finish(ctx context.Context, engine store.EngineID, claims []store.ClaimRef, done []store.Completion) (int, error) {
	n, err := m.recording.Finish(ctx, engine, claims, done)
	if m.loses && len(m.batches) == 1 {
		return 0, errors.New("the answer is lost")
	}
	return n, err
}

func TestARunNowWhoseCompletionWasInDoubtAnswersWhatIsRecorded(t *testing.T) {
	for _, c := range []struct{ loses, shut bool }{{}, {loses: true}, {shut: true}, {loses: true, shut: true}} {
		bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
			mux := stint.NewMux()
			handle(mux, "k", func(ctx context.Context, _ *stint.Job) error { return engine.CompleteTx(ctx, stint.Tx{}, nil) })
			m := &mute{&recording{Store: s, answer: stint.ErrCommitUnknown}, c.loses, c.shut}
			x, err := newEngine(t, m, mux, engine.Config{}).RunNow(t.Context(), newJob("k", `{}`))
			switch {
			case c.shut && !errors.Is(err, stint.ErrCommitUnknown):
				t.Errorf("when nobody knows, the error is %v, want ErrCommitUnknown", err)
			case !c.shut && (err != nil || x.Outcome != stint.OutcomeCompleted || !x.Final):
				t.Errorf("it was %s, final %v, error %v; want completed", x.Outcome, x.Final, err)
			}
			isNow(t, s, x.Job, stint.Completed)
		})
	}
}

func TestCompleteTxMakesTheWorkAndItsOutcomeTrueTogether(t *testing.T) {
	ctx := t.Context()
	pool, s := openPool(t)
	if _, err := pool.Exec(ctx, `create table done (job bigint primary key)`); err != nil {
		t.Fatal(err)
	}
	mux := stint.NewMux()
	work := func(then func(ctx context.Context, tx stint.Tx, job *stint.Job) error) func(context.Context, *stint.Job) error {
		return func(ctx context.Context, job *stint.Job) error {
			tx, err := pool.Begin(ctx)
			if err != nil {
				return err
			}
			defer tx.Rollback(context.WithoutCancel(ctx))
			if _, err := tx.Exec(ctx, `insert into done values ($1)`, job.ID); err != nil {
				return err
			}
			return then(ctx, postgres.Tx(tx), job)
		}
	}
	handle(mux, "plain", work(func(ctx context.Context, tx stint.Tx, _ *stint.Job) error {
		return engine.CompleteTx(ctx, tx, map[string]int{"n": 1})
	}))
	handle(mux, "errs", work(func(ctx context.Context, tx stint.Tx, _ *stint.Job) error {
		if err := engine.CompleteTx(ctx, tx, nil); err != nil {
			return err
		}
		return errors.New("too late to matter")
	}))
	handle(mux, "sets", work(func(ctx context.Context, tx stint.Tx, _ *stint.Job) error {
		if err := stint.SetError(ctx, errors.New("it was not so"), false); err != nil {
			return err
		}
		return engine.CompleteTx(ctx, tx, "done")
	}))
	began, buried := make(chan struct{}), make(chan struct{})
	handle(mux, "late", work(func(ctx context.Context, tx stint.Tx, job *stint.Job) error {
		if job.Attempt == 1 {
			close(began)
			<-buried
		}
		return engine.CompleteTx(context.WithoutCancel(ctx), tx, nil)
	}))
	handle(mux, "outside", func(ctx context.Context, _ *stint.Job) error {
		return engine.CompleteTx(context.Background(), stint.Tx{}, nil)
	})
	start(t, s, mux, engine.Config{TimeToLive: 2 * time.Second})

	plain := until(t, s, enqueue(t, s, "plain", `{}`), stint.Completed)
	if x := plain.Attempts[0]; string(x.Result) != `{"n": 1}` && string(x.Result) != `{"n":1}` || x.Slot == 0 {
		t.Errorf("the execution is %+v", x)
	}
	if job := until(t, s, enqueue(t, s, "errs", `{}`), stint.Completed); len(job.Attempts) != 1 {
		t.Errorf("%d executions", len(job.Attempts))
	}
	if x := until(t, s, enqueue(t, s, "sets", `{}`), stint.Completed).Attempts[0]; string(x.Result) != `"done"` || x.Error != nil {
		t.Errorf("what was set beside the completion: %+v", x)
	}
	if job := until(t, s, enqueue(t, s, "outside", `{}`, stint.Retry(retry.None())), stint.Failed); job.Attempts[0].Error.Message != engine.ErrNoAttempt.Error() {
		t.Errorf("outside of a handler: %+v", job.Attempts[0].Error)
	}
	// An engine that was buried meanwhile cannot complete: its transaction is
	// undone, and the run that took over completes the job.
	late := enqueue(t, s, "late", `{}`)
	<-began
	buryLiving(t, s)
	close(buried)
	job := until(t, s, late, stint.Completed)
	if len(job.Attempts) != 2 || job.Attempts[0].Outcome != stint.OutcomeLost {
		t.Errorf("the executions are %+v", job.Attempts)
	}
	var n int
	if err := pool.QueryRow(ctx, `select count(*) from done`).Scan(&n); err != nil || n != 4 {
		t.Errorf("%d rows of work, %v; want 4", n, err)
	}
}
