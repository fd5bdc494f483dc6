package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stint-go/stint"
	"github.com/stint-go/stint/engine"
	"github.com/stint-go/stint/retry"
)

func TestMiddlewareIsPartOfTheAttempt(t *testing.T) {
	onEach(t, func(t *testing.T, s anyStore) {
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
		if x := until(t, s, fine, stint.Completed).Attempts[0]; string(x.Result) != `"wrapped"` {
			t.Errorf("the result is %s", x.Result)
		}
		if job := until(t, s, fails, stint.Failed); job.Reason != retry.ReasonNotRetriable {
			t.Errorf("the reason is %q", job.Reason)
		}
		if x := until(t, s, panics, stint.Failed).Attempts[0]; x.Error.Class != "panic" || x.Error.Message != "panic: in the middle" || !strings.Contains(x.Error.Stack, "TestMiddlewareIsPartOfTheAttempt") {
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
	onEach(t, func(t *testing.T, s anyStore) {
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
			for _, x := range job.Attempts {
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
	onEach(t, func(t *testing.T, s anyStore) {
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
