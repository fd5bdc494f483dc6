package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/ncruces/go-sqlite3/driver"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/event"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

// soon is a policy for handlers that fail many times.
var soon = stint.Retry(retry.Fixed(100, 0))

// A handler of many steps fails after each of them, and before the next.
func TestAHandlerGoesOnWhereItWas(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const steps = 20
		var calls [steps]atomic.Int32
		mux := stint.NewMux()
		kind := stint.NewResultKind[struct{}, []int]("counts", soon)
		stint.HandleResult(mux, kind, func(ctx context.Context, job *stint.Job, _ struct{}) (all []int, err error) {
			for i := range steps {
				n, err := stint.Step(ctx, fmt.Sprint("step ", i), func(context.Context) (int, error) {
					if calls[i].Add(1); job.Attempt%2 == 1 {
						return 0, errors.New("before it came to anything")
					}
					return 1000*job.Attempt + i, nil
				})
				if err != nil {
					return nil, err
				}
				if all = append(all, n); job.Attempt%2 == 0 && n == 1000*job.Attempt+i {
					return nil, errors.New("after it was recorded")
				}
			}
			return all, nil
		})
		start(t, s, mux, engine.Config{})
		id, err := kind.Enqueue(t.Context(), stint.NewClient(s), struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		job := until(t, s, id, stint.Completed)
		got, err := kind.Result(job)
		if err != nil {
			t.Fatal(err)
		}
		var want []int
		for i := range steps {
			want = append(want, 2000*(i+1)+i)
			if n := calls[i].Load(); n != 2 {
				t.Errorf("step %d was done %d times, want 2: once in vain", i, n)
			}
		}
		if !slices.Equal(got, want) || len(job.Attempts) != 2*steps+1 {
			t.Errorf("after %d runs it came to %v, want %v after %d", len(job.Attempts), got, want, 2*steps+1)
		}
		recorded, err := s.(store.StepKeeper).Steps(t.Context(), id)
		if err != nil || len(recorded) != steps || recorded[3].Name != "step 3" || string(recorded[3].Result) != "8003" || recorded[3].Ended.Before(recorded[3].Began) {
			t.Errorf("recorded are %+v, %v", recorded, err)
		}
	})
}

// A program that has a step under another name does it again, and will for all jobs that recorded it: the engine
// tells that. A step within another one, and one that the program still has, are no such case.
func TestAStepThatWasRenamedIsTold(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		once := func(context.Context) (int, error) { return 1, nil }
		program := func(charge string, works bool) *engine.Engine {
			mux := stint.NewMux()
			handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
				_, err := stint.Step(ctx, "pages", func(ctx context.Context) (int, error) { return stint.Step(ctx, "page 1", once) })
				if err == nil && (!works || job.Attempt > 1) {
					if _, err = stint.Await[int](ctx, "approval", 0); errors.Is(err, stint.ErrNoSignal) {
						err = nil
					}
				}
				if err == nil && (!works || job.Attempt == 1) {
					_, err = stint.Step(ctx, "gift", once)
				}
				if err == nil {
					_, err = stint.Step(ctx, fmt.Sprint(charge, job.ID), once)
				}
				if err == nil && !works {
					err = errors.New("not yet")
				}
				return err
			})
			e, err := engine.New(s, mux, engine.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		job := enqueue(t, s, "k", `{}`, soon)
		stop := run(t, program("charge ", false))
		eventually(t, "it ran", func() bool { x, err := s.Job(t.Context(), job); return err == nil && len(x.Attempts) > 0 })
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		e := program("pay ", true)
		if _, err := e.RunNow(t.Context(), newJob("k", `{}`)); err != nil {
			t.Fatal(err)
		}
		run(t, e)
		x := until(t, s, job, stint.Completed)
		told := e.Metrics().Missed
		if want := fmt.Sprintf("it did not come to recorded steps: charge %d", job); x.Attempts[len(x.Attempts)-1].Reason != want {
			t.Errorf("it says %q, want %q", x.Attempts[len(x.Attempts)-1].Reason, want)
		}
		if len(told) != 1 || told[0].Kind != "k" || told[0].Step != "charge #" || told[0].Jobs != 1 || time.Since(told[0].Last) > time.Minute {
			t.Errorf("told is %+v", told)
		}
	})
}

func TestStepsAtOnceAndInEachOther(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const many = 50
		var calls atomic.Int32
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			sum, err := stint.Step(ctx, "all", func(ctx context.Context) (int, error) {
				var all sync.WaitGroup
				var sum atomic.Int32
				errs := make([]error, many)
				for i := range many {
					all.Go(func() {
						n, err := stint.Step(ctx, fmt.Sprint(i), func(context.Context) (int32, error) { calls.Add(1); return int32(i), nil })
						sum.Add(n)
						errs[i] = err
					})
				}
				all.Wait()
				if job.Attempt == 1 {
					errs = append(errs, errors.New("not yet"))
				}
				return int(sum.Load()), errors.Join(errs...)
			})
			if err == nil && sum != many*(many-1)/2 {
				err = fmt.Errorf("the sum is %d", sum)
			}
			return err
		})
		start(t, s, mux, engine.Config{})
		job := until(t, s, enqueue(t, s, "k", `{}`, soon), stint.Completed)
		if n := calls.Load(); n != many || len(job.Attempts) != 2 {
			t.Errorf("%d runs did %d steps, want 2 and %d", len(job.Attempts), n, many)
		}
	})
}

