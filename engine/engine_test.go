package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/internal/proof/pgtest"
	"github.com/stint-go/stint/postgres"
	"github.com/stint-go/stint/retry"
	"github.com/stint-go/stint/sqlite"
	"github.com/stint-go/stint/store"
	"github.com/stint-go/stint/storetest"
)

func TestMain(m *testing.M) {
	if database := os.Getenv(doomedEnv); database != "" {
		doomed(database)
	}
	if database := os.Getenv(leaderEnv); database != "" {
		leader(database)
	}
	pgtest.Main(m)
}

// migrated is a database with the schema.
var migrated = pgtest.NewTemplate(func(ctx context.Context, url string) error {
	s, err := postgres.Open(ctx, url)
	if err != nil {
		return err
	}
	s.Close()
	return nil
})

type anyStore interface {
	store.Store
	store.Inspector
	store.Auditor
}

// onEach runs a test on both stores, and checks the invariants behind it.
func onEach(t *testing.T, f func(t *testing.T, s anyStore)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, openSQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, err := postgres.Open(t.Context(), migrated.New(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		t.Cleanup(func() { storetest.Verify(t, s) })
		f(t, s)
	})
}

// openPool opens a store, and the pool of its connections for what the test does beside it.
func openPool(t *testing.T) (*pgxpool.Pool, *postgres.Store) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), migrated.New(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgres.New(t.Context(), pool)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	t.Cleanup(func() { storetest.Verify(t, s) })
	return pool, s
}

func openSQLite(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	t.Cleanup(func() { storetest.Verify(t, s) })
	return s
}

// start runs an engine until stop is called or the test ends; stop returns
// what Run returned.
func start(t *testing.T, s store.Store, mux *stint.Mux, c engine.Config) (stop func() error) {
	t.Helper()
	e, err := engine.New(s, mux, c)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, e)
}

