package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

func TestAHandlerEnqueuesWithTheClientOfItsContext(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		child := make(chan stint.ID, 2)
		follow := func(ctx context.Context, kind string) error {
			id, err := stint.ClientFrom(ctx).Enqueue(ctx, stint.NewJob{Kind: kind})
			child <- id
			return err
		}
		mux := stint.NewMux()
		handle(mux, "parent", func(ctx context.Context, job *stint.Job) error {
			if stint.JobFrom(ctx) != job {
				return errors.New("the context leads to another job")
			}
			return follow(ctx, "child")
		}).Hook(stint.Hooks{AfterSuccess: func(ctx context.Context, job *stint.Job, _ *stint.Execution) error {
			if err := stint.SetResult(ctx, "too late"); !errors.Is(err, stint.ErrNoAttempt) {
				return fmt.Errorf("a hook set a result: %v", err)
			}
			return follow(ctx, stint.JobFrom(ctx).Kind+"_hook")
		}})
		handle(mux, "child", func(context.Context, *stint.Job) error { return nil })
		handle(mux, "parent_hook", func(context.Context, *stint.Job) error { return nil })
		// The client of the configuration is the one that they get.
		client := stint.NewClient(s).Use(func(next stint.EnqueueFunc) stint.EnqueueFunc {
			return func(ctx context.Context, tx stint.Tx, jobs []stint.NewJob) ([]stint.ID, error) {
				stint.URN(fmt.Sprintf("parent:%d", stint.JobFrom(ctx).ID))(&jobs[0])
				return next(ctx, tx, jobs)
			}
		})
		for _, c := range []struct {
			config engine.Config
			urn    bool
		}{{engine.Config{}, false}, {engine.Config{Client: client}, true}} {
			stop := start(t, s, mux, c.config)
			parent := enqueue(t, s, "parent", `{}`)
			until(t, s, parent, stint.Completed)
			for _, kind := range []string{"child", "parent_hook"} {
				job := until(t, s, <-child, stint.Completed)
				if want := fmt.Sprintf("parent:%d", parent); job.Kind != kind || (job.URN == want) != c.urn {
					t.Errorf("the %s has the urn %q", job.Kind, job.URN)
				}
			}
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAHandlerLearnsOfItsAttemptAndTheOneBefore(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		var j journal
		mux := stint.NewMux()
		handle(mux, "work", func(ctx context.Context, job *stint.Job) error {
			before, err := stint.Previous(ctx)
			if err != nil {
				t.Error(err)
			}
			told := "no run before"
			if before != nil {
				told = before.Outcome.String()
				if before.Error != nil {
					told += ": " + before.Error.Message
				}
				if before.Started.IsZero() || before.Finished.Before(before.Started) || job.Started.Before(before.Finished) {
					t.Errorf("run %v to %v was before %v", before.Started, before.Finished, job.Started)
				}
			}
			j.note(job.ID, "%d (last %v) %s", job.Attempt, job.Last(), told)
			switch {
			case before == nil:
				return stint.Snooze(0)
			default:
				return fmt.Errorf("no %d", job.Attempt)
			}
		})
		// A detour by an engine that does not know the kind is no run.
		other := stint.NewMux()
		handle(other, "other", func(context.Context, *stint.Job) error { return nil })
		stop := start(t, s, other, engine.Config{})
		id := enqueue(t, s, "work", `{}`, stint.Retry(retry.Fixed(2, 0)))
		eventually(t, "it was handed back", func() bool {
			job, err := s.Job(t.Context(), id)
			return err == nil && len(job.Executions) == 1
		})
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		start(t, s, mux, engine.Config{})
		until(t, s, id, stint.Failed)
		want := "1 (last false) no run before, 1 (last false) snoozed, 2 (last false) failed: no 1, 3 (last true) failed: no 2"
		if got := j.of(id); got != want {
			t.Errorf("\ngot  %s\nwant %s", got, want)
		}
	})
}

func TestAStoreThatShowsNothingHasNoPreviousRuns(t *testing.T) {
	s := openSQLite(t)
	told := make(chan error, 1)
	mux := stint.NewMux()
	handle(mux, "work", func(ctx context.Context, _ *stint.Job) error {
		_, err := stint.Previous(ctx)
		told <- err
		return nil
	})
	start(t, silent{s}, mux, engine.Config{})
	enqueue(t, s, "work", `{}`)
	if err := <-told; !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("it says %v", err)
	}
}