// oneWay is encoded as what it does not decode from.
type oneWay struct{ N int }

func (oneWay) MarshalText() ([]byte, error) { return []byte("n"), nil }

// What a run does that is wrong about its steps fails it once and for all.
func TestMistakesWithSteps(t *testing.T) {
	give := func(v any) func(context.Context) (any, error) {
		return func(context.Context) (any, error) { return v, nil }
	}
	for name, c := range map[string]struct {
		does func(ctx context.Context, job *stint.Job) error
		want string // in the message
		runs int
	}{
		"the same name twice": {func(ctx context.Context, _ *stint.Job) error {
			_, first := stint.Step(ctx, "a", give(1))
			_, again := stint.Step(ctx, "a", give(2))
			return errors.Join(first, again)
		}, `the step "a" is called at steps_test.go:`, 1},
		"no name": {func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.Step(ctx, "", give(1))
			return err
		}, "step: the name is empty", 1},
		"what JSON does not know": {func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.Step(ctx, "a", give(make(chan int)))
			return err
		}, `encode what step "a" returned: json: unsupported type`, 1},
		"too large a result": {func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.Step(ctx, "a", give(strings.Repeat("x", 1<<20)))
			return err
		}, "more than the limit of 1048576", 1},
		"too much together": {func(ctx context.Context, _ *stint.Job) error {
			for i := range 20 {
				if _, err := stint.Step(ctx, fmt.Sprint(i), give(strings.Repeat("x", 1<<20-2))); err != nil {
					return err
				}
			}
			return nil
		}, "with the step \"16\" the results of the job's steps are more than 16777216 bytes", 1},
		"another type than before": {func(ctx context.Context, job *stint.Job) error {
			if job.Attempt == 1 {
				_, err := stint.Step(ctx, "a", give("text"))
				return errors.Join(err, errors.New("again"))
			}
			_, err := stint.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil })
			if !errors.Is(err, stint.ErrStepChanged) {
				return fmt.Errorf("it is no ErrStepChanged: %w", err)
			}
			return err
		}, `the recorded step is of another type: step "a", recorded as "text"`, 2},
		"what does not come back": {func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.Step(ctx, "a", func(context.Context) (oneWay, error) { return oneWay{1}, nil })
			return err
		}, `decode what step "a" returned, which is recorded as JSON: json: cannot unmarshal string`, 1},
		"a step in a transaction": {func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.StepTx(ctx, stint.Tx{Handle: "some"}, "outer", func(ctx context.Context) (int, error) {
				return stint.Step(ctx, "inner", func(context.Context) (int, error) { return 1, nil })
			})
			return err
		}, `the step "inner" is called in the StepTx "outer", for whose transaction it would wait`, 1},
		"a sleep in a transaction": {func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.StepTx(ctx, stint.Tx{Handle: "some"}, "outer", func(ctx context.Context) (int, error) {
				return 1, stint.Sleep(ctx, "inner", time.Hour)
			})
			return err
		}, `the step "inner" is called in the StepTx "outer"`, 1},
		"a sleep and what must not be tried again": {func(ctx context.Context, _ *stint.Job) error {
			return fmt.Errorf("both: %w", errors.Join(stint.Sleep(ctx, "a", time.Hour), stint.NoRetry(errors.New("the card is stolen"))))
		}, "the card is stolen", 1},
		"what must not be tried again, a sleep in it": {func(ctx context.Context, _ *stint.Job) error {
			return stint.NoRetry(errors.Join(stint.Sleep(ctx, "a", time.Hour), errors.New("the card is stolen")))
		}, "the card is stolen", 1},
		"a sleep and errors": {func(ctx context.Context, job *stint.Job) error {
			if job.Attempt == 2 {
				return stint.NoRetry(errors.New("it was run again at once"))
			}
			err := stint.Sleep(ctx, "a", time.Hour)
			return fmt.Errorf("%w, %w, and %w", errors.New("one"), err, errors.New("another"))
		}, "it was run again at once", 2},
		"a transaction that is none": {func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.StepTx(ctx, stint.Tx{}, "a", give(1))
			return stint.NoRetry(err)
		}, "transaction: there is none", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openSQLite(t)
			mux := stint.NewMux()
			handle(mux, "k", c.does)
			start(t, s, mux, engine.Config{})
			job := until(t, s, enqueue(t, s, "k", `{}`, soon), stint.Failed)
			last := job.Attempts[len(job.Attempts)-1]
			if len(job.Attempts) != c.runs || !strings.Contains(last.Error.Message, c.want) {
				t.Errorf("after %d runs it failed with %.200s, want %q after %d", len(job.Attempts), last.Error.Message, c.want, c.runs)
			}
		})
	}
}