func run(t *testing.T, e *engine.Engine) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-done
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(20 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func enqueue(t *testing.T, s stint.Enqueuer, kind, args string, opts ...stint.Option) stint.ID {
	t.Helper()
	id, err := stint.NewClient(s).Enqueue(t.Context(), stint.KindInfo{Name: kind}.Job(json.RawMessage(args), opts...))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// buryLiving buries the only engine, which lives, and loses what it holds. While it
// writes, be it a claim or a beat, its burial is blocked.
func buryLiving(t *testing.T, s anyStore) {
	t.Helper()
	roster, err := s.Engines(t.Context())
	if err != nil || len(roster) != 1 {
		t.Fatal(roster, err)
	}
	eventually(t, "the engine is buried", func() bool {
		_, err := s.Bury(t.Context(), store.Burial{Engine: roster[0].Token, Why: "test"}, func(e *store.Entry, _ bool) store.Completion {
			return store.Conclude(e, store.Result{Outcome: stint.OutcomeLost, Part: store.PartFront}, time.Now(), 0)
		})
		if err != nil && !errors.Is(err, store.ErrBurialBlocked) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// until waits for a job to reach a state and returns it.
func until(t *testing.T, s store.Inspector, id stint.ID, state stint.State) *stint.JobInfo {
	t.Helper()
	var job *stint.JobInfo
	eventually(t, fmt.Sprintf("job %d is %s", id, state), func() bool {
		var err error
		if job, err = s.Job(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		return job.State == state
	})
	return job
}

func handle(mux *stint.Mux, kind string, f func(ctx context.Context, job *stint.Job) error) *stint.Registration {
	return mux.Add(stint.KindInfo{Name: kind}, func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
		return nil, f(ctx, job)
	})
}

// nothing makes a handler of a function that leaves no result.
func nothing(f func(job *stint.Job) error) stint.Handler {
	return func(_ context.Context, job *stint.Job) (json.RawMessage, error) { return nil, f(job) }
}

func TestAnEngineWithoutMuxOrStoreIsAnError(t *testing.T) {
	if _, err := engine.New(nil, nil, engine.Config{}); !errors.Is(err, stint.ErrInvalid) || !strings.Contains(err.Error(), "mux: it is nil") {
		t.Errorf("without a mux: %v", err)
	}
	e, err := engine.New(nil, stint.NewMux(), engine.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Run(t.Context()); !errors.Is(err, stint.ErrInvalid) || !strings.Contains(err.Error(), "store: it is nil") {
		t.Errorf("without a store: %v", err)
	}
}

func TestAJobRunsAndItsResultIsKept(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		add := stint.NewResultKind[[]int, int]("add")
		mux := stint.NewMux()
		stint.HandleResult(mux, add, func(_ context.Context, _ *stint.Job, terms []int) (int, error) {
			sum := 0
			for _, n := range terms {
				sum += n
			}
			return sum, nil
		})
		start(t, s, mux, engine.Config{Instance: "adder"})
		id, err := add.Enqueue(t.Context(), stint.NewClient(s), []int{1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		job := until(t, s, id, stint.Completed)
		if sum, err := add.Result(job); sum != 6 || err != nil {
			t.Errorf("the result is %d, %v; want 6", sum, err)
		}
		if x := job.Attempts[0]; x.Instance != "adder" || x.Slot < 1 || x.Started.Before(job.Created) || x.Finished.Before(x.Started) {
			t.Errorf("the execution is %+v", x)
		}
	})
}

// fragile is an error whose methods panic while there is nothing in it, as a nil
// pointer's do that was returned as an error.
type fragile struct{ cause error }

func (e *fragile) Error() string { return "fragile: " + e.cause.Error() }
func (e *fragile) Unwrap() error { return e.cause }

// contrary is an error that panics when it is asked what it is.
type contrary struct{}

func (contrary) Error() string { return "contrary" }
func (contrary) Is(error) bool { panic("do not ask") }
func (contrary) As(any) bool   { panic("do not ask") }

// exiting is an error that ends the goroutine of whoever reads it.
type exiting struct{}

func (exiting) Error() string { runtime.Goexit(); return "" }

func TestAnErrorThatCannotBeAskedIsAFailureOfItsJobOnly(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		const unshown = "(the error cannot be shown: its method Error panicked: runtime error: invalid memory address or nil pointer dereference)"
		var none *fragile
		mux := stint.NewMux()
		once := stint.Retry(retry.None())
		wants := map[stint.ID]stint.Failure{}
		for _, c := range []struct {
			kind, class, message string
			fails                func(ctx context.Context) error
		}{
			{"nil", "engine_test.fragile", unshown, func(context.Context) error { return none }},
			{"nil inside", "errors.errorString", unshown, func(context.Context) error { return errors.Join(errors.New("x"), none) }},
			{"nil for good", "engine_test.fragile", unshown, func(context.Context) error { return stint.NoRetry(none) }},
			{"nil after the timeout", "timeout", "stint: the attempt timed out: <nil>", func(ctx context.Context) error { <-ctx.Done(); return none }},
			{"panics with nil", "panic", "panic: <nil>", func(context.Context) error { panic(none) }},
			{"nil panic", "panic", "<nil>", func(context.Context) error { return fmt.Errorf("%w", error((*stint.PanicError)(nil))) }},
			{"contrary", "engine_test.contrary", "contrary", func(context.Context) error { return contrary{} }},
			{"exits", "errors.errorString", "the handler ended its goroutine (runtime.Goexit)", func(context.Context) error { return exiting{} }},
		} {
			handle(mux, c.kind, func(ctx context.Context, _ *stint.Job) error { return c.fails(ctx) })
			wants[enqueue(t, s, c.kind, `{}`, once, stint.Timeout(30*time.Millisecond))] = stint.Failure{Class: c.class, Message: c.message}
		}
		handle(mux, "fine", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{Slots: 1})
		for id, want := range wants {
			job := until(t, s, id, stint.Failed)
			if got := job.Attempts[0].Error; got == nil || got.Class != want.Class || got.Message != want.Message {
				t.Errorf("%s: the error is %+v, want %s: %s", job.Kind, got, want.Class, want.Message)
			}
		}
		until(t, s, enqueue(t, s, "fine", `{}`), stint.Completed)
	})
}

func TestWhatAHandlerDoesWrongIsAFailureOfItsJobOnly(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "panics", func(context.Context, *stint.Job) error { panic("oh") })
		handle(mux, "exits", func(context.Context, *stint.Job) error { runtime.Goexit(); return nil })
		stint.Handle(mux, stint.NewKind[int]("typed"), func(context.Context, *stint.Job, int) error { return nil })
		handle(mux, "fine", func(context.Context, *stint.Job) error { return nil })
		mux.Add(stint.KindInfo{Name: "poison"}, func(context.Context, *stint.Job) (json.RawMessage, error) {
			return json.RawMessage(`"\u0000"`), errors.New("nul \x00 and \xff")
		})
		once := stint.Retry(retry.None())
		cases := []struct {
			id             stint.ID
			class, message string
		}{
			{enqueue(t, s, "panics", `{}`, once), "panic", "panic: oh"},
			{enqueue(t, s, "exits", `{}`, once), "errors.errorString", "the handler ended its goroutine (runtime.Goexit)"},
			{enqueue(t, s, "typed", `"x"`, once), "json.UnmarshalTypeError", "decode the arguments: json: cannot unmarshal string into Go value of type int"},
			{enqueue(t, s, "poison", `{}`, once), "errors.errorString", "nul \uFFFD and \uFFFD"},
		}
		start(t, s, mux, engine.Config{Slots: 1})
		for _, c := range cases {
			x := until(t, s, c.id, stint.Failed).Attempts[0]
			if x.Error == nil || x.Error.Class != c.class || x.Error.Message != c.message {
				t.Errorf("the error is %+v, want %s: %s", x.Error, c.class, c.message)
			}
			if c.class == "panic" && x.Error.Stack == "" {
				t.Error("a panic has no stack")
			}
		}
		until(t, s, enqueue(t, s, "fine", `{}`), stint.Completed)
	})
}

func TestAttemptsAreBoundedByTheirTimeout(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "slow", func(ctx context.Context, job *stint.Job) error {
			<-ctx.Done()
			if string(job.Args) == `"cause"` {
				return context.Cause(ctx)
			}
			return ctx.Err()
		})
		start(t, s, mux, engine.Config{})
		for args, want := range map[string]string{
			`"error"`: "stint: the attempt timed out: context deadline exceeded",
			`"cause"`: "stint: the attempt timed out",
		} {
			id := enqueue(t, s, "slow", args, stint.Timeout(30*time.Millisecond), stint.Retry(retry.None()))
			x := until(t, s, id, stint.Failed).Attempts[0]
			if took := x.Finished.Sub(x.Started); took < 30*time.Millisecond || x.Error.Message != want || x.Error.Class != "timeout" {
				t.Errorf("after %v: %+v", took, x.Error)
			}
		}
	})
}