func TestWhatAHandlerSetsCountsInsteadOfWhatItReturns(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		no := errors.New("no")
		set := func(ctx context.Context, result any, err error, retriable bool) {
			if e := stint.SetResult(ctx, result); e != nil {
				t.Error(e)
			}
			if err != nil {
				if e := stint.SetError(ctx, err, retriable); e != nil {
					t.Error(e)
				}
			}
		}
		began := make(chan struct{}, 10)
		wait := func(ctx context.Context) { began <- struct{}{}; <-ctx.Done() }
		cases := map[string]struct {
			do      func(ctx context.Context) error
			want    string // outcome, result, class of the error, how many attempts
			timeout time.Duration
			cancel  bool
		}{
			"result and error":       {do: func(ctx context.Context) error { set(ctx, 1, nil, false); return no }, want: "completed 1  after 1"},
			"error and none":         {do: func(ctx context.Context) error { set(ctx, nil, no, true); return nil }, want: "failed  errors.errorString after 2"},
			"not retriable":          {do: func(ctx context.Context) error { set(ctx, 2, no, false); return nil }, want: "failed 2 errors.errorString after 1"},
			"a wish for another":     {do: func(ctx context.Context) error { set(ctx, 3, stint.Cancel("no"), true); return nil }, want: "cancelled 3  after 1"},
			"panic":                  {do: func(ctx context.Context) error { set(ctx, 1, no, false); panic("oh") }, want: "failed  panic after 2"},
			"goexit":                 {do: func(ctx context.Context) error { set(ctx, 1, nil, false); runtime.Goexit(); return nil }, want: "failed  errors.errorString after 2"},
			"result after timeout":   {timeout: 10 * time.Millisecond, do: func(ctx context.Context) error { <-ctx.Done(); set(ctx, 1, nil, false); return ctx.Err() }, want: "completed 1  after 1"},
			"error before timeout":   {timeout: 10 * time.Millisecond, do: func(ctx context.Context) error { set(ctx, nil, no, true); <-ctx.Done(); return nil }, want: "failed  timeout after 2"},
			"result though unwanted": {cancel: true, do: func(ctx context.Context) error { wait(ctx); set(ctx, 1, nil, false); return ctx.Err() }, want: "completed 1  after 1"},
			"error when unwanted":    {cancel: true, do: func(ctx context.Context) error { wait(ctx); set(ctx, nil, no, true); return nil }, want: "cancelled  errors.errorString after 1"},
			"a result like no JSON":  {do: func(ctx context.Context) error { set(ctx, "\x00", nil, false); return no }, want: "completed   after 1"},
		}
		mux := stint.NewMux()
		for kind, c := range cases {
			handle(mux, kind, func(ctx context.Context, _ *stint.Job) error { return c.do(ctx) })
		}
		start(t, s, mux, engine.Config{Slots: 4})
		for kind, c := range cases {
			opts := []stint.Option{stint.Retry(retry.Fixed(1, 0)), stint.Timeout(max(c.timeout, time.Millisecond))}
			if c.timeout == 0 {
				opts = opts[:1]
			}
			id := enqueue(t, s, kind, `{}`, opts...)
			if c.cancel {
				<-began
				cancelJob(t, s, id)
			}
			var job *stint.JobInfo
			eventually(t, kind+" has ended", func() bool {
				var err error
				job, err = s.Job(t.Context(), id)
				return err == nil && job.State.Final()
			})
			x := job.Executions[len(job.Executions)-1]
			class := ""
			if x.Error != nil {
				class = x.Error.Class
			}
			if got := fmt.Sprintf("%v %s %s after %d", x.Outcome, x.Result, class, len(job.Executions)); got != c.want {
				t.Errorf("%s: %q, want %q", kind, got, c.want)
			}
		}
	})
}

func TestWhatAHandlerSetsWhenItIsStoppedIsJudgedAsReturned(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		mux := stint.NewMux()
		began := make(chan struct{}, 2)
		handle(mux, "succeeds", func(ctx context.Context, _ *stint.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			return errors.Join(stint.SetResult(ctx, 1), ctx.Err())
		})
		handle(mux, "fails", func(ctx context.Context, _ *stint.Job) error {
			began <- struct{}{}
			<-ctx.Done()
			return stint.SetError(ctx, ctx.Err(), false)
		})
		done, back := enqueue(t, s, "succeeds", `{}`), enqueue(t, s, "fails", `{}`)
		stop := start(t, s, mux, engine.Config{Slots: 2, Grace: 10 * time.Millisecond})
		<-began
		<-began
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		until(t, s, done, stint.Completed)
		if job := until(t, s, back, stint.Available); job.Attempt != 1 || job.Executions[0].Outcome != stint.OutcomeReturned {
			t.Errorf("it is at attempt %d after %v", job.Attempt, job.Executions[0].Outcome)
		}
	})
}