// A step that failed may be tried again in the same run, under its name.
func TestAStepThatFailedIsTriedAgainByTheHandler(t *testing.T) {
	s := openSQLite(t)
	mux := stint.NewMux()
	handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
		for n := 0; ; n++ {
			if _, err := stint.Step(ctx, "a", func(context.Context) (int, error) {
				if n < 3 {
					return 0, errors.New("not yet")
				}
				return n, nil
			}); err == nil {
				return nil
			}
		}
	})
	start(t, s, mux, engine.Config{})
	if job := until(t, s, enqueue(t, s, "k", `{}`), stint.Completed); len(job.Attempts) != 1 {
		t.Errorf("it took %d runs", len(job.Attempts))
	}
}

// amnesiac is a store whose answers about steps get lost, after the records or before.
type amnesiac struct {
	*sqlite.Store
	lose func(call int) (record, tell bool)

	unread int32 // how many reads fail

	calls, reads atomic.Int32
}

func (f *amnesiac) RecordSteps(ctx context.Context, e store.EngineID, steps []store.StepRecord) ([]stint.RecordedStep, error) {
	record, tell := f.lose(int(f.calls.Add(1)))
	if !record {
		return nil, errors.New("the connection is gone")
	}
	recorded, err := f.Store.RecordSteps(ctx, e, steps)
	if !tell {
		return nil, errors.Join(err, errors.New("the answer is gone"))
	}
	return recorded, err
}

func TestALostAnswerAboutAStepDoesNotRepeatIt(t *testing.T) {
	for name, lose := range map[string]func(call int) (record, tell bool){
		"after it was recorded": func(n int) (bool, bool) { return true, n > 3 },
		"before":                func(n int) (bool, bool) { return n > 3, true },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
				f := &amnesiac{Store: s, lose: lose}
				calls := 0
				mux := stint.NewMux()
				handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
					n, err := stint.Step(ctx, "a", func(context.Context) (int, error) { calls++; return calls, nil })
					if n != 1 {
						err = errors.Join(err, fmt.Errorf("it is %d", n))
					}
					return err
				})
				stop := start(t, f, mux, engine.Config{TimeToLive: time.Minute})
				id := enqueue(t, s, "k", `{}`)
				time.Sleep(30 * time.Second)
				synctest.Wait()
				job, err := s.Job(t.Context(), id)
				if err != nil || job.State != stint.Completed || len(job.Attempts) != 1 || calls != 1 || f.calls.Load() != 4 {
					t.Errorf("it is %s after %d runs, %d calls of the step and %d of the store: %v", job.State, len(job.Attempts), calls, f.calls.Load(), err)
				}
				if err := stop(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func (f *amnesiac) Steps(ctx context.Context, job stint.ID) ([]stint.RecordedStep, error) {
	if f.reads.Add(1) <= f.unread {
		return nil, errors.New("the connection is gone")
	}
	return f.Store.Steps(ctx, job)
}

func TestAnOutageAtTheFirstStepFailsNothing(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		f := &amnesiac{Store: s, lose: func(int) (bool, bool) { return true, true }, unread: 3}
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			_, err := stint.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil })
			return err
		})
		stop := start(t, f, mux, engine.Config{TimeToLive: time.Minute})
		id := enqueue(t, s, "k", `{}`, stint.Retry(retry.None()))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || f.reads.Load() != 4 {
			t.Errorf("it is %s after %d reads, %v", job.State, f.reads.Load(), err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A step that the database refuses fails alone.
type picky struct{ *sqlite.Store }

func (p picky) RecordSteps(ctx context.Context, e store.EngineID, steps []store.StepRecord) ([]stint.RecordedStep, error) {
	if slices.ContainsFunc(steps, func(r store.StepRecord) bool { return r.Name == "bad" }) {
		return nil, fmt.Errorf("encode: %w", stint.ErrUnstorable)
	}
	time.Sleep(20 * time.Millisecond) // for more to gather
	return p.Store.RecordSteps(ctx, e, steps)
}

func TestOneStepThatCannotBeStoredDoesNotHarmOthers(t *testing.T) {
	s := openSQLite(t)
	mux := stint.NewMux()
	handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
		var all sync.WaitGroup
		errs := make([]error, 40)
		for i := range errs {
			all.Go(func() {
				name := fmt.Sprint(i)
				if i == 20 {
					name = "bad"
				}
				_, errs[i] = stint.Step(ctx, name, func(context.Context) (int, error) { return i, nil })
			})
		}
		all.Wait()
		if bad := errs[20]; !errors.Is(bad, stint.ErrUnstorable) {
			return fmt.Errorf("the bad one gives %w", bad)
		}
		errs[20] = nil
		return errors.Join(errs...)
	})
	start(t, picky{s}, mux, engine.Config{})
	id := enqueue(t, s, "k", `{}`, stint.Retry(retry.None()))
	eventually(t, "it has ended", func() bool { j, _ := s.Job(t.Context(), id); return j.State.Final() })
	if job, _ := s.Job(t.Context(), id); job.State != stint.Completed {
		t.Errorf("it is %s: %v", job.State, job.Attempts[0].Error)
	}
	if all, err := s.Steps(t.Context(), id); err != nil || len(all) != 39 {
		t.Errorf("%d steps are recorded, %v", len(all), err)
	}
}