func TestAHandlersOwnTimeoutIsAFailureAndNoStop(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "own", func(ctx context.Context, _ *stint.Job) error { return context.DeadlineExceeded })
		start(t, s, mux, engine.Config{})
		job := until(t, s, enqueue(t, s, "own", `{}`, stint.Retry(retry.None())), stint.Failed)
		if x := job.Attempts[0]; x.Outcome != stint.OutcomeFailed {
			t.Errorf("the outcome is %v", x.Outcome)
		}
	})
}

func TestHandlersMaySnoozeAndCancel(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		var runs atomic.Int32
		handle(mux, "naps", func(_ context.Context, job *stint.Job) error {
			if runs.Add(1) < 3 {
				return stint.Snooze(10 * time.Millisecond)
			}
			if job.Attempt != 1 {
				return fmt.Errorf("attempt %d was charged", job.Attempt)
			}
			return nil
		})
		handle(mux, "gone", func(context.Context, *stint.Job) error { return stint.Cancel("the customer left") })
		start(t, s, mux, engine.Config{})
		naps, gone := enqueue(t, s, "naps", `{}`), enqueue(t, s, "gone", `{}`)
		if job := until(t, s, naps, stint.Completed); len(job.Attempts) != 3 {
			t.Errorf("%d executions, want two snoozed and one completed", len(job.Attempts))
		}
		if job := until(t, s, gone, stint.Cancelled); job.Reason != "the customer left" {
			t.Errorf("the reason is %q", job.Reason)
		}
	})
}