func TestMiddlewareIsPartOfTheAttempt(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		type key struct{}
		mux := stint.NewMux()
		mux.Use(func(next stint.Handler) stint.Handler {
			return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
				if string(job.Args) == `"panic"` {
					panic("in the middle")
				}
				return next(context.WithValue(ctx, key{}, "through"), job)
			}
		})
		once := func(next stint.Handler) stint.Handler {
			return func(ctx context.Context, job *stint.Job) (json.RawMessage, error) {
				_, err := next(ctx, job)
				return json.RawMessage(`"wrapped"`), stint.NoRetry(err)
			}
		}
		handle(mux, "work", func(ctx context.Context, job *stint.Job) error {
			if ctx.Value(key{}) != "through" || stint.JobFrom(ctx) != job {
				return errors.New("what the middleware put into the context is not there")
			}
			if string(job.Args) == `"fail"` {
				return errors.New("no")
			}
			return nil
		}).Use(once)
		start(t, s, mux, engine.Config{})
		fine, fails := enqueue(t, s, "work", `{}`), enqueue(t, s, "work", `"fail"`)
		panics := enqueue(t, s, "work", `"panic"`, stint.Retry(retry.None()))
		if x := until(t, s, fine, stint.Completed).Executions[0]; string(x.Result) != `"wrapped"` {
			t.Errorf("the result is %s", x.Result)
		}
		if job := until(t, s, fails, stint.Failed); job.Reason != retry.ReasonNotRetriable {
			t.Errorf("the reason is %q", job.Reason)
		}
		if x := until(t, s, panics, stint.Failed).Executions[0]; x.Error.Class != "panic" || x.Error.Message != "panic: in the middle" || !strings.Contains(x.Error.Stack, "attempt_test") {
			t.Errorf("the error is %+v", x.Error)
		}
	})
}

// machine is a handler with state, which it must find untouched.
type machine struct{ runs int }

func (m *machine) Run(ctx context.Context, _ *stint.Job, _ struct{}) error {
	m.runs++
	return stint.SetResult(ctx, m.runs)
}

func TestAConstructorThatFailsIsAFailedAttemptAndTheEngineLives(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		var built atomic.Int32
		mux := stint.NewMux()
		stint.HandleNew(mux, stint.NewKind[struct{}]("machine"), func(_ context.Context, job *stint.Job) (*machine, error) {
			switch built.Add(1); job.Attempt {
			case 1:
				return nil, errors.New("no oil")
			case 2:
				panic("no power")
			}
			return &machine{}, nil
		})
		start(t, s, mux, engine.Config{Slots: 1})
		again := stint.Retry(retry.Fixed(2, 0))
		for range 2 {
			job := until(t, s, enqueue(t, s, "machine", `{}`, again), stint.Completed)
			var got []string
			for _, x := range job.Executions {
				if x.Error != nil {
					got = append(got, fmt.Sprintf("%s: %s (stack %v)", x.Error.Class, x.Error.Message, x.Error.Stack != ""))
				} else {
					got = append(got, string(x.Result))
				}
			}
			want := "errors.errorString: construct the handler of machine: no oil (stack false); " +
				"panic: construct the handler of machine: panic: no power (stack true); 1"
			if got := strings.Join(got, "; "); got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		}
		if built.Load() != 6 {
			t.Errorf("%d runners were constructed for 6 runs", built.Load())
		}
	})
}

func TestOperationsRunAtTheirOwnHandlers(t *testing.T) {
	onEach(t, func(t *testing.T, s store) {
		door := stint.NewGroup("door")
		open := stint.NewOperation[string](door, "open")
		shut := stint.NewOperation[int](door, "shut")
		var j journal
		mux := stint.NewMux()
		stint.Handle(mux, open, func(_ context.Context, job *stint.Job, who string) error {
			j.note(job.ID, "opened by %s", who)
			return nil
		})
		stint.Handle(mux, shut, func(_ context.Context, job *stint.Job, times int) error {
			j.note(job.ID, "shut %d times", times)
			return nil
		})
		start(t, s, mux, engine.Config{})
		client := stint.NewClient(s).Declare(door)
		a, err := open.Enqueue(t.Context(), client, "me")
		if err != nil {
			t.Fatal(err)
		}
		b, err := door.Enqueue(t.Context(), client, "shut", 2)
		if err != nil {
			t.Fatal(err)
		}
		until(t, s, a, stint.Completed)
		until(t, s, b, stint.Completed)
		if j.of(a) != "opened by me" || j.of(b) != "shut 2 times" {
			t.Errorf("it was %s, then %s", j.of(a), j.of(b))
		}
		kinds, err := s.Kinds(t.Context())
		if err != nil || len(kinds) != 2 || kinds[0].Name != "door.open" {
			t.Errorf("declared are %+v, %v", kinds, err)
		}
	})
}