// What a handler left running records nothing once the run is over, and a run is not over while a step is
// being recorded.
func TestARunEndsAfterItsSteps(t *testing.T) {
	s := openSQLite(t)
	begun, held := make(chan struct{}), make(chan struct{})
	slow := &amnesiac{Store: s, lose: func(n int) (bool, bool) {
		if n == 1 {
			close(begun)
			<-held
		}
		return true, true
	}}
	mux := stint.NewMux()
	left, returned := make(chan context.Context, 1), make(chan error, 1)
	handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
		go func() {
			_, err := stint.Step(ctx, "in time", func(context.Context) (int, error) { return 1, nil })
			returned <- err
		}()
		<-begun
		left <- ctx
		return nil
	})
	start(t, slow, mux, engine.Config{})
	id := enqueue(t, s, "k", `{}`)
	ctx := <-left
	time.Sleep(50 * time.Millisecond)
	if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Running {
		t.Errorf("while its step is being recorded the job is %s, %v", job.State, err)
	}
	close(held)
	if err := <-returned; err != nil {
		t.Error(err)
	}
	until(t, s, id, stint.Completed)
	if _, err := stint.Step(ctx, "late", func(context.Context) (int, error) { return 2, nil }); !errors.Is(err, stint.ErrNoAttempt) {
		t.Errorf("after the run a step gives %v, want ErrNoAttempt", err)
	}
	if all, err := s.Steps(t.Context(), id); err != nil || len(all) != 1 {
		t.Errorf("recorded are %v, %v", all, err)
	}
}

func TestTheStepsOfALostRunAreRefused(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		begun, lost := make(chan struct{}), make(chan struct{})
		failed := make(chan error, 1)
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			if job.MayHaveRun || job.Losses > 0 {
				_, err := stint.Step(ctx, "a", func(context.Context) (string, error) { return "second", nil })
				return err
			}
			close(begun)
			_, err := stint.Step(ctx, "a", func(context.Context) (string, error) { <-lost; return "first", nil })
			failed <- err
			return err
		})
		stop := start(t, s, mux, engine.Config{TimeToLive: time.Minute})
		id := enqueue(t, s, "k", `{}`)
		<-begun
		buryLiving(t, s)
		close(lost)
		if err := <-failed; err == nil {
			t.Error("a step of a lost run was recorded")
		}
		_ = stop()
		start(t, s, mux, engine.Config{})
		until(t, s, id, stint.Completed)
		if all, err := s.(store.StepKeeper).Steps(t.Context(), id); err != nil || len(all) != 1 || string(all[0].Result) != `"second"` {
			t.Errorf("recorded are %v, %v", all, err)
		}
	})
}

// What a step writes in its transaction is there once, wherever its run breaks off.
func TestAStepInATransactionTakesEffectOnce(t *testing.T) {
	type payer struct {
		begin func(ctx context.Context) (tx stint.Tx, pay func(what string) error, rollback func(), err error)
		paid  func() int
	}
	test := func(t *testing.T, s anyStore, p payer) {
		mux := stint.NewMux()
		handle(mux, "pays", func(ctx context.Context, job *stint.Job) error {
			tx, pay, rollback, err := p.begin(ctx)
			if err != nil {
				return err
			}
			defer rollback()
			at, err := stint.StepTx(ctx, tx, "pay", func(context.Context) (int, error) {
				err := pay("once")
				if err == nil && job.Attempt == 1 {
					err = errors.New("after it was paid, before it was recorded")
				}
				return job.Attempt, err
			})
			if err == nil && at != 2 {
				err = stint.NoRetry(fmt.Errorf("it was paid in run %d", at))
			}
			if err == nil && job.Attempt < 4 {
				err = errors.New("after it was recorded")
			}
			return err
		})
		start(t, s, mux, engine.Config{})
		job := until(t, s, enqueue(t, s, "pays", `{}`, soon), stint.Completed)
		if n := p.paid(); n != 1 || len(job.Attempts) != 4 {
			t.Errorf("%d runs paid %d times, want 4 and 1", len(job.Attempts), n)
		}
	}
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := migrated.New(t)
		s, err := postgres.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		pool, err := pgxpool.New(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		if _, err := pool.Exec(t.Context(), `create table payments (what text)`); err != nil {
			t.Fatal(err)
		}
		test(t, s, payer{
			func(ctx context.Context) (stint.Tx, func(string) error, func(), error) {
				tx, err := pool.Begin(ctx)
				if err != nil {
					return stint.Tx{}, nil, nil, err
				}
				return postgres.Tx(tx), func(what string) error {
					_, err := tx.Exec(ctx, `insert into payments values ($1)`, what)
					return err
				}, func() { _ = tx.Rollback(ctx) }, nil
			},
			func() (n int) {
				if err := pool.QueryRow(t.Context(), `select count(*) from payments`).Scan(&n); err != nil {
					t.Error(err)
				}
				return n
			},
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		s, db := sqliteAndPool(t)
		if _, err := db.Exec(`create table payments (what text)`); err != nil {
			t.Fatal(err)
		}
		test(t, s, payer{
			func(ctx context.Context) (stint.Tx, func(string) error, func(), error) {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return stint.Tx{}, nil, nil, err
				}
				return sqlite.Tx(tx), func(what string) error {
					_, err := tx.Exec(`insert into payments values (?)`, what)
					return err
				}, func() { _ = tx.Rollback() }, nil
			},
			func() (n int) {
				if err := db.QueryRow(`select count(*) from payments`).Scan(&n); err != nil {
					t.Error(err)
				}
				return n
			},
		})
	})
}