func TestNoMoreJobsRunThanThereAreSlots(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		var now, most, ended atomic.Int32
		handle(mux, "count", func(context.Context, *stint.Job) error {
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(2 * time.Millisecond)
			now.Add(-1)
			ended.Add(1)
			return nil
		})
		jobs := make([]stint.NewJob, 200)
		for i := range jobs {
			jobs[i] = stint.NewJob{Kind: "count"}
		}
		if _, err := stint.NewClient(s).EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
		start(t, s, mux, engine.Config{Slots: 7})
		eventually(t, "all have run", func() bool { return ended.Load() == 200 })
		if most.Load() != 7 {
			t.Errorf("%d ran at once, want 7", most.Load())
		}
	})
}

func TestLowerPrioritiesRunFirstThenTheOrderOfEnqueue(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var want, got []stint.ID
		for _, p := range []int{5, 0, -5} {
			for range 3 {
				want = append(want, enqueue(t, s, "note", `{}`, stint.Priority(p)))
			}
		}
		want = append(append(want[6:9:9], want[3:6]...), want[0:3]...)
		mux := stint.NewMux()
		handle(mux, "note", func(_ context.Context, job *stint.Job) error {
			got = append(got, job.ID)
			return nil
		})
		stop := start(t, s, mux, engine.Config{Slots: 1})
		until(t, s, want[8], stint.Completed)
		_ = stop()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("they ran in the order %v, want %v", got, want)
		}
	})
}

func TestEnginesRunTheirQueuesOnly(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "any", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{Queues: []string{"mail"}})
		other := enqueue(t, s, "any", `{}`, stint.Queue("other"))
		until(t, s, enqueue(t, s, "any", `{}`, stint.Queue("mail")), stint.Completed)
		time.Sleep(50 * time.Millisecond)
		if job := until(t, s, other, stint.Available); len(job.Attempts) != 0 {
			t.Errorf("the other queue's job has %d executions", len(job.Attempts))
		}
	})
}

func TestEnginesOfDisjointKindsShareAQueue(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		var wrong atomic.Int32
		muxOf := func(kind string) *stint.Mux {
			mux := stint.NewMux()
			handle(mux, kind, func(_ context.Context, job *stint.Job) error {
				if job.Kind != kind || job.Attempt != 1 {
					wrong.Add(1)
				}
				return nil
			})
			return mux
		}
		var ids []stint.ID
		for range 50 {
			ids = append(ids, enqueue(t, s, "a", `{}`), enqueue(t, s, "b", `{}`))
		}
		unknown := enqueue(t, s, "c", `{"kept":true}`)
		start(t, s, muxOf("a"), engine.Config{})
		start(t, s, muxOf("b"), engine.Config{})
		for _, id := range ids {
			job := until(t, s, id, stint.Completed)
			for _, x := range job.Attempts {
				if x.Outcome != stint.OutcomeCompleted && x.Outcome != stint.OutcomeReturned {
					t.Errorf("job %d has an execution that %v", id, x.Outcome)
				}
			}
			if len(job.Attempts) > 2 {
				t.Errorf("job %d made %d hops, more than one", id, len(job.Attempts)-1)
			}
		}
		if wrong.Load() != 0 {
			t.Errorf("%d jobs ran at the wrong engine or were charged", wrong.Load())
		}
		// A kind that nobody knows waits, visibly, for one who does.
		until(t, s, unknown, stint.Available)
		start(t, s, muxOf("c"), engine.Config{})
		until(t, s, unknown, stint.Completed)
	})
}

func TestAScheduledJobStartsAtItsTime(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
		mux := stint.NewMux()
		handle(mux, "later", func(context.Context, *stint.Job) error { return nil })
		start(t, s, mux, engine.Config{})
		var prompt int
		var all []time.Duration
		for range 7 { // a busy machine may be late now and then
			id := enqueue(t, s, "later", `{}`, stint.Delay(300*time.Millisecond))
			job := until(t, s, id, stint.Completed)
			late := job.Started.Sub(job.Due)
			if all = append(all, late); late <= 200*time.Millisecond {
				prompt++
			}
			if late < 0 || job.Due.Sub(job.Created) < 300*time.Millisecond {
				t.Errorf("due %v after %v, it started %v after that", job.Due, job.Created, late)
			}
		}
		if prompt < 4 {
			t.Errorf("they started %v after their times", all)
		}
	})
}