// Handlers may hold all connections of the program's pool, until their step is recorded, or known to be.
func TestAStepInATransactionHoldsNoConnectionForLong(t *testing.T) {
	t.Parallel()
	pool, s := openPool(t)
	most := int(pool.Config().MaxConns)
	var begun [2]sync.WaitGroup // by attempt
	begun[0].Add(most)
	begun[1].Add(most)
	mux := stint.NewMux()
	handle(mux, "pays", func(ctx context.Context, job *stint.Job) error {
		tx, err := pool.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
		begun[job.Attempt-1].Done()
		begun[job.Attempt-1].Wait()
		if _, err = stint.StepTx(ctx, postgres.Tx(tx), "pay", func(context.Context) (int, error) { return 1, nil }); err != nil {
			return err
		}
		if job.Attempt == 1 {
			return errors.New("not yet")
		}
		_, err = pool.Exec(ctx, `select 1`)
		return err
	})
	start(t, s, mux, engine.Config{Slots: most})
	var ids []stint.ID
	for range most {
		ids = append(ids, enqueue(t, s, "pays", `{}`, stint.Retry(retry.Fixed(1, 0)), stint.Timeout(15*time.Second)))
	}
	for _, id := range ids {
		until(t, s, id, stint.Completed)
	}
}

// sqliteAndPool opens a store, and database/sql on its file.
func sqliteAndPool(t *testing.T) (*sqlite.Store, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jobs.db")
	s, err := sqlite.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	t.Cleanup(func() { storetest.Verify(t, s) })
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(20000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return s, db
}

// aloof is a store that is lonely and keeps steps and signals.
type aloof struct {
	lonely
	keeper
}

type keeper interface {
	store.StepKeeper
	store.Signaler
	store.Questioner
}

// A job sleeps for days without a slot, is woken by its time, and its retries do not begin the days anew.
func TestASleepHoldsNothingAndIsSleptOnce(t *testing.T) {
	inBubble(t, 100*time.Hour, func(t *testing.T, s *sqlite.Store) {
		const days = 24 * time.Hour
		var starts []time.Time
		mux := stint.NewMux()
		handle(mux, "sleeps", func(ctx context.Context, job *stint.Job) error {
			starts = append(starts, time.Now())
			if err := stint.Sleep(ctx, "a moment", time.Second); err != nil {
				return err
			}
			if len(starts) == 1 {
				return errors.New("fails before it sleeps")
			}
			if err := stint.Sleep(ctx, "days", days+time.Duration(len(starts))*time.Hour); err != nil {
				return fmt.Errorf("wrapped: %w", err)
			}
			if len(starts) == 3 {
				return errors.New("fails after it slept")
			}
			return nil
		})
		handle(mux, "other", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, aloof{lonely{s}, s}, mux, engine.Config{Slots: 1, TimeToLive: 24 * time.Hour, Poll: time.Hour})
		began := time.Now()
		id := enqueue(t, s, "sleeps", `{}`, stint.Retry(retry.Fixed(5, time.Second)))
		time.Sleep(time.Hour)
		other := enqueue(t, s, "other", `{}`)
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		job, err := s.Job(t.Context(), id)
		if err != nil || job.State != stint.Scheduled || job.Attempt != 2 || len(job.Attempts) != 2 || !strings.HasPrefix(job.Attempts[1].Reason, `step "days" sleeps until `) {
			t.Fatalf("it is %s at attempt %d: %+v, %v", job.State, job.Attempt, job.Attempts, err)
		}
		if o, err := s.Job(t.Context(), other); err != nil || o.State != stint.Completed {
			t.Errorf("beside one that sleeps another is %s, %v", o.State, err)
		}
		time.Sleep(days + 12*time.Hour)
		synctest.Wait()
		job, err = s.Job(t.Context(), id)
		if err != nil || job.State != stint.Completed || len(starts) != 4 || job.Attempt != 3 {
			t.Fatalf("after the days it is %s at attempt %d, began at %v, %v", job.State, job.Attempt, starts, err)
		}
		if slept := starts[2].Sub(began); slept < days+2*time.Hour || slept > days+4*time.Hour {
			t.Errorf("it was woken after %v", slept)
		}
		if again := starts[3].Sub(starts[2]); again > 2*time.Hour {
			t.Errorf("it slept again: %v", again)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestAHandlerThatDropsTheErrorOfASleepIsTold(t *testing.T) {
	inBubble(t, 24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		var runs, after int
		mux := stint.NewMux()
		handle(mux, "drops", func(ctx context.Context, _ *stint.Job) error {
			runs++
			if err := stint.Sleep(ctx, "an hour", time.Hour); err != nil {
				if _, err := stint.Step(ctx, "not yet", func(context.Context) (int, error) { after++; return 0, nil }); err == nil {
					t.Error("a step of a run that sleeps was done")
				}
				_ = stint.Sleep(ctx, "a day", 24*time.Hour)
			}
			return nil
		})
		stop := start(t, aloof{lonely{s}, s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Minute})
		id := enqueue(t, s, "drops", `{}`)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		job, err := s.Job(t.Context(), id)
		if err != nil || job.State != stint.Completed || runs != 2 || after != 0 || len(job.Attempts) != 2 ||
			!strings.HasSuffix(job.Attempts[0].Reason, "its handler did not return the error that stint.Sleep gave it") {
			t.Errorf("it is %s after %d runs: %+v, %v", job.State, runs, job.Attempts, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A job that sleeps and is run now by people is awake; one that was lost before its sleep was recorded
// sleeps on.
func TestAJobThatIsRunBeforeItsTimeIsAwake(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "sleeps", func(ctx context.Context, job *stint.Job) error {
			if err := stint.Sleep(ctx, "a day", 24*time.Hour); err != nil {
				return err
			}
			if job.Attempt == 1 {
				return errors.New("once more, without a sleep")
			}
			return nil
		})
		start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "sleeps", `{}`, soon)
		until(t, s, id, stint.Scheduled)
		if _, err := s.(store.Operator).Retry(t.Context(), []stint.ID{id}, stint.RerunOptions{}); err != nil {
			t.Fatal(err)
		}
		if job := until(t, s, id, stint.Completed); len(job.Attempts) != 3 {
			t.Errorf("it took %d runs, want 3", len(job.Attempts))
		}
	})
}

// The sleep is fixed before its run ends: one that is lost then sleeps no longer for it.
func TestALossDoesNotBeginASleepAnew(t *testing.T) {
	inBubble(t, 100*time.Hour, func(t *testing.T, s *sqlite.Store) {
		began := time.Now()
		var runs []time.Duration
		mux := stint.NewMux()
		handle(mux, "sleeps", func(ctx context.Context, _ *stint.Job) error {
			runs = append(runs, time.Since(began).Round(time.Minute))
			err := stint.Sleep(ctx, "ten hours", 10*time.Hour)
			if err != nil && len(runs) == 1 {
				time.Sleep(5 * time.Hour)
				return errors.New("in its place comes something else")
			}
			return err
		})
		var buried atomic.Bool
		stop := start(t, aloof{lonely{s}, s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Minute, OnEvent: func(ev event.Event) {
			if ev.Type == event.EventBuried {
				buried.Store(true)
			}
		}})
		id := enqueue(t, s, "sleeps", `{}`, stint.Retry(retry.Fixed(5, time.Hour)))
		time.Sleep(20 * time.Hour)
		synctest.Wait()
		job, err := s.Job(t.Context(), id)
		if want := []time.Duration{0, 6 * time.Hour, 10 * time.Hour}; err != nil || job.State != stint.Completed || !slices.Equal(runs, want) || buried.Load() {
			t.Errorf("it is %s and ran after %v, want %v; %v", job.State, runs, want, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A step whose record gets no answer keeps no engine from stopping.
func TestAnEngineStopsWhileAStepCannotBeRecorded(t *testing.T) {
	for name, unread := range map[string]int32{"to record": 0, "to read": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			bubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
				away := &amnesiac{Store: s, lose: func(int) (bool, bool) { return false, false }, unread: unread}
				mux := stint.NewMux()
				begun := make(chan struct{})
				handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
					close(begun)
					_, err := stint.Step(context.WithoutCancel(ctx), "a", func(context.Context) (int, error) { return 1, nil })
					return err
				})
				stop := start(t, away, mux, engine.Config{TimeToLive: time.Minute, Grace: time.Second})
				enqueue(t, s, "k", `{}`)
				<-begun
				synctest.Wait()
				began := time.Now()
				if err := stop(); err != nil {
					t.Errorf("the engine ends with %v: its handler is told within a stop's time", err)
				}
				if took := time.Since(began); took > 30*time.Second {
					t.Errorf("the stop took %v", took)
				}
			})
		})
	}
}

// A run that must end does not wait for ever for a record that gets no answer, as beside a transaction that
// its own handler holds; the next one does.
func TestARunThatMustEndDoesNotWaitForItsRecord(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		var back atomic.Bool
		slow := &amnesiac{Store: s, lose: func(int) (bool, bool) { return back.Load(), back.Load() }}
		mux := stint.NewMux()
		var after time.Duration
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			began := time.Now()
			_, err := stint.Step(context.WithoutCancel(ctx), "a", func(context.Context) (int, error) { return 1, nil })
			if job.Attempt == 1 {
				after = time.Since(began)
				back.Store(true)
				if !errors.Is(err, stint.ErrTimeout) {
					t.Errorf("it is %v, want ErrTimeout", err)
				}
			}
			return err
		})
		stop := start(t, slow, mux, engine.Config{TimeToLive: time.Hour, MaxOutage: time.Hour, Poll: time.Second})
		id := enqueue(t, s, "k", `{}`, stint.Timeout(20*time.Second), stint.Retry(retry.Fixed(2, time.Second)))
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || len(job.Attempts) != 2 || after < 21*time.Second || after > 25*time.Second {
			t.Errorf("it is %s, %v; the first run waited %v: %+v", job.State, err, after, job.Attempts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// Of sleeps at the same time each ends when it should, however long the handler takes to return.
func TestSleepsAtTheSameTime(t *testing.T) {
	inBubble(t, 24*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		var starts []time.Duration
		began := time.Now()
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			starts = append(starts, time.Since(began).Round(time.Minute))
			errs := make([]error, 3)
			var all sync.WaitGroup
			all.Go(func() { errs[2] = stint.Sleep(ctx, "shorter", 3*time.Second) })
			synctest.Wait() // it waits in place
			all.Go(func() { errs[0] = stint.Sleep(ctx, "long", 2*time.Hour) })
			all.Go(func() { errs[1] = stint.Sleep(ctx, "short", time.Hour) })
			all.Wait()
			if errors.Join(errs...) != nil {
				time.Sleep(10 * time.Minute)
				again := stint.Sleep(ctx, "long", 2*time.Hour)
				return errors.Join(append(errs, again)...)
			}
			return nil
		})
		stop := start(t, aloof{lonely{s}, s}, mux, engine.Config{TimeToLive: time.Hour, Poll: time.Second})
		id := enqueue(t, s, "k", `{}`, stint.Retry(retry.None()))
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		want := []time.Duration{0, 10 * time.Minute, time.Hour, 2 * time.Hour}
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || !slices.Equal(starts, want) {
			t.Errorf("it is %s, %v; it began after %v, want %v: %+v", job.State, err, starts, want, job.Attempts)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A short sleep that was cut off can be slept again in its run.
func TestASleepThatWasCutOffCanBeSleptAgain(t *testing.T) {
	inBubble(t, time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			began := time.Now()
			short, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := stint.Sleep(short, "a", 4*time.Second); !errors.Is(err, context.DeadlineExceeded) {
				return fmt.Errorf("the sleep that is cut off gives %w", err)
			}
			err := stint.Sleep(ctx, "a", 4*time.Second)
			if slept := time.Since(began); err == nil && (slept < 3*time.Second || slept > 5*time.Second) {
				err = fmt.Errorf("it slept %v", slept)
			}
			return err
		})
		stop := start(t, s, mux, engine.Config{TimeToLive: time.Minute})
		id := enqueue(t, s, "k", `{}`, stint.Retry(retry.None()))
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if job, err := s.Job(t.Context(), id); err != nil || job.State != stint.Completed || len(job.Attempts) != 1 {
			t.Errorf("it is %s after %d runs, want 1: %+v, %v", job.State, len(job.Attempts), job.Attempts, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
}

// A job that sleeps does not complete in a transaction either.
func TestAJobThatSleepsDoesNotComplete(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
			if err := stint.Sleep(ctx, "a day", 24*time.Hour); err != nil {
				if got := engine.CompleteTx(ctx, stint.Tx{Handle: "some"}, nil); !errors.Is(got, err) {
					t.Errorf("it gives %v, want %v", got, err)
				}
			}
			return nil
		})
		start(t, s, mux, engine.Config{})
		id := enqueue(t, s, "k", `{}`)
		until(t, s, id, stint.Scheduled)
		// Who dropped the error is woken by people all the same.
		if _, err := s.(store.Operator).Retry(t.Context(), []stint.ID{id}, stint.RerunOptions{}); err != nil {
			t.Fatal(err)
		}
		if job := until(t, s, id, stint.Completed); len(job.Attempts) != 2 {
			t.Errorf("it took %d runs, want 2", len(job.Attempts))
		}
	})
}

// Once its engine is fenced off a handler does no step, whether its context ended for that, for another
// reason before, or has not ended, as that of a kind which goes on.
func TestNoStepBeginsAfterAFence(t *testing.T) {
	for name, c := range map[string]struct {
		keep bool
		opts []stint.Option
	}{
		"told": {}, "kept": {keep: true}, "timed out before": {opts: []stint.Option{stint.Timeout(20 * time.Millisecond)}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, s anyStore) {
				kind, mux := stint.NewKind[struct{}]("k"), stint.NewMux()
				if c.keep {
					kind = kind.Keep()
				}
				begun, fenced, left := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
				var done atomic.Int32
				stint.Handle(mux, kind, func(ctx context.Context, job *stint.Job, _ struct{}) error {
					if job.Losses > 0 {
						return nil
					}
					give := func(context.Context) (int, error) { return int(done.Add(1)), nil }
					ctx, end := context.WithoutCancel(ctx), ctx.Done()
					_, first := stint.Step(ctx, "first", give)
					if len(c.opts) > 0 {
						<-end
					}
					begun <- struct{}{}
					<-fenced
					_, err := stint.Step(ctx, "second", give)
					left <- errors.Join(first, err)
					return err
				})
				once := sync.OnceFunc(func() { close(fenced) })
				defer once()
				start(t, s, mux, engine.Config{TimeToLive: 2 * time.Second, OnEvent: func(ev event.Event) {
					if ev.Type == event.EventBuried {
						once()
					}
				}})
				enqueue(t, s, "k", `{}`, c.opts...)
				<-begun
				buryLiving(t, s)
				if err := <-left; !errors.Is(err, stint.ErrFenced) || done.Load() != 1 {
					t.Errorf("after %d steps it gives %v, want ErrFenced after 1", done.Load(), err)
				}
			})
		})
	}
}

// gone is a store that has buried the engine that records.
type gone struct{ *sqlite.Store }

func (gone) RecordSteps(context.Context, store.EngineID, []store.StepRecord) ([]stint.RecordedStep, error) {
	return nil, store.ErrBuried
}

// An engine that learns by a step that it was buried does not wait for its next beat.
func TestAStepFindsOutThatItsEngineWasBuried(t *testing.T) {
	inBubble(t, 10*time.Hour, func(t *testing.T, s *sqlite.Store) {
		mux := stint.NewMux()
		told := make(chan time.Duration, 1)
		handle(mux, "k", func(ctx context.Context, job *stint.Job) error {
			if job.Losses > 0 {
				return nil
			}
			began := time.Now()
			_, err := stint.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil })
			<-ctx.Done()
			told <- time.Since(began)
			if cause := context.Cause(ctx); !errors.Is(err, store.ErrBuried) || !errors.Is(cause, stint.ErrFenced) {
				t.Errorf("it gives %v, and the run ends with %v", err, cause)
			}
			return err
		})
		stop := start(t, gone{s}, mux, engine.Config{TimeToLive: 2 * time.Hour, MaxOutage: 4 * time.Hour})
		enqueue(t, s, "k", `{}`)
		if after := <-told; after > time.Minute {
			t.Errorf("its run was told after %v", after)
		}
		_ = stop()
	})
}

// A step after the handler's own completion is refused: the attempt has ended.
func TestAStepOfAnAttemptThatHasEndedIsRefused(t *testing.T) {
	s, db := sqliteAndPool(t)
	mux := stint.NewMux()
	refused := make(chan error, 1)
	handle(mux, "k", func(ctx context.Context, _ *stint.Job) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if err := engine.CompleteTx(ctx, sqlite.Tx(tx), nil); err != nil {
			return err
		}
		_, err = stint.Step(ctx, "a", func(context.Context) (int, error) { return 1, nil })
		refused <- err
		return nil
	})
	start(t, s, mux, engine.Config{})
	id := enqueue(t, s, "k", `{}`)
	until(t, s, id, stint.Completed)
	if err := <-refused; !errors.Is(err, store.ErrStepRefused) {
		t.Errorf("it gives %v, want ErrStepRefused", err)
	}
	if all, err := s.Steps(t.Context(), id); err != nil || len(all) != 0 {
		t.Errorf("recorded are %v, %v", all, err)
	}
}

// Steps belong to one job: the context of a call for many has none.
func TestTheContextOfACallForManyJobsHasNoSteps(t *testing.T) {
	s := openSQLite(t)
	kind := stint.NewKind[int]("many", stint.Retry(retry.None()))
	mux := stint.NewMux()
	stint.HandleMany(mux, kind, stint.Gather(1, 0), func(ctx context.Context, jobs []stint.BatchJob[int]) error {
		give := func(context.Context) (int, error) { return 1, nil }
		if _, err := stint.Step(ctx, "a", give); !errors.Is(err, stint.ErrNoAttempt) {
			return fmt.Errorf("it gives %w", err)
		}
		if err := stint.Sleep(ctx, "b", time.Hour); !errors.Is(err, stint.ErrNoAttempt) {
			return fmt.Errorf("a sleep gives %w", err)
		}
		_, err := stint.Step(jobs[0].Context(), "a", give)
		return err
	})
	start(t, s, mux, engine.Config{})
	id, err := kind.Enqueue(t.Context(), stint.NewClient(s), 1)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has ended", func() bool { j, _ := s.Job(t.Context(), id); return j.State.Final() })
	if job, _ := s.Job(t.Context(), id); job.State != stint.Completed {
		t.Errorf("it is %s: %v", job.State, job.Attempts[0].Error)
	}
	if all, err := s.Steps(t.Context(), id); err != nil || len(all) != 1 {
		t.Errorf("recorded are %v, %v", all, err)
	}
}
